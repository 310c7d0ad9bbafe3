import Bridge
import Configuration
import JSON
import MQTT

/// An entity in a discovery document, without what all entities of a device have in common.
///
/// Templates hold names that this program gives, and nothing that comes from outside.
struct DiscoveryComponent {
  /// Unique within its device, and never changed: the entity's history depends on it.
  let key: String
  let platform: Platform
  /// In Home Assistant's abbreviations; what is nil is left out.
  let members: JSONValue

  /// A value, as a topic has it or as `template` takes it out of the payload.
  static func sensor(
    _ key: String, name: String, topic: TopicName, template: InfoTemplate? = nil, deviceClass: String? = nil,
    stateClass: String? = nil, unit: String? = nil, category: String? = nil, options: [String]? = nil
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

  /// A value to set, of whole numbers.
  static func number(
    _ key: String, name: String, topic: TopicName, command: TopicName, range: ClosedRange<Double>,
    mode: String, deviceClass: String? = nil, unit: String? = nil, category: String? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .number,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string),
        "unit_of_meas": unit.map(JSONValue.string), "ent_cat": category.map(JSONValue.string),
        "stat_t": .string(topic.string), "cmd_t": .string(command.string),
        "min": .exact(range.lowerBound), "max": .exact(range.upperBound), "step": .integer(1),
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

  /// A text to send, without a state.
  static func text(
    _ key: String, name: String, command: TopicName, longest: Int, category: String?
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .text,
      members: [
        "name": .string(name), "ent_cat": category.map(JSONValue.string), "cmd_t": .string(command.string),
        // Home Assistant's own limit is 255.
        "max": .integer(min(longest, 255)),
      ])
  }

  /// A button that sends a request to the gateway.
  ///
  /// - Parameter availability: nil: the same as for the other entities.
  static func button(
    _ key: String, name: String, command: TopicName, request: JSONValue, category: String,
    deviceClass: String? = nil, availability: [TopicName]? = nil
  ) -> DiscoveryComponent {
    DiscoveryComponent(
      key: key, platform: .button,
      members: [
        "name": .string(name), "dev_cla": deviceClass.map(JSONValue.string), "ent_cat": .string(category),
        "cmd_t": .string(command.string),
        "pl_prs": .string(String(decoding: request.bytes, as: UTF8.self)),
        "avty": availability.map(JSONValue.availability),
      ])
  }
}

extension JSONValue {
  /// A whole number without `.0`.
  static func exact(_ number: Double) -> JSONValue { Int(exactly: number).map(integer) ?? .number(number) }

  /// Topics with `online` or `offline`.
  static func availability(_ topics: [TopicName]) -> JSONValue {
    .array(topics.map { ["t": .string($0.string)] })
  }
}

/// Takes a value out of JSON, in Home Assistant (Jinja).
///
/// A member that is missing, or a topic that was cleared, makes the entity `unknown`, and Home Assistant logs nothing.
struct InfoTemplate {
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

  private init(keys: [String]) {
    var value = "value_json|default({})"
    for key in keys.dropLast() { value = "(\(value)).\(key)|default({})" }
    text = "{{ (\(value)).\(keys.last ?? "")|default(none) }}"
  }

  /// The state of the adapter, the first of the list.
  static let adapterState = InfoTemplate(
    text: "{{ ((value_json|default({})).adapters|default([{}],true)|first).state|default(none) }}")

  private init(text: String) {
    self.text = text
  }
}
