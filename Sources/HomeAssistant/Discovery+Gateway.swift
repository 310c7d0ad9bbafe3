import Bridge
import Configuration
import Devices
import EventLoop
import JSON
import MQTT

extension Discovery {
  /// The document of this gateway, to be published before those of the devices, which refer to it.
  ///
  /// - Parameters:
  ///   - adapter: the one that its button restarts, as BlueZ names it.
  ///   - before: what was announced of the gateway earlier.
  func document(
    ofGatewayIn area: String?, adapter: String, before: Announced? = nil, isReannouncement: Bool = false
  ) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .gateway), prefix: prefix,
      device: [
        "name": .string("Micro:bit gateway \(topics.gateway)"), "mdl": "microbit-gateway",
        "sw": .string(Version.current),
        "sa": area.flatMap(DisplayName.clean).map(JSONValue.string),
      ],
      availability: [topics.bridgeState], qos: qos,
      components: statesOfGateway + countersOfGateway + buttonsOfGateway(adapter), before: before,
      isReannouncement: isReannouncement)
  }

  private var statesOfGateway: [DiscoveryComponent] {
    func info(
      _ key: String, _ name: String, _ template: InfoTemplate, deviceClass: String? = nil,
      stateClass: String? = nil, category: String? = "diagnostic", options: [String]? = nil
    ) -> DiscoveryComponent {
      .sensor(
        key, name: name, topic: topics.bridgeInfo, template: template, deviceClass: deviceClass,
        stateClass: stateClass, category: category, options: options)
    }
    return [
      // Always available, as `offline` is one of its values.
      .connectivity("state", name: "State", topic: topics.bridgeState, availability: []),
      info(
        "broker", "Broker connected since", InfoTemplate("broker", "connected_since"),
        deviceClass: "timestamp"),
      info(
        "connects", "Broker connections", InfoTemplate("broker", "connects"), stateClass: "total_increasing"),
      info(
        "adapter", "Adapter", .adapterState, deviceClass: "enum",
        options: ["on", "off", "blocked", "in_use", "absent"]),
      info(
        "known", "Micro:bits known", InfoTemplate("devices", "known"), stateClass: "measurement",
        category: nil),
      info(
        "online", "Micro:bits online", InfoTemplate("devices", "online"), stateClass: "measurement",
        category: nil),
    ]
  }

  /// One for each counter of `info`.
  private var countersOfGateway: [DiscoveryComponent] {
    BridgeReport.list(DeviceCounters(), commands: 0, MQTTStatistics()).map { name, _ in
      let words = name.split(separator: "_").joined(separator: " ")
      return .sensor(
        name, name: words.prefix(1).uppercased() + words.dropFirst(), topic: topics.bridgeInfo,
        template: InfoTemplate(counter: name),
        // The only one that decreases.
        stateClass: name == "queued" ? "measurement" : "total_increasing", category: "diagnostic")
    }
  }

  private func buttonsOfGateway(_ adapter: String) -> [DiscoveryComponent] {
    [
      .button(
        "scan", name: "Scan", command: topics.bridgeRequest("scan"), request: [:], category: "diagnostic"),
      .button(
        "restart", name: "Restart adapter", command: topics.bridgeRequest("adapter/reset"),
        request: ["adapter": .string(adapter)], category: "diagnostic", deviceClass: "restart"),
    ]
  }
}
