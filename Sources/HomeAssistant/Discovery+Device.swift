import Bridge
import Configuration
import Devices
import GATT
import JSON
import MQTT

extension Discovery {
  /// The document of a device that this gateway owns.
  ///
  /// - Parameters:
  ///   - before: what was announced of the device earlier.
  ///   - removed: what was removed so that others can have the keys.
  func document(
    of device: DeviceDescription, topics: DeviceTopics, before: Announced? = nil,
    isReannouncement: Bool = false, removed: Set<Announced.Component> = []
  ) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .device(device.address)), prefix: prefix, device: description(of: device),
      availability: [topics.availability, self.topics.bridgeState], qos: qos,
      components: components(of: device, topics: topics), before: before, isReannouncement: isReannouncement,
      removed: removed)
  }

  /// What connects the device with the gateway, which Home Assistant must know by then: it creates a device that others
  /// refer to, without an area. So this is not retained.
  ///
  /// The device is as it is announced, with the one entity that is needed. As it has no availability as a whole, other gateways
  /// do not take it for an announcement.
  func link(of device: DeviceDescription, topics: DeviceTopics) -> DiscoveryDocument {
    DiscoveryDocument(
      object: object(of: .device(device.address)), prefix: prefix,
      device: description(of: device).setting("via_device", to: .string(object(of: .gateway))),
      availability: [], qos: qos, components: [connectivity(topics)], before: nil)
  }

  private func description(of device: DeviceDescription) -> JSONValue {
    func text(_ text: String?) -> JSONValue? { text.flatMap(DisplayName.clean).map(JSONValue.string) }
    let profile = device.profile
    let names = [device.settings.name, device.bluetoothName].compactMap { $0 }
    return [
      "name": .string(names.lazy.compactMap(DisplayName.ofDevice).first ?? device.id.description),
      "mf": .string(profile.manufacturer),
      "mdl": text(device.record.model) ?? profile.model.map(JSONValue.string),
      "sw": text(device.record.firmware),
      "sn": text(device.record.serial),
      "cu": page.map(JSONValue.string),
      "sa": text(device.settings.area),
      // The address as Home Assistant's own Bluetooth integrations give it, which before 2026.8 show the same device.
      "cns": device.address.radioSender == nil
        ? [["bluetooth", .string(device.address.description)]] : nil,
    ]
  }

  /// What another gateway announced of a device that has these properties there.
  /// - Parameter whole: the device's profile, with those that this gateway does not use.
  func announced(_ names: Set<PropertyName>, of device: DeviceDescription, _ whole: Profile) -> Announced {
    let names = Set(names.map(\.description))
    let components =
      components(of: device, whole, topics: topics.topics(of: device.id, whole)) { names.contains($0.name) }
      + names.compactMap(NamedValue.key).sorted().map { key in
        DiscoveryComponent(key: Self.key(ofValue: key), platform: .sensor, members: [:])
      }
    return Announced(
      prefix: prefix, components: components.map { Announced.Component(key: $0.key, platform: $0.platform) })
  }

  private func components(
    of device: DeviceDescription, _ profile: Profile, topics: DeviceTopics,
    where isIncluded: (Property) -> Bool
  ) -> [DiscoveryComponent] {
    let placeholder = Removal.placeholder(object(of: .device(device.address)), prefix: prefix)
    return zip(profile.properties, topics.properties).filter { isIncluded($0.0) }.flatMap { property, own in
      let entities = property.homeAssistantParts.flatMap {
        PropertyEntity(property: property, part: $0, topics: own).components
      }
      // The device has offered it before, and may again.
      let isMissing = device.missing.contains(property.name)
      return (entities + offset(of: property, device, info: topics.info))
        .map { isMissing ? $0.unavailable(placeholder) : $0 }
    }
  }

  /// Sets what is added to a temperature: that of a micro:bit's chip is some degrees above that of the room.
  private func offset(
    of property: Property, _ device: DeviceDescription, info: TopicName
  ) -> [DiscoveryComponent] {
    guard property.takesOffset,
      let part = property.homeAssistantParts.first(where: { $0.entity.deviceClass == "temperature" })
    else { return [] }
    let request = #"{"id":"\#(device.id)","options":{"adjust":{"\#(property.name)":{"offset":{{ value }}}}}}"#
    return [
      // Without the class, by which Home Assistant would convert it as if it were a temperature.
      DiscoveryComponent(
        .number, "offset-\(property.name)", name: "\(part.name) offset", topic: info,
        command: self.topics.changeOptionsRequest, unit: part.unit, category: "config",
        availability: [self.topics.bridgeState],
        [
          "min": JSONValue(number: Adjustment.offsets.lowerBound),
          "max": JSONValue(number: Adjustment.offsets.upperBound), "step": JSONValue(number: 0.1),
          "mode": "box", "val_tpl": InfoTemplate.offset(of: property.name).json,
          "cmd_tpl": .string(request),
        ])
    ]
  }

  /// No property's entity has it, as names of properties have no hyphen.
  private static func key(ofValue key: ValueKey) -> String { "value-\(TopicWord.ascii(key.description))" }

  /// The entities of the values that the device's program names itself, once they are sure to be no mistake.
  private func values(of device: DeviceDescription, topics: DeviceTopics) -> [DiscoveryComponent] {
    let placeholder = Removal.placeholder(object(of: .device(device.address)), prefix: prefix)
    return device.namedValues.filter(\.isConfirmed).flatMap { value in
      value.property.homeAssistantParts.map { part in
        let topics = topics.topics(of: value.property)
        let sensor = PropertyEntity(property: value.property, part: part, topics: topics).component
        // Home Assistant refuses a text as the state of a sensor with a unit or statistics.
        let members =
          value.isNumber
          ? sensor.members.setting("val_tpl", to: "{{ value if is_number(value) else none }}")
            .setting(
              "sug_dsp_prc", to: value.property.unit.flatMap { Self.precisions[$0] }.map(JSONValue.integer))
          : sensor.members
        let component = DiscoveryComponent(
          key: Self.key(ofValue: value.key), platform: .sensor, members: members)
        return device.hasLines ? component : component.unavailable(placeholder)
      }
    }
  }

  /// The decimals of a program's numbers that are shown; of a property's, one more at most.
  fileprivate static let precisions = [
    "°C": 1, "°F": 1, "%": 1, "Pa": 0, "hPa": 1, "kPa": 2, "V": 2, "mV": 0, "mA": 1, "lx": 0, "ppm": 0,
    "ms": 0, "mm": 0, "cm": 1, "dBm": 0,
  ]

  /// The device's availability is the value of this entity, and does not make it unavailable.
  private func connectivity(_ topics: DeviceTopics) -> DiscoveryComponent {
    .connectivity(
      "connectivity", name: "Connectivity", topic: topics.availability,
      availability: [self.topics.bridgeState])
  }

  private func components(of device: DeviceDescription, topics: DeviceTopics) -> [DiscoveryComponent] {
    let properties =
      components(of: device, device.profile, topics: topics) { device.mayOffer($0.name) }
      + values(of: device, topics: topics)
    let options = self.topics.changeOptionsRequest
    let ofGateway = [self.topics.bridgeState]
    func set(_ option: String, _ isOn: Bool) -> String {
      let request: JSONValue = [
        "id": .string(device.id.description), "options": .object([option: .bool(isOn)]),
      ]
      return request.written
    }
    let log = DiscoveryComponent.switch(
      "log", name: "Publish data log", topic: topics.info, template: .isLogPublished, command: options,
      on: set("log", true), off: set("log", false), category: "config", availability: ofGateway)
    let identify = DiscoveryComponent.button(
      "identify", name: "Identify", command: self.topics.identifyRequest,
      request: ["id": .string(device.id.description)], deviceClass: "identify")
    let own: [DiscoveryComponent] =
      (device.mayIdentify ? [identify] : []) + [
        connectivity(topics),
        DiscoveryComponent(
          .sensor, "rssi", name: "Signal strength", topic: topics.info, deviceClass: "signal_strength",
          // While it is connected it advertises nothing: that of before stays, and is no measurement.
          stateClass: device.profile.hasLinks ? nil : "measurement", unit: "dBm", category: "diagnostic",
          ["val_tpl": InfoTemplate("rssi").json]),
        DiscoveryComponent(
          .sensor, "firmware", name: "Firmware", topic: topics.info, category: "diagnostic",
          ["val_tpl": InfoTemplate("firmware").json]),
        DiscoveryComponent(
          .sensor, "model", name: "Model", topic: topics.info, category: "diagnostic",
          ["val_tpl": InfoTemplate("model").json]),
        .switch(
          "enabled", name: "Enabled", topic: topics.info, template: InfoTemplate("enabled"),
          command: options, on: set("enabled", true), off: set("enabled", false), category: "config",
          availability: ofGateway),
      ]
    // What comes by radio has no signal strength, and says nothing of the firmware.
    if device.address.radioSender != nil {
      return properties + own.filter { !["rssi", "firmware", "model"].contains($0.key) }
    }
    // Without links there is none to be made again.
    if !device.profile.hasLinks { return properties + own }
    return properties + own + (device.mayHaveLog ? [log] : []) + [
      // Needed most while the device is offline.
      .button(
        "reconnect", name: "Reconnect", command: self.topics.reconnectRequest,
        request: ["id": .string(device.id.description)], deviceClass: "restart", availability: ofGateway)
    ]
  }
}

