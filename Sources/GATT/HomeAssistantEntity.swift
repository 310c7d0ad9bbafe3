/// How Home Assistant shows a property, in the terms of its MQTT integration. A property without it has no entity.
public struct HomeAssistantEntity: Sendable, Hashable {
  /// The kind of entity. It must not change while the property keeps its name: for Home Assistant, another kind is
  /// another entity.
  public enum Kind: Sendable, Hashable {
    /// A value that is displayed; with a state class, Home Assistant keeps long-term statistics. Of a record, one field is
    /// shown, or each that is no list.
    case sensor(StateClass?)
    /// True or false, displayed as on or off.
    case binarySensor
    /// A number that can be set within the property's range.
    case number(Mode)
    /// A value to choose: one of the words of an enumeration, or one of these choices.
    case select([Choice])
    /// Sets one of two values. Without a state that can be read, Home Assistant assumes what it set last.
    case `switch`(on: Value, off: Value)
    /// Something that happens; its event types are the words of the property's codec. Each is a device trigger too.
    case event
    /// A text that can be sent, no longer than the property's `max_length`, or a picture of bits.
    case text
    /// A text that automations send by the action `notify.send_message`.
    case notify
    /// A picture of bits, displayed.
    case image
  }

  /// A value of a ``Kind/select(_:)``.
  public struct Choice: Sendable, Hashable {
    /// The displayed text: `5 s`.
    public let label: String
    /// The value that is written: 5000.
    public let value: Value

    /// - Parameter value: one that the property can encode.
    public init(_ label: String, _ value: Value) {
      self.label = label
      self.value = value
    }
  }

  /// How a value develops over time.
  public enum StateClass: String, Sendable, Hashable, CaseIterable {
    /// A current value, of which a mean makes sense.
    case measurement
    /// A count that only increases, and restarts at 0 with the peripheral.
    case totalIncreasing = "total_increasing"
  }

  /// How a number is set.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// Typed.
    case box
    /// A slider, for small ranges.
    case slider
  }

  /// The section of the device's page; nil: the main one.
  public enum Category: String, Sendable, Hashable, CaseIterable {
    /// A setting. Home Assistant refuses it for what is only displayed.
    case config
    /// A technical detail of the device, such as its signal strength.
    case diagnostic
  }

  /// Decides the platform (`sensor`, `number` …).
  public var kind: Kind
  /// The field of a record that a sensor or binary sensor shows; nil: the whole value, or each field.
  public var field: String?
  /// Distinguishes the entities of one property: a further part of the unique id. Nil for one of them.
  public var key: String?
  /// Shown after the name of the device: `Temperature`.
  public var name: String
  /// `temperature`, `duration` …; the unit must be one of the class's units.
  public var deviceClass: String?
  /// The unit in Home Assistant's spelling; nil: that of the field or property.
  public var unit: String?
  /// The category in Home Assistant; nil for a main function of the device.
  public var category: Category?
  /// False for what changes all the time, and would fill Home Assistant's database: a user enables it.
  public var isEnabled: Bool

  /// The defaults: no device class or category, the property's own unit.
  public init(
    _ kind: Kind, field: String? = nil, key: String? = nil, name: String, deviceClass: String? = nil,
    unit: String? = nil, category: Category? = nil, isEnabled: Bool = true
  ) {
    self.kind = kind
    self.field = field
    self.key = key
    self.name = name
    self.deviceClass = deviceClass
    self.unit = unit
    self.category = category
    self.isEnabled = isEnabled
  }
}

extension HomeAssistantEntity {
  /// What Home Assistant shows as one entity.
  public struct Part: Sendable, Hashable {
    /// Unique in the profile: `temperature`; `accelerometer_x`.
    public let key: String
    /// The entity, of one field where it shows several.
    public let entity: HomeAssistantEntity
    /// What its values are.
    public let content: Codec.Content
    /// The unit; nil: there is none.
    public let unit: String?

    /// The displayed name: `Temperature`; `Acceleration x`.
    public var name: String { entity.name }
    /// The member of the property's JSON object that it shows (`{{ value_json.x }}`); nil: the whole payload.
    public var field: String? { entity.field }
    /// The device class: a sensor of words has one of its own.
    public var deviceClass: String? {
      if case (.sensor, .words) = (entity.kind, content) { return entity.deviceClass ?? "enum" }
      return entity.deviceClass
    }

    /// The key of the device trigger for the event type with this number.
    public func triggerKey(_ number: Int) -> String { "\(key)_type_\(number)" }
  }

  /// The parts of an entity: one for each field of a record that is displayed as a whole, else one.
  package func parts(of property: Property) -> [Part] {
    let codec = property.codec
    if case .sensor = kind, field == nil, let fields = codec.fields {
      return fields.compactMap { showing($0, of: codec) }.flatMap { $0.parts(of: property) }
    }
    guard let content = field.map({ codec.content(of: $0) }) ?? codec.content else { return [] }
    return [
      Part(
        key: [property.name, key, field].compactMap { $0 }.joined(separator: "_"), entity: self,
        content: content, unit: unit ?? (content.isNumber ? property.unit(of: field) : nil))
    ]
  }

  /// The entity for one of the fields that it shows; nil for a list. What is no number has no unit, class or statistics.
  private func showing(_ field: String, of codec: Codec) -> HomeAssistantEntity? {
    guard let content = codec.content(of: field), content != .several else { return nil }
    var entity = self
    (entity.field, entity.name) = (field, "\(name) \(field.spaced)")
    if content.isNumber {
      entity.unit = codec.units[field] ?? unit
    } else {
      entity.kind = content == .bool ? .binarySensor : .sensor(nil)
      (entity.deviceClass, entity.unit) = (nil, nil)
    }
    return entity
  }
}

extension Property {
  /// What Home Assistant shows of the property; nothing without ``homeAssistant``.
  public var homeAssistantParts: [HomeAssistantEntity.Part] { homeAssistant.flatMap { $0.parts(of: self) } }
}
