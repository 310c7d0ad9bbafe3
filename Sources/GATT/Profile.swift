/// A description of a kind of peripheral: its services and properties.
public struct Profile: Sendable, Equatable {
  /// The property that shows that a link is alive: the peripheral sends its values periodically.
  public struct Alive: Sendable, Hashable {
    /// The index of that property in ``Profile/properties``.
    public let property: Int
    /// The index of the property that holds its interval in ms, if there is one.
    public let period: Int?
    /// The longest interval that this property can hold, if the property is left out: the interval is not known then.
    public internal(set) var longestInterval: Duration?
  }

  /// The properties for values that a program names itself, as lines `name:value`.
  public struct Values: Sendable, Hashable {
    /// The index of the property that receives the lines.
    public let received: Int
    /// The index of the one that sends them, if there is one.
    public let sent: Int?
  }

  /// How long a peripheral that is only heard is online after it was heard.
  public enum OfflineAfter: Sendable, Hashable {
    case seconds(Int)
    /// The peripheral stays online: it sends only when something happens, and its silence means nothing.
    case never

    /// The longest silence of a peripheral that is online; nil: there is no limit.
    public var limit: Duration? {
      switch self {
      case .seconds(let seconds): .seconds(seconds)
      case .never: nil
      }
    }
  }

  /// The likely cause of a missing service, and what the user can do.
  public struct MissingHint: Sendable, Hashable {
    /// Why the service is probably missing.
    public let problem: String
    /// What helps.
    public let remedy: String

    /// A hint of two sentences without a full stop.
    public init(problem: String, remedy: String) {
      self.problem = problem
      self.remedy = remedy
    }
  }

  /// The name as `info` shows it: `microbit`.
  public let name: String
  /// The manufacturer for display; may be empty.
  public let manufacturer: String
  /// The model for display, unless the peripheral reports its model itself.
  public let model: String?
  /// The services that a peripheral of this kind must have; may be empty.
  public private(set) var requires: [BluetoothUUID]
  /// Why a required service is probably absent; nil: nothing is known.
  public let missingHint: MissingHint?
  /// The property that shows that a link is alive, and its interval; nil: a link without values is not ended.
  public private(set) var alive: Alive?
  /// The properties for values that a program names itself; nil: there are none.
  public private(set) var values: Values?
  /// Whether peripherals of this kind are connected to; else they are only heard: all properties come in advertisements or by
  /// radio.
  public let hasLinks: Bool
  /// How long a peripheral that is only heard is online after it was heard; nil: what it sends tells.
  public let offlineAfter: OfflineAfter?
  /// The order is fixed: other modules refer to a property by its index. Properties are subscribed to in this order, so
  /// that those that cost least come first.
  public private(set) var properties: [Property]
  /// Whether the peripheral decides which of the properties there are: see ``limited(to:isAutomatic:)``.
  public private(set) var isAutomatic: Bool
  /// Whether a peripheral may send more than ``properties``, several of a kind: objects of BTHome. With an automatic
  /// profile, a device has the properties for the objects that it has sent.
  public private(set) var growsWithObjects: Bool

  /// Checks the whole profile. `alive` and `alivePeriod` are the members of a profile's `"alive"`.
  ///
  /// - Parameters:
  ///   - alive: the name of the property whose values show that the link is alive.
  ///   - alivePeriod: the name of the property that holds the time between those, in ms.
  ///   - values: the name of the property that receives lines `name:value`.
  ///   - valuesSet: the name of the property that sends them.
  ///   - offlineAfter: only for peripherals that are only heard.
  public init(
    name: String, manufacturer: String = "", model: String? = nil, requires: [BluetoothUUID] = [],
    missingHint: MissingHint? = nil, alive: String? = nil, alivePeriod: String? = nil,
    values: String? = nil, valuesSet: String? = nil, offlineAfter: OfflineAfter? = nil,
    growsWithObjects: Bool = false, properties: [Property]
  ) throws(ProfileError) {
    self.name = name
    self.manufacturer = manufacturer
    self.model = model
    self.requires = requires
    self.missingHint = missingHint
    self.properties = properties
    isAutomatic = false
    self.growsWithObjects = growsWithObjects
    hasLinks = properties.first?.source == nil
    self.offlineAfter = offlineAfter
    try Self.check(properties)
    try require(
      offlineAfter == nil || !hasLinks, ["offline_after"], "only with a source: a link has an end of its own")
    self.alive = try checkedAlive(alive, period: alivePeriod)
    self.values = try checkedValues(values, set: valuesSet)
  }

