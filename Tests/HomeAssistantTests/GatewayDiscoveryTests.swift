import Configuration
import EventLoop
import GATT
import MQTT
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

@Suite struct GatewayDiscoveryTests {
  let map = TopicMap(base: "microbit", gateway: GatewayID(hostName: "attic"))
  let discovery: Discovery

  init() {
    discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map)
  }

  @Test func documentDescribesTheWholeGateway() throws {
    let document = discovery.document(ofGatewayIn: "Attic", adapters: ["hci1"])
    #expect(document.topic.string == "homeassistant/device/ble_gateway_attic/config")
    try expect(
      document, at: "dev",
      """
      { "ids": ["ble_gateway_attic"], "name": "Micro:bit gateway attic", "mdl": "microbit-gateway",
        "sw": "\(Version.current)", "sa": "Attic" }
      """)
    let whole = try object(document)
    #expect(whole.names == ["dev", "o", "avty", "avty_mode", "cmps"])
    try expect(whole["avty"], #"[{ "t": "microbit/bridge/attic/state" }]"#)
    let components = try object(document, "cmps")
    #expect(
      components.names == [
        "state", "connected_since", "connects", "adapter", "known", "online", "pairing", "readings",
        "malformed",
        "commands",
        "over_limit", "sent", "queued", "lost", "rejected_by_broker", "permit_join", "scan", "restart",
      ])
    try expect(
      components["state"],
      """
      { "p": "binary_sensor", "uniq_id": "ble_gateway_attic_state", "qos": 1, "name": "State",
        "dev_cla": "connectivity", "ent_cat": "diagnostic", "stat_t": "microbit/bridge/attic/state",
        "pl_on": "online", "pl_off": "offline", "avty": [] }
      """)
    try expect(
      components["permit_join"],
      """
      { "p": "switch", "uniq_id": "ble_gateway_attic_permit_join", "qos": 1, "name": "Permit join",
        "stat_t": "microbit/bridge/attic/info",
        "cmd_t": "microbit/bridge/attic/request/permit_join",
        "val_tpl": "{{ (value_json|default({}))['permit_join']|default(none) }}", "pl_on": "{\\"time\\":254}",
        "pl_off": "{\\"time\\":0}", "stat_on": "True", "stat_off": "False" }
      """)
    try expect(
      components["connected_since"],
      """
      { "p": "sensor", "uniq_id": "ble_gateway_attic_connected_since", "qos": 1,
        "name": "Broker connected since", "dev_cla": "timestamp", "ent_cat": "diagnostic",
        "stat_t": "microbit/bridge/attic/info",
        "val_tpl":
          "{{ ((value_json|default({}))['broker']|default({}))['connected_since']|default(none) }}" }
      """)
    try expect(
      components["adapter"],
      """
      { "p": "sensor", "uniq_id": "ble_gateway_attic_adapter", "qos": 1, "name": "Adapter",
        "dev_cla": "enum", "ent_cat": "diagnostic", "stat_t": "microbit/bridge/attic/info",
        "ops": ["on", "off", "blocked", "in_use", "absent", "unauthorized", "unsupported"],
        "val_tpl": 
          "{{ (((value_json|default({})).adapters|default([],true))[0]|default({})).state|default(none) }}" }
      """)
    try expect(
      components["online"],
      """
      { "p": "sensor", "uniq_id": "ble_gateway_attic_online", "qos": 1, "name": "Micro:bits online",
        "stat_cla": "measurement", "stat_t": "microbit/bridge/attic/info",
        "val_tpl": "{{ ((value_json|default({}))['devices']|default({}))['online']|default(none) }}" }
      """)
    try expect(
      components["pairing"],
      """
      { "p": "sensor", "uniq_id": "ble_gateway_attic_pairing", "qos": 1, "name": "Pairing wanted",
        "ent_cat": "diagnostic", "stat_t": "microbit/bridge/attic/info",
        "val_tpl": "{{ ((value_json|default({}))['devices']|default({}))['pairing']|default('no') }}" }
      """)
    try expect(
      components["over_limit"],
      """
      { "p": "sensor", "uniq_id": "ble_gateway_attic_over_limit", "qos": 1, "name": "Over limit",
        "stat_cla": "total_increasing", "ent_cat": "diagnostic", "stat_t": "microbit/bridge/attic/info",
        "val_tpl": "{{ ((value_json|default({}))['counters']|default({}))['over_limit']|default(none) }}" }
      """)
    try expect(
      components["scan"],
      """
      { "p": "button", "uniq_id": "ble_gateway_attic_scan", "qos": 1, "name": "Scan",
        "ent_cat": "diagnostic", "cmd_t": "microbit/bridge/attic/request/scan", "pl_prs": "{}" }
      """)
    try expect(
      components["restart"],
      """
      { "p": "button", "uniq_id": "ble_gateway_attic_restart", "qos": 1, "name": "Restart adapter",
        "dev_cla": "restart", "ent_cat": "diagnostic",
        "cmd_t": "microbit/bridge/attic/request/adapter/reset", "pl_prs": "{\\"adapter\\":\\"hci1\\"}" }
      """)
    #expect(document.payload.count < 5500)
  }

  /// The entities of the first adapter have the same keys as those of an only adapter.
  @Test func eachAdapterHasItsEntities() throws {
    let document = discovery.document(ofGatewayIn: nil, adapters: ["hci0", "hci1"])
    let components = try object(document, "cmps")
    for (key, name) in [
      ("adapter", "Adapter hci0"), ("adapter_hci1", "Adapter hci1"), ("restart", "Restart adapter hci0"),
      ("restart_hci1", "Restart adapter hci1"),
    ] {
      guard case .object(let component) = components[key] else {
        Issue.record("\(key) is missing")
        continue
      }
      #expect(component["name"] == .string(name))
    }
    guard case .object(let state) = components["adapter_hci1"] else { return }
    #expect(
      state["val_tpl"]
        == "{{ (((value_json|default({})).adapters|default([],true))[1]|default({})).state|default(none) }}")
  }

  @Test func everyCounterHasAnEntity() throws {
    let document = discovery.document(ofGatewayIn: nil, adapters: ["hci0"])
    let components = try object(document, "cmps")
    for (name, _) in BridgeInfo.Counters().list {
      guard case .object(let component) = components[name] else {
        Issue.record("\(name) is missing")
        continue
      }
      let growing = name != "queued"
      #expect(component["stat_cla"] == .string(growing ? "total_increasing" : "measurement"))
      let isSteady = ["malformed", "commands", "over_limit", "lost", "rejected_by_broker"].contains(name)
      #expect(component["en"] == (isSteady ? nil : .bool(false)))
    }
    #expect(try object(document, "dev")["sa"] == nil)
  }

  /// Ids of gateways can contain underscores: `a` with `b_c` must differ from `a_b` with `c`.
  @Test func entitiesOfTwoGatewaysAreNeverTheSame() throws {
    let keys = try object(discovery.document(ofGatewayIn: nil, adapters: ["hci0"]), "cmps").names
    #expect(Set(keys).count == keys.count)
    for key in keys {
      for other in keys { #expect(!key.hasSuffix("_\(other)")) }
    }
  }

  /// The links of the micro:bits refer to it.
  @Test func viaDeviceOfMicrobitsIsTheGateway() throws {
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    let description = DeviceDescription(DeviceID(address), address)
    let topics = map.topics(of: description.id, description.profile)
    let device = try object(discovery.link(of: description, topics: topics), "dev")
    let gateway = try object(discovery.document(ofGatewayIn: nil, adapters: ["hci0"]), "dev")
    #expect(gateway["ids"] == device["via_device"].map { .array([$0]) })
  }

  @Test func buttonsSendRequestsThatTheGatewayParses() {
    let topics = [
      "scan": map.scanRequest, "adapter/reset": map.resetAdapterRequest,
      "permit_join": map.permitJoiningRequest,
      "device/reconnect": map.reconnectRequest, "device/identify": map.identifyRequest,
      "device/options": map.changeOptionsRequest,
    ]
    for (verb, topic) in topics { #expect(map.inbound(topic.string) == .request(verb: verb)) }
  }
}
