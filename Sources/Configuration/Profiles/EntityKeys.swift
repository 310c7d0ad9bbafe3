import GATT
import JSON

/// How Home Assistant shows a property.
struct EntityKeys: ConfigurationSection, Equatable {
  enum Platform: String, CaseIterable {
    case sensor
    case binarySensor = "binary_sensor"
    case number, select, `switch`, event, text, notify, image
  }

  var platform = Platform.sensor
  /// What all platforms have; its kind is a placeholder, which ``entity(_:at:_:)`` replaces.
  var common = HomeAssistantEntity(.image, name: "")
  var stateClass: HomeAssistantEntity.StateClass?
  var mode: HomeAssistantEntity.Mode?
  var options: [Named<JSONValue>]?
  var on: JSONValue?
  var off: JSONValue?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "platform", \.platform, .choice),
    ConfigurationKey("field", \.common.field, .optional(.text(longest: 64))),
    ConfigurationKey("key", \.common.key, .optional(.text(longest: 64))),
    ConfigurationKey(required: "name", \.common.name, .label),
    ConfigurationKey("device_class", \.common.deviceClass, .optional(.text(longest: 64))),
    ConfigurationKey("state_class", \.stateClass, .optional(.choice)),
    ConfigurationKey("unit", \.common.unit, .optional(.text(longest: 32))),
    ConfigurationKey("category", \.common.category, .optional(.choice)),
    ConfigurationKey("enabled_by_default", \.common.isEnabled, .bool),
    ConfigurationKey("mode", \.mode, .optional(.choice)),
    ConfigurationKey("options", \.options, .optional(.choices)),
    ConfigurationKey("on", \.on, .optional(.any)),
    ConfigurationKey("off", \.off, .optional(.any)),
  ]

  func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    let platforms: KeyValuePairs<String, Platform> = [
      "state_class": .sensor, "mode": .number, "options": .select, "on": .switch, "off": .switch,
    ]
    var errors = platforms.filter { given.contains($0.key) && $0.value != platform }.map {
      path.key($0.key).error("only the platform \($0.value.rawValue) has this key")
    }
    if common.field != nil, platform != .sensor, platform != .binarySensor {
      errors.append(path.key("field").error("only a sensor and a binary_sensor show one field"))
    }
    return errors
  }

  /// What does not suit the values that it shows.
  private func problems(with codec: Codec, at path: ConfigurationPath) -> [ConfigurationError] {
    let content = common.field.map { codec.content(of: $0) } ?? codec.content
    if let field = common.field, content == nil {
      let hint = codec.fields.map { suggestion(for: field, among: $0) } ?? "only a record has fields"
      return [path.key("field").error("there is no field \(Excerpt(field))", hint: hint)]
    }
    // Of a record that is shown as a whole, the fields that are numbers have them.
    guard platform == .sensor, let content, !content.isNumber, content != .several else { return [] }
    return [("state_class", stateClass != nil), ("unit", common.unit != nil)].filter(\.1).map { key, _ in
      path.key(key).error("only a number has a \(key)", hint: "remove it")
    }
  }

  /// The entity of a property with `codec`; nil, with an error, for a value that it does not have.
  func entity(
    _ codec: Codec, at path: ConfigurationPath, _ errors: inout [ConfigurationError]
  ) -> HomeAssistantEntity? {
    func value(_ json: JSONValue, at path: ConfigurationPath) -> Value? {
      if let value = codec.value(json) { return value }
      errors.append(path.error("expected \(codec.valueDescription), found \(codec.found(json))"))
      return nil
    }
    let before = errors.count
    errors += problems(with: codec, at: path)
    let kind: HomeAssistantEntity.Kind?
    switch platform {
    case .sensor: kind = .sensor(stateClass)
    case .binarySensor: kind = .binarySensor
    case .number: kind = .number(mode ?? .box)
    case .select:
      kind = .select(
        (options ?? []).compactMap { option in
          value(option.value, at: path.key("options").key(option.name))
            .map { HomeAssistantEntity.Choice(option.name, $0) }
        })
    case .switch:
      // The two are read before either is used, so that the errors of both are reported.
      let (on, off) = (
        value(on ?? .bool(true), at: path.key("on")), value(off ?? .bool(false), at: path.key("off"))
      )
      kind = on.flatMap { on in off.map { .switch(on: on, off: $0) } }
    case .event: kind = .event
    case .text: kind = .text
    case .notify: kind = .notify
    case .image: kind = .image
    }
    guard let kind, errors.count == before else { return nil }
    var entity = common
    entity.kind = kind
    return entity
  }

  init() {}

  /// - Parameter codec: of the property.
  init(_ entity: HomeAssistantEntity, codec: Codec) {
    switch entity.kind {
    case .sensor(let stateClass):
      platform = .sensor
      self.stateClass = stateClass
    case .binarySensor: platform = .binarySensor
    case .number(let mode):
      platform = .number
      self.mode = mode == .box ? nil : mode
    case .select(let choices):
      platform = .select
      options = choices.isEmpty ? nil : choices.map { Named($0.label, codec.json($0.value)) }
    case .switch(let on, let off):
      platform = .switch
      self.on = on == .bool(true) ? nil : codec.json(on)
      self.off = off == .bool(false) ? nil : codec.json(off)
    case .event: platform = .event
    case .text: platform = .text
    case .notify: platform = .notify
    case .image: platform = .image
    }
    common = entity
  }
}

extension ConfigurationRule<[Named<JSONValue>]> {
  /// The values to choose from, by what is displayed: `{"5 s": 5000}`.
  fileprivate static var choices: Self {
    .members(of: .any) { label in
      (1...64).contains(label.unicodeScalars.count)
        ? nil : ConfigurationProblem("must have 1 to 64 characters", hint: #"example: {"5 s": 5000}"#)
    }
  }
}
