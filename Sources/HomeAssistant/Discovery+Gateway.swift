import Bridge
import EventLoop
import JSON

extension Discovery {
  /// The document of this gateway, to be published before those of the devices, which refer to it.
  ///
  /// - Parameters:
  ///   - adapters: those that it uses, as BlueZ names them.
  ///   - before: what was announced of the gateway earlier.
  ///   - removed: what was removed so that others can have the keys.
  func document(
    ofGatewayIn area: String?, adapters: [String], before: Announced? = nil, isReannouncement: Bool = false,
    removed: Set<Announced.Component> = []
  ) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .gateway), prefix: prefix,
      device: [
        "name": .string("Micro:bit gateway \(topics.gateway)"), "mdl": "microbit-gateway",
        "sw": .string(Version.current), "cu": page.map(JSONValue.string),
        "sa": area.flatMap(DisplayName.clean).map(JSONValue.string),
      ],
      availability: [topics.bridgeState], qos: qos,
      components: statesOfGateway(adapters) + countersOfGateway + buttonsOfGateway(adapters), before: before,
      isReannouncement: isReannouncement, removed: removed)
  }

  private func statesOfGateway(_ adapters: [String]) -> [DiscoveryComponent] {
    func info(
      _ key: String, _ name: String, _ template: InfoTemplate, deviceClass: String? = nil,
      stateClass: String? = nil, category: String? = "diagnostic", options: [String]? = nil
    ) -> DiscoveryComponent {
      DiscoveryComponent(
        .sensor, key, name: name, topic: topics.bridgeInfo, deviceClass: deviceClass, stateClass: stateClass,
        category: category,
        ["ops": options.map { .array($0.map(JSONValue.string)) }, "val_tpl": template.json])
    }
    let adapterStates = adapters.enumerated().map { index, adapter in
      info(
        Self.key("adapter", of: index, adapters), Self.name("Adapter", of: index, adapters),
        .adapterState(index), deviceClass: "enum", options: Self.adapterStates)
    }
    return [
      // Always available, as `offline` is one of its values.
      .connectivity("state", name: "State", topic: topics.bridgeState, availability: []),
      info(
        "connected_since", "Broker connected since", InfoTemplate("broker", "connected_since"),
        deviceClass: "timestamp"),
      info(
        "connects", "Broker connections", InfoTemplate("broker", "connects"), stateClass: "total_increasing"),
    ] + adapterStates + [
      info(
        "known", "Micro:bits known", InfoTemplate("devices", "known"), stateClass: "measurement",
        category: nil),
      info(
        "online", "Micro:bits online", InfoTemplate("devices", "online"), stateClass: "measurement",
        category: nil),
      info("pairing", "Pairing wanted", .pairing),
    ]
  }

  /// Home Assistant refuses other values.
  private static let adapterStates = [
    "on", "off", "blocked", "in_use", "absent", "unauthorized", "unsupported",
  ]

  /// The first adapter's entities are the same whether there are others or not.
  private static func key(_ key: String, of index: Int, _ adapters: [String]) -> String {
    index == 0 ? key : "\(key)_\(adapters[index])"
  }

  private static func name(_ name: String, of index: Int, _ adapters: [String]) -> String {
    adapters.count == 1 ? name : "\(name) \(adapters[index])"
  }

  /// The sensors of the counters in `info`.
  private var countersOfGateway: [DiscoveryComponent] {
    BridgeInfo.Counters().list.map { name, _ in
      let words = name.split(separator: "_").joined(separator: " ")
      return DiscoveryComponent(
        .sensor, name, name: words.prefix(1).uppercased() + words.dropFirst(), topic: topics.bridgeInfo,
        // The only one that decreases.
        stateClass: name == "queued" ? "measurement" : "total_increasing", category: "diagnostic",
        [
          "val_tpl": InfoTemplate("counters", name).json,
          // They change each minute, and would fill the database.
          "en": ["readings", "sent", "queued"].contains(name) ? .bool(false) : nil,
        ])
    }
  }

  private func buttonsOfGateway(_ adapters: [String]) -> [DiscoveryComponent] {
    [
      .switch(
        "permit_join", name: "Permit join", topic: topics.bridgeInfo, template: InfoTemplate("permit_join"),
        command: topics.permitJoiningRequest, on: #"{"time":254}"#, off: #"{"time":0}"#, category: nil),
      .button("scan", name: "Scan", command: topics.scanRequest, request: [:]),
    ]
      + adapters.enumerated().map { index, adapter in
        .button(
          Self.key("restart", of: index, adapters), name: Self.name("Restart adapter", of: index, adapters),
          command: topics.resetAdapterRequest, request: ["adapter": .string(adapter)], deviceClass: "restart")
      }
  }
}
