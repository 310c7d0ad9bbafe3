import TestSupport
import Testing

/// Requests that concern no single device, and how requests are answered.
@Suite struct RequestTests {
  @Test("The requests devices and health report the present state")
  func devicesAndHealth() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      for id in ids { try await fixture.online(id) }
      let listed = try await fixture.perform("devices").array ?? []
      #expect(listed.compactMap { $0["id"]?.string } == ids.sorted())
      #expect(
        listed.allSatisfy { $0["session"]?.string == "live" && $0["owner"]?.string == Fixture.gatewayID })
      let health = try await fixture.perform("health")
      #expect(health["healthy"]?.bool == true)
      #expect(health["problems"] == .array([]))
      #expect(health["devices"] == .object(["known": .int(2), "online": .int(2)]))
      #expect(health["adapters"]?.array?.first?["state"]?.string == "on")
      #expect((health["resident_kib"]?.int ?? 0) > 1000)
      try await fixture.simulator.control(#"{"op":"power","on":false}"#)
      try await fixture.logged("the adapter hci0 is off")
      let unhealthy = try await fixture.perform("health")
      #expect(unhealthy["healthy"]?.bool == false)
      #expect(unhealthy["problems"] == .array([.string("the adapter hci0 is off")]))
      #expect(try await fixture.refusal("scan", "").contains("the Bluetooth adapter is missing or off"))
    }
  }

  @Test("An answer includes the transaction, and is also published on the response topic")
  func transaction() async throws {
    try await withFixture { fixture in
      try await fixture.bridgeOnline()
      let request = "microbit/\(fixture.bridge)/request/devices"
      try await fixture.publish(request, Array(#"{"transaction":"ü/+#\n"}"#.utf8), correlation: "\0c")
      let reply = try await fixture.reply(to: "\0c")
      let answer = try await fixture.message("\(fixture.bridge)/response/devices")
      #expect(reply.payload == answer.payload)
      #expect(!answer.retain)
      #expect(try answer.json()["transaction"]?.string == "ü/+#\n")
      #expect(try answer.json()["status"]?.string == "ok")
      // The same for a refused request.
      let bad = Array(#"{"transaction":"b","id":"nobody"}"#.utf8)
      try await fixture.publish("microbit/\(fixture.bridge)/request/device/remove", bad, correlation: "d")
      let refused = try await fixture.reply(to: "d").json()
      #expect(refused["transaction"]?.string == "b")
      #expect(refused["status"]?.string == "error")
    }
  }

  @Test("Requests work with MQTT 3.1.1")
  func mqtt311() async throws {
    var plan = Plan()
    plan.mqtt = #""protocol":"3.1.1""#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let answer = try await fixture.request("devices", #"{"transaction":"t"}"#)
      #expect(answer["transaction"]?.string == "t")
      #expect(answer["data"]?.array?.count == 1)
      let mark = try fixture.observer.mark
      try await fixture.perform("device/rename", #"{"id":"\#(id)","to":"kitchen"}"#)
      try await fixture.online("kitchen", after: mark)
      #expect(try await fixture.setPeriod("kitchen", "60")["status"]?.string == "applied")
      try await fixture.perform("device/remove", #"{"id":"kitchen"}"#)
      #expect(try await fixture.retained(of: "kitchen").isEmpty)
      #expect(try await fixture.retained(of: id).isEmpty)
    }
  }

  @Test("A scan finds devices and other peripherals with any name")
  func scan() async throws {
    let hostile = "BBC micro:bit \u{1B}[31m\"},{\n/+#"
    var plan = Plan(devices: 2, decoys: 2)
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#
    plan.simulator = ["--name", "1=\(hostile)"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let found = try await fixture.perform("scan", #"{"timeout":4}"#).array ?? []
      let devices = try await fixture.simulator.devices()
      #expect(Set(found.compactMap { $0["identifier"]?.string }) == Set(devices.map(\.address)))
      #expect(Set(found.compactMap { $0["name"]?.string }) == Set(devices.map(\.name)))
      let named = found.filter { $0["device"] != nil }
      #expect(named.map { $0["device"]?.string } == ["kitchen"])
      #expect(named.first?["connected"]?.bool == true)
      // The others are found only, not connected.
      #expect(try await fixture.simulator.devices().map(\.isConnected) == [true, false, false, false])
    }
  }

  @Test("The request adapter/reset powers the adapter off and on, and devices reconnect")
  func resetAdapter() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      for id in ids { try await fixture.online(id) }
      let mark = try fixture.observer.mark
      let answer = try await fixture.perform("adapter/reset")
      #expect(answer["adapter"]?.string == "hci0")
      for id in ids {
        let offline = try await fixture.offline(id, after: mark)
        let online = try await fixture.online(id, after: offline.number)
        try await fixture.reading(id, after: online.number) { _ in true }
      }
      #expect(
        try await fixture.refusal("adapter/reset", #"{"adapter":"hci7"}"#).contains("uses hci0, not \"hci7\"")
      )
    }
  }

  @Test("The log level changes at once")
  func logLevel() async throws {
    try await withFixture { fixture in
      try await fixture.bridgeOnline()
      try await fixture.perform("devices")
      #expect(try fixture.lines(with: " debug gateway: request").isEmpty)
      #expect(try await fixture.perform("log_level", #"{"level":"debug"}"#)["level"]?.string == "debug")
      try await fixture.perform("devices")
      try await fixture.logged(" debug gateway: request verb=devices")
      try await fixture.perform("log_level", #"{"level":"error"}"#)
      try await fixture.logged(" debug gateway: request verb=log_level")
      let before = try fixture.gateway.text
      _ = try await fixture.refusal("device/remove", #"{"id":"nobody"}"#)
      #expect(try fixture.gateway.text == before)
    }
  }

  // MARK: Bad input

  /// The verb, the payload, and words that the answer contains.
  private static let bad: [(verb: String, payload: String, words: [String])] = [
    ("devices", "nonsense", ["not valid JSON"]),
    ("devices", "[]", ["a list, not an object"]),
    ("devices", "42", ["not an object"]),
    ("devices", #"{"x":1}"#, ["x: unknown key"]),
    ("devices", #"{"transaction":7}"#, ["the transaction is a number, not a string"]),
    (
      "device/add", #"{"identifer":"C5:A1:B2:C3:D4:E5"}"#,
      ["identifer: unknown key (did you mean identifier?)"]
    ),
    ("device/add", "{}", ["identifier: this is missing"]),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4"}"#, ["identifier: ", "C5:A1:B2:C3:D4:E5"]),
    ("device/add", #"{"identifier":12}"#, ["identifier: "]),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","id":"a/b"}"#, ["id: "]),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","id":"kitchen"}"#, ["kitchen is in use by D0:5A"]),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","period":0}"#, ["period: "]),
    ("device/rename", #"{"id":"kitchen","to":"bridge"}"#, ["to: ", "bridge"]),
    ("device/rename", #"{"id":"kitchen","to":"all"}"#, ["to: ", "all"]),
    ("device/rename", #"{"id":"kitchen","to":"a/b"}"#, ["to: "]),
    ("device/rename", #"{"id":"kitchen","to":""}"#, ["to: "]),
    ("device/rename", #"{"id":"kitchen","to":"cellar"}"#, ["cellar is in use by D1:5A"]),
    ("device/rename", #"{"id":"kitchn","to":"x"}"#, ["no device is called kitchn", "did you mean kitchen?"]),
    ("device/rename", #"{"id":"kitchen"}"#, ["to: this is missing"]),
    ("device/remove", #"{"id":"celar"}"#, ["did you mean cellar?"]),
    ("device/remove", "", ["id: this is missing"]),
    ("device/reconnect", #"{"id":7}"#, ["id: "]),
    ("device/options", #"{"id":"kitchen"}"#, ["options: this is missing"]),
    ("device/options", #"{"id":"kitchen","options":[]}"#, ["options: "]),
    ("device/options", #"{"id":"kitchen","options":{"periode":7}}"#, ["did you mean period?"]),
    ("device/options", #"{"id":"kitchen","options":{"period":65536}}"#, ["options.period: "]),
    ("device/options", #"{"id":"kitchen","options":{"enabled":"yes"}}"#, ["options.enabled: "]),
    ("device/options", #"{"id":"kitchen","options":{"id":"x"}}"#, ["device/rename"]),
    ("device/options", #"{"id":"kitchen","options":{"match":{}}}"#, ["options.match", "config.json"]),
    ("device/options", #"{"id":"nobody","options":{}}"#, ["no device is called nobody"]),
    ("scan", #"{"timeout":0}"#, ["timeout: "]),
    ("scan", #"{"timeout":"5"}"#, ["timeout: "]),
    ("log_level", #"{"level":"loud"}"#, ["level: "]),
    ("log_level", "{}", ["level: this is missing"]),
    ("adapter/reset", #"{"adapter":"hci9"}"#, ["hci0"]),
    ("device/ad", "{}", [#"unknown request "device/ad""#, "did you mean device/add?"]),
    ("fly", "{}", ["unknown request", "devices, health"]),
  ]

  @Test("An invalid request is refused with the reason, and changes nothing")
  func invalidRequests() async throws {
    var plan = Plan(devices: 2)
    plan.entries = """
      {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"},
      {"match":{"name_prefix":"BBC micro:bit"},"id":"cellar"}
      """
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await fixture.online("cellar")
      try await fixture.message("kitchen/info") { $0.text.contains("firmware") }
      try await fixture.message("cellar/info") { $0.text.contains("firmware") }
      let before = try await fixture.perform("devices")
      let mark = try fixture.observer.mark
      for (verb, payload, words) in Self.bad {
        let error = try await fixture.refusal(verb, payload)
        for word in words {
          #expect(error.contains(word), "\(verb) \(payload): \(error)")
        }
        #expect((1...400).contains(error.count))
      }
      #expect(Self.withoutSignal(try await fixture.perform("devices")) == Self.withoutSignal(before))
      for id in ["kitchen", "cellar"] {
        #expect(try fixture.stayedOnline(id, after: mark))
      }
      let check = try await fixture.check()
      #expect(!check.contains(" request"), "\(check)")
    }
  }

  /// The devices without their signal strength, which changes.
  private static func withoutSignal(_ devices: JSON) -> [JSON] {
    devices.array?.map { device in
      guard case .object(var object) = device else { return device }
      object["rssi"] = nil
      return .object(object)
    } ?? []
  }

  @Test(
    "A request of 1 MB is refused with either protocol version, and the next one is answered",
    arguments: ["5", "3.1.1"])
  func megabyte(version: String) async throws {
    var plan = Plan()
    plan.mqtt = #""protocol":"\#(version)""#
    try await withFixture(plan) { fixture in
      try await fixture.online(try await fixture.id())
      let payload = Array(#"{"transaction":""#.utf8) + Array(repeating: UInt8(ascii: "x"), count: 1 << 20)
      let answer = try await fixture.request("device/add", bytes: payload)
      #expect(answer["status"]?.string == "error")
      #expect(answer["error"]?.string?.contains("\(payload.count) bytes, the maximum is 65536") == true)
      #expect(try await fixture.perform("health")["healthy"]?.bool == true)
    }
  }

  @Test(
    "A payload that is not valid text is refused",
    arguments: [[0xFF, 0xFE], [0x7B, 0x22, 0xFF], [0]] as [[UInt8]])
  func invalidText(bytes: [UInt8]) async throws {
    try await withFixture { fixture in
      try await fixture.bridgeOnline()
      let answer = try await fixture.request("device/add", bytes: bytes)
      #expect(answer["error"]?.string?.contains("not valid JSON") == true)
    }
  }
}
