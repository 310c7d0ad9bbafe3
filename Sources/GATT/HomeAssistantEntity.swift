/// How Home Assistant shows a property, in the terms of its MQTT integration. A property without it has no entity.
public struct HomeAssistantEntity: Sendable, Hashable {
  /// The kind of entity. It must not change while the property keeps its name: for Home Assistant, another kind is
  /// another entity.
  public enum Kind: Sendable, Hashable {
    /// A value that is displayed; with a state class, Home Assistant keeps long-term statistics. A record is shown as
    /// one sensor for each field.
    case sensor(StateClass?)
    /// A number that can be set within the property's range. Needs ``Property/Access/write``.
    case number(Mode)
    /// Something that happens; its event types are the words of the property's codec.
    case event
    /// A text that can be sent, no longer than the property's `max_length`.
    case text
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
    /// A setting. For numbers; Home Assistant refuses a sensor with it.
    case config
    /// A technical detail of the device, such as its signal strength.
    case diagnostic
  }

  /// Decides the platform (`sensor`, `number` …).
  public let kind: Kind
  /// Shown after the name of the device: `Temperature`.
  public let name: String
  /// `temperature`, `duration` …; the unit must be one of the class's units.
  public let deviceClass: String?
  /// In Home Assistant's spelling; nil: ``Property/unit``.
  public let unit: String?
  /// Nil for a main function of the device.
  public let category: Category?

  /// The defaults: no device class or category, the property's own unit.
  public init(
    _ kind: Kind, name: String, deviceClass: String? = nil, unit: String? = nil, category: Category? = nil
  ) {
    self.kind = kind
    self.name = name
    self.deviceClass = deviceClass
    self.unit = unit
    self.category = category
  }
}

extension HomeAssistantEntity {
  /// One entity. A record has one for each visible field, every other property one.
  public struct Part: Sendable, Hashable {
    /// Unique in the profile: `temperature`; `accelerometer_x`.
    public let key: String
    /// The displayed name: `Temperature`; `Acceleration x`.
    public let name: String
    /// The member of the property's JSON object that it shows (`{{ value_json.x }}`); nil: the whole payload.
    public let field: String?
  }
}

extension Property {
  /// The entities of the property; none without ``homeAssistant``.
  public var homeAssistantParts: [HomeAssistantEntity.Part] {
    guard let homeAssistant else { return [] }
    guard let fields = codec.fields else {
      return [HomeAssistantEntity.Part(key: name, name: homeAssistant.name, field: nil)]
    }
    return fields.map { field in
      HomeAssistantEntity.Part(key: "\(name)_\(field)", name: "\(homeAssistant.name) \(field)", field: field)
    }
  }
}
