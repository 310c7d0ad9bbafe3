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
}

extension DiscoveryComponent {
  /// - Parameters:
  ///   - topic: of the state; nil: it has none.
  ///   - availability: on what the entity depends; nil: on the same as the others of its device.
  ///   - own: the members that only some platforms have.
  init(
    _ platform: Platform, _ key: String, name: String, topic: TopicName? = nil, command: TopicName? = nil,
    deviceClass: String? = nil, stateClass: String? = nil, unit: String? = nil, category: String? = nil,
    availability: [TopicName]? = nil, _ own: JSONValue = [:]
  ) {
    // Of the two micro signs, Home Assistant takes the other one for a current, and either for others.
    let unit = deviceClass == "current" && unit == "µA" ? "\u{3BC}A" : unit
    let common: JSONValue = [
      "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
      "stat_cla": stateClass.map(JSONValue.string), "unit_of_meas": unit.map(JSONValue.string),
      "ent_cat": category.map(JSONValue.string), "stat_t": topic.map { .string($0.string) },
      "cmd_t": command.map { .string($0.string) },
    ]
    self.init(
      key: key, platform: platform,
      members: common.merging(own).setting("avty", to: availability.map(JSONValue.availability)))
  }

  /// Whether something is connected, from a topic with `online` or `offline`.
  static func connectivity(
    _ key: String, name: String, topic: TopicName, availability: [TopicName]
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      .binarySensor, key, name: name, topic: topic, deviceClass: "connectivity", category: "diagnostic",
      availability: availability, ["pl_on": "online", "pl_off": "offline"])
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
        "t": .string(topic.string), "val_tpl": InfoTemplate("event_type").json, "pl": .string(type),
      ])
  }

  /// Types that Home Assistant shows as a sentence, such as `"Button A" pressed`.
  private static let standardTriggers = [
    "press_start": "button_short_press", "press_end": "button_short_release",
    "long_press_start": "button_long_press", "long_press_end": "button_long_release",
  ]

  /// A switch that sends requests to the gateway.
  ///
  /// - Parameter template: makes `True` or `False` of the topic's JSON.
  static func `switch`(
    _ key: String, name: String, topic: TopicName, template: InfoTemplate, command: TopicName, on: String,
    off: String, category: String?, availability: [TopicName]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      .switch, key, name: name, topic: topic, command: command, category: category,
      availability: availability,
      [
        "val_tpl": template.json, "pl_on": .string(on), "pl_off": .string(off), "stat_on": "True",
        "stat_off": "False",
      ])
  }

  /// A button that sends a request to the gateway.
  static func button(
    _ key: String, name: String, command: TopicName, request: JSONValue, deviceClass: String? = nil,
    availability: [TopicName]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      .button, key, name: name, command: command, deviceClass: deviceClass, category: "diagnostic",
      availability: availability, ["pl_prs": .string(request.written)])
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
  private let text: String
  var json: JSONValue { .string(text) }

  /// - Parameter path: the keys from the outside in. In brackets, as Jinja takes `.items` for Python's method.
  init(_ path: String...) { self.init(keys: path) }

  /// What is added to the values of the property of this name.
  static func offset(of property: String) -> InfoTemplate {
    InfoTemplate(keys: ["adjust", property, "offset"], else: "0")
  }

  private init(keys: [String], else none: String = "none") {
    var value = "value_json|default({})"
    for key in keys.dropLast() { value = "(\(value))['\(key)']|default({})" }
    text = "{{ (\(value))['\(keys.last ?? "")']|default(\(none)) }}"
  }

  /// Whether the rows of a data log are published.
  static let isLogPublished = InfoTemplate(text: "{{ 'log' in (value_json|default({})) }}")

  /// The state of an adapter, by its place in the list.
  static func adapterState(_ index: Int) -> InfoTemplate {
    let adapters = "((value_json|default({})).adapters|default([],true))"
    return InfoTemplate(text: "{{ (\(adapters)[\(index)]|default({})).state|default(none) }}")
  }

  /// What sends a text as it is, also one that would be JSON by itself.
  static let command = InfoTemplate(text: "{{ {'value': value}|to_json }}")

  /// A text, of which ``Payload/value(_:_:)`` publishes some as JSON strings; Home Assistant refuses a longer one.
  static func plainText(longest: Int) -> InfoTemplate {
    InfoTemplate(text: "{{ \(words)[:\(longest)] }}")
  }

  /// A text of a sensor, which is unknown when the topic was cleared. Home Assistant takes no text for a time.
  static let sensorText = InfoTemplate(text: "{{ none if value == '' else \(words)[:255] }}")

  /// A text in a field, as long as Home Assistant takes it.
  static func text(in field: String) -> InfoTemplate {
    InfoTemplate(text: "{{ \(member(field))[:255] if \(member(field)) is string else none }}")
  }

  private static func member(_ field: String) -> String { "(value_json|default({}))['\(field)']" }

  private static let words = #"(value_json|default(value) if value[:1] == '"' else value)"#

  /// A number: Home Assistant refuses one outside of the range, and shows the number before.
  static func number(in range: ClosedRange<Double>) -> InfoTemplate {
    let least = JSONValue(number: range.lowerBound).written
    let most = JSONValue(number: range.upperBound).written
    return InfoTemplate(
      text: "{{ value if is_number(value) and \(least) <= value|float <= \(most) else none }}")
  }

  /// One of the words, and not the number of a word that is not known.
  /// - Parameter field: nil: the payload is the word.
  static func word(of words: [String], in field: String? = nil) -> InfoTemplate {
    let word = field.map(member) ?? "value"
    return InfoTemplate(text: "{{ \(word) if \(word) in \(list(words)) else none }}")
  }

  /// An event of one of the types: Home Assistant knows no other, and ignores what is empty.
  static func event(of types: [String]) -> InfoTemplate {
    InfoTemplate(text: "{{ value if \(member("event_type")) in \(list(types)) else '' }}")
  }

  private static func list(_ words: [String]) -> String {
    JSONValue.array(words.map(JSONValue.string)).written
  }

  /// The command that pairs with a device that wants it.
  static let pairing = InfoTemplate(keys: ["devices", "pairing"], else: "'no'")

  private init(text: String) {
    self.text = text
  }
}
