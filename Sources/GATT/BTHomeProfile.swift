import Glibc

extension BTHome {
  /// The name of a property: `temperature`, `temperature_2` …
  static func name(_ quantity: String, at index: Int) -> String {
    index == 0 ? quantity : "\(quantity)_\(index + 1)"
  }

  /// The most properties of one quantity: a frame cannot hold more objects.
  private static let mostOfAKind = 99

  /// The property of this name: a quantity's, with the number of one of several at its end.
  static func property(named name: some StringProtocol) -> Property? {
    if let quantity = quantity(String(name)) { return property(quantity, at: 0) }
    guard let line = name.lastIndex(of: "_"), let number = Int(name[name.index(after: line)...]),
      (2...mostOfAKind).contains(number), let quantity = quantity(String(name[..<line])),
      Self.name(quantity.name, at: number - 1) == name
    else { return nil }
    return property(quantity, at: number - 1)
  }

  private static func property(_ quantity: Quantity, at index: Int) -> Property {
    let entity = HomeAssistantEntity(
      quantity.entity, name: index == 0 ? quantity.label : "\(quantity.label) \(index + 1)",
      deviceClass: quantity.deviceClass, category: quantity.category)
    return Property(
      name: name(quantity.name, at: index), source: Property.Source(.service(service)),
      kind: quantity.entity == .event ? .event : .state,
      codec: Codec(builtIn: .advertised(.bthome(quantity.name), index)), unit: quantity.unit,
      isAutomatic: true, homeAssistant: [entity])
  }

  /// The time in UTC, as in RFC 3339.
  static func time(_ seconds: Int) -> String {
    var (seconds, date) = (time_t(seconds), tm())
    gmtime_r(&seconds, &date)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(date.tm_year + 1900)-\(two(date.tm_mon + 1))-\(two(date.tm_mday))"
      + "T\(two(date.tm_hour)):\(two(date.tm_min)):\(two(date.tm_sec)).000Z"
  }
}

extension Profile {
  /// Sensors, buttons and others that advertise in BTHome: one property for each quantity that they send, made from the
  /// table of ids.
  public static let bthome: Profile = constant(
    try Profile(
      name: "bthome", requires: [BTHome.service], growsWithObjects: true,
      properties: BTHome.quantities.compactMap { BTHome.property(named: $0.name) }))

  /// The profiles that every configuration has. ``radio`` is not among them: it belongs to senders by radio, and cannot be chosen.
  public static let builtIn = [microbit, bthome]

  /// Whether its devices may send BTHome.
  package var usesBTHome: Bool {
    growsWithObjects || properties.contains { $0.source?.data == .service(BTHome.service) }
  }

  /// Whether users did not write the profile.
  package var isBuiltIn: Bool { (Self.builtIn + [.radio]).contains { $0.name == name } }
}