  /// A day, in ms: numbers that can hold more are too large for a duration.
  private static let longestInterval = 86_400_000.0

  /// The profile with these properties, each in the place of the one with its name.
  public func with(_ properties: [Property]) -> Profile {
    var profile = self
    profile.properties = properties
    return profile
  }

  /// The values that are written on every link unless the configuration sets others, by property.
  public var initialValues: [String: Value] {
    properties.reduce(into: [:]) { values, property in values[property.name] = property.initial }
  }

  /// The property of this name, if there is one, or a peripheral may send one.
  public func property(named name: some StringProtocol) -> Property? {
    properties.first { $0.name == name } ?? (growsWithObjects ? BTHome.property(named: name) : nil)
  }

  /// The index of the property of this name, if there is one.
  public func index(ofPropertyNamed name: some StringProtocol) -> Int? {
    properties.firstIndex { $0.name == name }
  }

  /// The names of the properties that are used unless the configuration selects others: those that are marked as
  /// ``Property/isAutomatic``, else all.
  public var automaticProperties: [String] {
    let marked = properties.filter(\.isAutomatic)
    return (marked.isEmpty ? properties : marked).map(\.name)
  }

  /// The profile with these properties only, in the profile's order.
  ///
  /// If the property of ``alive`` is left out, the result has no ``alive``. A service whose properties are all left out
  /// is no longer required: a micro:bit of which only the buttons are used needs no temperature service. A required
  /// service without any property in the profile identifies the peripheral, and stays required.
  ///
  /// - Parameter isAutomatic: use those that the peripheral has, if the profile marks any: no service with a marked
  ///   property is required, and what shows that a link is alive counts where the link offers it.
  public func limited(to names: Set<String>, isAutomatic: Bool = false) -> Profile {
    var profile = self
    profile.isAutomatic = isAutomatic && properties.contains(where: \.isAutomatic)
    profile.growsWithObjects = growsWithObjects && profile.isAutomatic
    func isIncluded(_ property: Property) -> Bool { names.contains(property.name) }
    profile.properties =
      properties.filter(isIncluded)
      + (growsWithObjects
        ? names.subtracting(properties.map(\.name)).sorted().compactMap(BTHome.property) : [])
    // A service is not required if all its properties are left out, or it is the peripheral that decides.
    profile.requires = requires.filter { service in
      let own = properties.filter { $0.service == service }
      return own.isEmpty
        || own.contains(where: isIncluded)
          && !(profile.isAutomatic && own.contains(where: \.isAutomatic))
    }
    func index(_ old: Int) -> Int? { profile.index(ofPropertyNamed: properties[old].name) }
    profile.values = values.flatMap { values in
      index(values.received).map { Values(received: $0, sent: values.sent.flatMap(index)) }
    }
    profile.alive = alive.flatMap { alive in
      guard let property = index(alive.property) else { return nil }
      let period = alive.period.flatMap(index)
      var limited = Alive(property: property, period: period, longestInterval: alive.longestInterval)
      if let leftOut = alive.period.map({ properties[$0] }), period == nil {
        limited.longestInterval = (leftOut.range ?? leftOut.codec.range)
          .map { .milliseconds(min($0.upperBound, Self.longestInterval)) }
      }
      return limited
    }
    return profile
  }
}