/// The entity of a part of a property.
private struct PropertyEntity {
  let property: Property
  let part: HomeAssistantEntity.Part
  let topics: DeviceTopics.Topics

  private var codec: Codec { property.codec }
  private var isText: Bool { codec.isPlain && codec.words.isEmpty && !codec.isPicture }
  private var fieldTemplate: InfoTemplate? { part.field.map { InfoTemplate($0) } }
  private var commandTemplate: JSONValue? { isText ? InfoTemplate.command.json : nil }

  /// The topic of the state; nil: there is none, and Home Assistant shows what it sent last.
  private var state: TopicName? {
    property.kind == .state && (property.isReadable || property.isNotifying) ? topics.value : nil
  }

  /// The entity, and what starts an automation when one of its events happens.
  var components: [DiscoveryComponent] {
    guard case .event = part.entity.kind else { return [component] }
    return [component]
      + codec.words.sorted { $0.key < $1.key }.map { number, word in
        .trigger(part.triggerKey(number), name: part.name, topic: topics.value, type: word)
      }
  }

  var component: DiscoveryComponent {
    switch part.entity.kind {
    case .sensor(let stateClass): sensor(stateClass)
    case .binarySensor:
      make(
        .binarySensor, topic: topics.value, deviceClass: part.deviceClass,
        [
          "pl_on": fieldTemplate == nil ? "true" : "True", "pl_off": fieldTemplate == nil ? "false" : "False",
          "val_tpl": fieldTemplate?.json,
        ])
    case .number(let mode): number(mode)
    case .select(let choices): select(choices)
    case .switch(let on, let off):
      make(
        .switch, topic: state, command: topics.set, deviceClass: part.deviceClass,
        ["pl_on": .string(payload(on)), "pl_off": .string(payload(off))])
    case .event:
      make(
        .event, topic: topics.value, deviceClass: part.deviceClass,
        [
          "evt_typ": .array(codec.words.inOrder.map(JSONValue.string)),
          "val_tpl": InfoTemplate.event(of: codec.words.inOrder).json,
        ])
    case .text: text
    case .notify: make(.notify, command: topics.set, ["cmd_tpl": commandTemplate])
    case .image:
      make(.image, ["img_t": .string((topics.image ?? topics.value).string), "cont_type": "image/svg+xml"])
    }
  }

