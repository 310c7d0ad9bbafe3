/// What the gateway knows about a kind of peripheral, as data.
public struct Profile: Sendable, Hashable {
  /// What shows that a link is alive: a property whose values come by themselves.
  public struct Alive: Sendable, Hashable {
    /// The index of that property in ``Profile/properties``.
    public let property: Int
    /// The index of the property that holds the time between two of its values, in ms, if there is one.
    public let period: Int?
  }

  /// The name as `info` shows it: `microbit`.
  public let name: String
  /// Who makes them, for people; may be empty.
  public let manufacturer: String
  /// What they are, for people; a peripheral that says its model itself knows better.
  public let model: String?
  /// The services without which a peripheral is not one of this kind; may be empty.
  public let requires: [BluetoothUUID]
  /// What to tell the user when one of those is absent: the likely cause and what to do about it.
  public let missingHint: String?
  /// Nil: the link alone keeps the device alive.
  public let alive: Alive?
  /// Those used unless the configuration names others, in the order of ``properties``.
  public let defaultProperties: [String]
  /// Their order is kept: what belongs to each is found by its place.
  public let properties: [Property]

  /// Checks the whole profile. A profile's `"alive"` is `alive` and `alivePeriod` here.
  ///
  /// - Parameters:
  ///   - alive: the name of the property whose values show that the link is alive.
  ///   - alivePeriod: the name of the property that holds the time between those, in ms.
  ///   - defaultProperties: nil: all.
  public init(
    name: String, manufacturer: String = "", model: String? = nil, requires: [BluetoothUUID] = [],
    missingHint: String? = nil, alive: String? = nil, alivePeriod: String? = nil,
    defaultProperties: [String]? = nil, properties: [Property]
  ) throws(ProfileError) {
    self.name = name
    self.manufacturer = manufacturer
    self.model = model
    self.requires = requires
    self.missingHint = missingHint
    self.properties = properties
    try Self.check(properties)
    self.alive = try Self.alive(alive, alivePeriod, in: properties)
    let defaults = defaultProperties ?? properties.map(\.name)
    for name in defaults where !properties.contains(where: { $0.name == name }) {
      throw .unknownProperty(key: "default_properties", name: name)
    }
    self.defaultProperties = properties.map(\.name).filter(defaults.contains)
    guard !self.defaultProperties.isEmpty else { throw .noProperties }
  }

  private init(_ profile: Profile, _ isIncluded: (Property) -> Bool) {
    name = profile.name
    manufacturer = profile.manufacturer
    model = profile.model
    let properties = profile.properties.filter(isIncluded)
    self.properties = properties
    defaultProperties = properties.map(\.name)
    // A service that only properties that are left out live in is not needed any more.
    let requires = profile.requires.filter { service in
      properties.contains { $0.service == service }
        || !profile.properties.contains { $0.service == service }
    }
    self.requires = requires
    missingHint = requires.isEmpty ? nil : profile.missingHint
    func index(_ old: Int) -> Int? {
      properties.firstIndex { $0.name == profile.properties[old].name }
    }
    alive = profile.alive.flatMap { alive in
      index(alive.property).map { Alive(property: $0, period: alive.period.flatMap(index)) }
    }
  }

  /// The values that are written on every link where the configuration names no others, by property.
  public var initialValues: [String: Value] {
    properties.reduce(into: [:]) { values, property in values[property.name] = property.initial }
  }

  /// The property of this name, if there is one.
  public func property(named name: some StringProtocol) -> Property? {
    properties.first { $0.name == name }
  }

  /// The place of the property of this name, if there is one.
  public func index(ofPropertyNamed name: some StringProtocol) -> Int? {
    properties.firstIndex { $0.name == name }
  }

  /// The profile with these properties only, in the profile's order. All of them are its default properties.
  ///
  /// What ``alive`` refers to goes with the property, and so does the requirement of a service that none of the
  /// remaining properties lives in: a micro:bit of which only the buttons are used needs no temperature service. A
  /// service that no property of the profile lives in identifies the peripheral, and stays required.
  public func limited(to names: Set<String>) -> Profile {
    Profile(self) { names.contains($0.name) }
  }
}
