/// How Home Assistant shows a property: what its entity is made of, as data.
///
/// The words are those of Home Assistant's MQTT integration. A property that has this is an entity there; one that
/// has none stays on MQTT alone.
public struct HomeAssistantEntity: Sendable, Hashable {
  /// What kind of entity it is. A property keeps its kind under its name: Home Assistant takes another kind for
  /// another entity.
  public enum Kind: Sendable, Hashable {
    /// A value to look at; with a state class, long-term statistics are kept of it. A record is shown as one sensor for
    /// each of its fields.
    case sensor(StateClass?)
    /// A value to set, within the property's range. For properties with ``Property/Access/write`` only.
    case number(Mode)
    /// Something that happens; its event types are the words of the property's codec.
    case event
    /// A text to send, no longer than the property's `max_length`.
    case text
  }

  /// What a value means over time.
  public enum StateClass: String, Sendable, Hashable, CaseIterable {
    /// The state at the moment: a mean of it makes sense.
    case measurement
    /// A count that only grows, and begins at 0 again when its owner does.
    case totalIncreasing = "total_increasing"
  }

  /// How a number is set.
  public enum Mode: String, Sendable, Hashable, CaseIterable {
    /// Typed.
    case box
    /// Drawn: for ranges of which every value can be met by hand.
    case slider
  }

  /// Where the entity stands on the page of its device; nil: among what the device is for.
  public enum Category: String, Sendable, Hashable, CaseIterable {
    /// For numbers; a sensor with it is refused.
    case config
    /// For what tells how the device fares, not what it is there for.
    case diagnostic
  }

  /// Decides the platform (`sensor`, `number` …), which stays for good: see ``Kind``.
  public let kind: Kind
  /// What people read, after the name of the device: `Temperature`.
  public let name: String
  /// `temperature`, `duration` …; the unit must be one that the class knows.
  public let deviceClass: String?
  /// In Home Assistant's spelling, where it differs from that of ``Property/unit``.
  public let unit: String?
  /// Nil for what the device is there for.
  public let category: Category?

  /// Without a device class or category unless one is named, and with the property's own unit.
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
  /// One entity, of which a record has as many as it has visible fields and everything else one.
  public struct Part: Sendable, Hashable {
    /// Unique in the profile: `temperature`; `accelerometer_x`.
    public let key: String
    /// What people read: `Temperature`; `Acceleration x`.
    public let name: String
    /// The member of the property's JSON object that it shows (`{{ value_json.x }}`); nil: the whole payload.
    public let field: String?
  }
}

extension Property {
  /// The entities that ``homeAssistant`` makes of the property; none without it.
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