  private func make(
    _ platform: Platform, topic: TopicName? = nil, command: TopicName? = nil, deviceClass: String? = nil,
    stateClass: String? = nil, unit: String? = nil, _ own: JSONValue
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      platform, part.key, name: part.name, topic: topic, command: command, deviceClass: deviceClass,
      stateClass: stateClass, unit: unit, category: part.entity.category?.rawValue,
      own.setting("en", to: part.entity.isEnabled ? nil : .bool(false)))
  }

  private func sensor(_ stateClass: HomeAssistantEntity.StateClass?) -> DiscoveryComponent {
    let words: [String]? = if case .words(let words) = part.content { words } else { nil }
    let shown: InfoTemplate? =
      switch (part.content, part.field) {
      case (.words(let words), let field): .word(of: words, in: field)
      case (.text, let field?): .text(in: field)
      case (.text, nil) where isText: .sensorText
      case _: fieldTemplate
      }
    let decimals = part.unit.flatMap { property.decimals(of: part.content, in: $0) }
    return make(
      .sensor, topic: topics.value, deviceClass: part.deviceClass, stateClass: stateClass?.rawValue,
      unit: part.unit,
      [
        "ops": words.map { .array($0.map(JSONValue.string)) }, "val_tpl": shown?.json,
        "sug_dsp_prc": decimals.map(JSONValue.integer),
      ])
  }

  private func number(_ mode: HomeAssistantEntity.Mode) -> DiscoveryComponent {
    let range = property.range ?? codec.range ?? 0...0
    return make(
      .number, topic: state, command: topics.set, deviceClass: part.deviceClass, unit: part.unit,
      [
        "min": JSONValue(number: range.lowerBound), "max": JSONValue(number: range.upperBound),
        // The smallest that Home Assistant allows.
        "step": JSONValue(number: max(codec.step ?? 0, 0.001)), "mode": .string(mode.rawValue),
        "val_tpl": state == nil ? nil : InfoTemplate.number(in: range).json,
      ])
  }

  private func select(_ choices: [HomeAssistantEntity.Choice]) -> DiscoveryComponent {
    let options = choices.isEmpty ? codec.words.inOrder : choices.map(\.label)
    // Nil: the options themselves.
    let payloads = choices.isEmpty ? nil : choices.map { payload($0.value) }
    func lookUp(_ from: [String], _ to: [String]) -> JSONValue {
      let members = zip(from, to).map { JSONObject.Member(name: $0, value: .string($1)) }
      let map = JSONValue.object(JSONObject(members)).written
      return .string("{{ \(map).get(value) }}")
    }
    let shown = payloads.map { lookUp($0, options) } ?? InfoTemplate.word(of: options).json
    return make(
      .select, topic: state, command: topics.set,
      [
        "ops": .array(options.map(JSONValue.string)), "val_tpl": state == nil ? nil : shown,
        "cmd_tpl": payloads.map { lookUp(options, $0) },
      ])
  }

  private var text: DiscoveryComponent {
    // Home Assistant's own limit is 255.
    let longest = min(property.longestText ?? 255, 255)
    let shown: InfoTemplate? = isText ? .plainText(longest: longest) : fieldTemplate
    return make(
      .text, topic: state, command: topics.set,
      [
        "val_tpl": state == nil ? nil : shown?.json, "cmd_tpl": commandTemplate, "max": .integer(longest),
      ])
  }

  /// The value as it is published when it is read: 20 as `20.0` where numbers are fractional.
  private func payload(_ value: Value) -> String {
    let read = (try? codec.decode(codec.encode(value))) ?? value
    return String(decoding: Payload.value(read, codec), as: UTF8.self)
  }
}

extension Property {
  /// The decimals that are shown of the property's numbers, or of those of a field; nil unless they are known: those of the
  /// step, as the two of 0.25. Of 1/256, which has eight, they are the three that tell two numbers apart.
  fileprivate func decimals(of content: Codec.Content, in unit: String) -> Int? {
    guard case .number(let step?) = content else { return nil }
    let factors = [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
    func isWhole(_ number: Double, at decimals: Int) -> Bool {
      let scaled = number * factors[decimals]
      return abs(scaled.rounded() - scaled) < 1e-6
    }
    let least = factors.firstIndex { step * $0 > 1 - 1e-6 } ?? 6
    let own = (least...min(least + 2, 6)).first { isWhole(step, at: $0) } ?? least
    let decimals = (own...6).first { isWhole(offset ?? 0, at: $0) } ?? 6
    return min(decimals, Discovery.precisions[unit].map { $0 + 1 } ?? 6)
  }
}
