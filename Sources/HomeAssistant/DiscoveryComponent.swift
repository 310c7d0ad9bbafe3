import JSON
import MQTT

/// An entity in a discovery document, without what all entities of a device have in common.
///
/// Templates hold names that this program or a profile gives, and nothing that a peripheral sends.
struct DiscoveryComponent {
  /// Unique within its device, and never changed: the entity's history depends on it.
  let key: String
  let platform: Platform
  /// The members in Home Assistant's abbreviations; what is nil is left out.
  let members: JSONValue

  /// A value, as a topic has it or as `template` takes it out of the payload.
  static func sensor(
    _ key: String, name: String, topic: TopicName, template: InfoTemplate?, deviceClass: String? = nil,
    stateClass: String? = nil, unit: String? = nil, category: String?, options: [String]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .sensor,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "stat_cla": stateClass.map(JSONValue.string), "unit_of_meas": unit.map(JSONValue.string),
        "ent_cat": category.map(JSONValue.string), "ops": options.map { .array($0.map(JSONValue.string)) },
        "stat_t": .string(topic.string), "val_tpl": template.map { .string($0.text) },
      ])
  }

  /// Whether something is connected, from a topic with `online` or `offline`.
  ///
  /// - Parameter availability: on what that information depends.
  static func connectivity(
    _ key: String, name: String, topic: TopicName, availability: [TopicName]
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .binarySensor,
      members: [
        "name": .string(name), "dev_cla": "connectivity", "ent_cat": "diagnostic",
        "stat_t": .string(topic.string), "pl_on": "online", "pl_off": "offline",
        "avty": .availability(availability),
      ])
  }

  /// A number to set.
  ///
  /// - Parameter step: between the numbers that Home Assistant offers, which allows none below 0.001.
  static func number(
    _ key: String, name: String, topic: TopicName, command: TopicName, range: ClosedRange<Double>,
    step: Double, mode: String, deviceClass: String?, unit: String?, category: String?
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .number,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "unit_of_meas": unit.map(JSONValue.string), "ent_cat": category.map(JSONValue.string),
        "stat_t": .string(topic.string), "cmd_t": .string(command.string),
        "min": JSONValue(number: range.lowerBound), "max": JSONValue(number: range.upperBound),
        "step": JSONValue(number: max(step, 0.001)),
        "mode": .string(mode),
      ])
  }

  /// An event, from a topic whose JSON has an `event_type`.
  static func event(
    _ key: String, name: String, topic: TopicName, types: [String], deviceClass: String?, category: String?
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .event,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "ent_cat": category.map(JSONValue.string), "stat_t": .string(topic.string),
        "evt_typ": .array(types.map(JSONValue.string)),
      ])
  }

  /// Starts an automation when the event happens. Not an entity: shown among the device's automations.
  ///
  /// - Parameters:
  ///   - topic: of the event; its JSON has `event_type`.
  ///   - name: of the part that is pressed, turned …
  static func trigger(_ key: String, name: String, topic: TopicName, type: String) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .deviceTrigger,
      members: [
        "atype": "trigger", "type": .string(standardTriggers[type] ?? type), "stype": .string(name),
        "t": .string(topic.string), "val_tpl": "{{ value_json.event_type }}", "pl": .string(type),
      ])
  }

  /// Types that Home Assistant shows as a sentence, such as `"Button A" pressed`.
  private static let standardTriggers = [
    "press_start": "button_short_press", "press_end": "button_short_release",
    "long_press_start": "button_long_press", "long_press_end": "button_long_release",
  ]

  /// A value that is true or false.
  static func flag(
    _ key: String, name: String, topic: TopicName, deviceClass: String?, category: String?
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .binarySensor,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "ent_cat": category.map(JSONValue.string), "stat_t": .string(topic.string), "pl_on": "true",
        "pl_off": "false",
      ])
  }

  /// A choice of values.
  ///
  /// - Parameters:
  ///   - topic: nil: without a state.
  ///   - payloads: of the options; nil: the options themselves.
  static func select(
    _ key: String, name: String, topic: TopicName?, command: TopicName, options: [String],
    payloads: [String]?, category: String?
  ) -> DiscoveryComponent {
    func lookUp(_ from: [String], _ to: [String]) -> JSONValue {
      let members = zip(from, to).map { JSONObject.Member(name: $0, value: .string($1)) }
      let map = String(decoding: JSONValue.object(JSONObject(members)).bytes, as: UTF8.self)
      return .string("{{ \(map).get(value) }}")
    }
    let known = JSONValue.string(InfoTemplate.word(of: options).text)
    return DiscoveryComponent(
      key: key, platform: .select,
      members: [
        "name": .string(name), "ent_cat": category.map(JSONValue.string),
        "stat_t": topic.map { .string($0.string) }, "cmd_t": .string(command.string),
        "ops": .array(options.map(JSONValue.string)),
        "val_tpl": topic == nil ? nil : payloads.map { lookUp($0, options) } ?? known,
        "cmd_tpl": payloads.map { lookUp(options, $0) },
      ])
  }

  /// - Parameters:
  ///   - topic: nil: without a state.
  ///   - template: extracts the state from the topic's payload, in the form of `on`.
  static func `switch`(
    _ key: String, name: String, topic: TopicName?, template: InfoTemplate? = nil, command: TopicName,
    on: String, off: String, states: (on: String, off: String)? = nil, deviceClass: String? = nil,
    category: String?, availability: [TopicName]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .switch,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "ent_cat": category.map(JSONValue.string), "stat_t": topic.map { .string($0.string) },
        "val_tpl": template.map { .string($0.text) }, "cmd_t": .string(command.string),
        "pl_on": .string(on), "pl_off": .string(off), "stat_on": states.map { .string($0.on) },
        "stat_off": states.map { .string($0.off) }, "avty": availability.map(JSONValue.availability),
      ])
  }

  /// A text to send.
  ///
  /// - Parameters:
  ///   - topic: nil: without a state.
  ///   - template: extracts the state from the topic's payload.
  static func text(
    _ key: String, name: String, topic: TopicName?, template: InfoTemplate?, command: TopicName, longest: Int,
    category: String?
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .text,
      members: [
        "name": .string(name), "ent_cat": category.map(JSONValue.string),
        "stat_t": topic.map { .string($0.string) },
        "val_tpl": topic.flatMap { _ in template.map { .string($0.text) } },
        "cmd_t": .string(command.string),
        // Home Assistant's own limit is 255.
        "max": .integer(min(longest, 255)),
      ])
  }

  /// A text that automations send.
  static func notify(_ key: String, name: String, command: TopicName, category: String?) -> DiscoveryComponent
  {
    DiscoveryComponent(
      key: key, platform: .notify,
      members: [
        "name": .string(name), "ent_cat": category.map(JSONValue.string), "cmd_t": .string(command.string),
      ])
  }

  /// A picture, from a topic with SVG.
  static func image(_ key: String, name: String, topic: TopicName, category: String?) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .image,
      members: [
        "name": .string(name), "ent_cat": category.map(JSONValue.string), "img_t": .string(topic.string),
        "cont_type": "image/svg+xml",
      ])
  }

  /// A button that sends a request to the gateway.
  ///
  /// - Parameter availability: nil: the same as for the other entities.
  static func button(
    _ key: String, name: String, command: TopicName, request: JSONValue, deviceClass: String? = nil,
    availability: [TopicName]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .button,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string), "ent_cat": "diagnostic",
        "cmd_t": .string(command.string),
        "pl_prs": .string(String(decoding: request.bytes, as: UTF8.self)),
        "avty": availability.map(JSONValue.availability),
      ])
  }
}

extension DiscoveryComponent {
  /// The members without the device's name in the entity's, which Home Assistant puts before it: the entity *Door* of the
  /// device *Door* has no name of its own.
  func named(beside device: String?) -> JSONValue {
    guard let device, let name = members["name"]?.text,
      name.prefix(device.count).lowercased() == device.lowercased()
    else { return members }
    let rest = name.dropFirst(device.count)
    if rest.isEmpty { return members.setting("name", to: .null) }
    return rest.first == " " ? members.setting("name", to: .string(String(rest.dropFirst()))) : members
  }
}

extension JSONValue {
  /// Topics with `online` or `offline`.
  static func availability(_ topics: [TopicName]) -> JSONValue {
    .array(topics.map { ["t": .string($0.string)] })
  }
}

/// Takes a value out of JSON, in Home Assistant (Jinja).
///
/// A member that is missing, or a topic that was cleared, makes the entity `unknown`, and Home Assistant logs nothing.
struct InfoTemplate: Sendable {
  let text: String

  /// - Parameter path: the keys from the outside in, as literals of this program.
  init(_ path: StaticString...) {
    self.init(keys: path.map(\.description))
  }

  /// A field of a record.
  init(field name: String) {
    self.init(keys: [name])
  }

  /// The count of this name.
  init(counter name: String) {
    self.init(keys: ["counters", name])
  }

  /// What is added to the values of the property of this name.
  static func offset(of property: String) -> InfoTemplate {
    InfoTemplate(keys: ["adjust", property, "offset"], else: "0")
  }

  private init(keys: [String], else none: String = "none") {
    var value = "value_json|default({})"
    for key in keys.dropLast() { value = "(\(value)).\(key)|default({})" }
    text = "{{ (\(value)).\(keys.last ?? "")|default(\(none)) }}"
  }

  /// Whether the rows of a data log are published.
  static let isLogPublished = InfoTemplate(text: "{{ 'log' in (value_json|default({})) }}")

  /// The state of an adapter, by its place in the list.
  static func adapterState(_ index: Int) -> InfoTemplate {
    let adapters = "((value_json|default({})).adapters|default([],true))"
    return InfoTemplate(text: "{{ (\(adapters)[\(index)]|default({})).state|default(none) }}")
  }

  /// A text, of which ``Payload/value(_:_:)`` publishes some as JSON strings; Home Assistant refuses a longer one.
  static func plainText(longest: Int) -> InfoTemplate {
    InfoTemplate(text: "{{ \(words)[:\(longest)] }}")
  }

  /// A text of a sensor, which is unknown when the topic was cleared. Home Assistant takes no text for a time.
  static let sensorText = InfoTemplate(text: "{{ none if value == '' else \(words)[:255] }}")

  private static let words = #"(value_json|default(value) if value[:1] == '"' else value)"#

  /// A number: Home Assistant refuses one outside of the range, and shows the number before.
  static func number(in range: ClosedRange<Double>) -> InfoTemplate {
    let (least, most) = (JSONValue(number: range.lowerBound), JSONValue(number: range.upperBound))
    func text(_ number: JSONValue) -> String { String(decoding: number.bytes, as: UTF8.self) }
    return InfoTemplate(
      text: "{{ value if is_number(value) and \(text(least)) <= value|float <= \(text(most)) else none }}")
  }

  /// One of the words, and not the number of a word that is not known.
  static func word(of words: [String]) -> InfoTemplate {
    let list = String(decoding: JSONValue.array(words.map(JSONValue.string)).bytes, as: UTF8.self)
    return InfoTemplate(text: "{{ value if value in \(list) else none }}")
  }

  /// The command that pairs with a device that wants it.
  static var pairing: InfoTemplate {
    InfoTemplate(text: "{{ ((value_json|default({})).devices|default({})).pairing|default('no') }}")
  }

  private init(text: String) {
    self.text = text
  }
}
