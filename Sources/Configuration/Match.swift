import GATT

/// The advertisement data and the services of a peripheral. All of it may be forged.
package struct Advertisement: Sendable, Equatable {
  /// The Bluetooth name; nil while none was received.
  package var name: String?
  /// The name with which an entry matched it first: its name may change, and be shorter once it is paired.
  package var matchedName: String?
  /// The services that it advertised, or sent service data of, and those that it is known to have.
  package var services: [BluetoothUUID]
  /// The Bluetooth SIG's numbers of the companies whose data it advertised.
  package var manufacturers: [Int]

  package init(
    name: String? = nil, matchedName: String? = nil, services: [BluetoothUUID] = [], manufacturers: [Int] = []
  ) {
    self.name = name
    self.matchedName = matchedName
    self.services = services
    self.manufacturers = manufacturers
  }

  /// The maximum of services, and of manufacturers.
  private static let most = 128

  /// The advertisement as it was when an entry matched it; nil: none has.
  fileprivate var matched: Advertisement? {
    matchedName.map { Advertisement(name: $0, services: services, manufacturers: manufacturers) }
  }

  /// The advertisement with earlier data: the newest name, and every service and manufacturer up to a limit. A
  /// peripheral may put its services and its name into different packets, which bluetoothd reports one by one.
  package func adding(to earlier: Advertisement) -> Advertisement {
    Advertisement(
      name: name ?? earlier.name, matchedName: matchedName ?? earlier.matchedName,
      services: Self.union(earlier.services, services),
      manufacturers: Self.union(earlier.manufacturers, manufacturers))
  }

  private static func union<Element: Equatable>(_ old: [Element], _ new: [Element]) -> [Element] {
    if old.isEmpty, new.count <= most { return new }
    var all = old
    for element in new where all.count < most && !all.contains(element) { all.append(element) }
    return all
  }
}

extension Configuration {
  /// Which peripherals an entry is for: all that is given must hold.
  package struct Match: Sendable, Hashable {
    package var identifier: BluetoothAddress?
    /// The five letters of a micro:bit that is heard by radio.
    package var radio: MicrobitName?
    /// The whole Bluetooth name.
    package var name: String?
    /// How the Bluetooth name begins.
    package var namePrefix: String?
    /// A part of the Bluetooth name.
    package var nameContains: String?
    /// A service that it advertises, sends service data of, or has.
    package var service: BluetoothUUID?
    /// The number of a company whose data it advertises.
    package var manufacturer: Int?
    /// The limit in dBm: a weaker peripheral is ignored until it comes nearer. Once it is known its signal no longer
    /// matters.
    package var minRSSI: Int?

    package init() {}
    init(namePrefix: String) { self.namePrefix = namePrefix }

    /// Whether it is for micro:bits that are heard by radio.
    package var isRadio: Bool { radio != nil || identifier?.radioSender != nil }

    /// Whether only one peripheral can match.
    package var isIdentifier: Bool { identifier != nil }

    /// Whether the address alone does not decide.
    package var needsAdvertisement: Bool { hasName || service != nil || manufacturer != nil }

    /// Whether the Bluetooth name decides.
    fileprivate var hasName: Bool { name != nil || namePrefix != nil || nameContains != nil }

    /// Whether a peripheral matches, however weak its signal is.
    package func matches(_ address: BluetoothAddress, _ advertisement: Advertisement) -> Bool {
      if let identifier, identifier != address { return false }
      if let radio, radio != address.radioSender?.name { return false }
      if let service, !advertisement.services.contains(service) { return false }
      if let manufacturer, !advertisement.manufacturers.contains(manufacturer) { return false }
      guard hasName else { return true }
      guard let received = advertisement.name?.utf8 else { return false }
      // Byte by byte: to `String` different encodings of é are equal.
      if let name, !received.elementsEqual(name.utf8) { return false }
      if let namePrefix, !received.starts(with: namePrefix.utf8) { return false }
      if let nameContains, !received.hasOccurrence(of: nameContains.utf8) { return false }
      return true
    }

    /// Whether this certainly matches every peripheral that `other` matches.
    func covers(_ other: Match) -> Bool {
      if let identifier, identifier != other.identifier { return false }
      if let radio, radio != other.radio, radio != other.identifier?.radioSender?.name { return false }
      if let service, service != other.service { return false }
      if let manufacturer, manufacturer != other.manufacturer { return false }
      if let name, other.name.map({ !$0.utf8.elementsEqual(name.utf8) }) ?? true { return false }
      if let namePrefix {
        let begins = [other.name, other.namePrefix].contains {
          $0?.utf8.starts(with: namePrefix.utf8) ?? false
        }
        guard begins else { return false }
      }
      if let nameContains {
        let parts = [other.name, other.namePrefix, other.nameContains]
        guard parts.contains(where: { $0?.utf8.hasOccurrence(of: nameContains.utf8) ?? false }) else {
          return false
        }
      }
      return true
    }
  }

  /// The entry that a peripheral uses: the first that matches, or has matched it by an earlier name. One that has its
  /// whole name keeps it, whatever it is called later.
  package func device(matching address: BluetoothAddress, _ advertisement: Advertisement) -> Device? {
    func first(_ advertisement: Advertisement) -> Int? {
      func matches(_ index: Int) -> Bool { devices[index].match.matches(address, advertisement) }
      let own = entries.byAddress[address]?.first(where: matches)
      let pattern = entries.patterns.first { $0 > own ?? .max || matches($0) }
      return [own, pattern].compactMap { $0 }.min()
    }
    let (now, before) = (first(advertisement), advertisement.matched.flatMap(first))
    if let before, devices[before].match.name != nil { return devices[before] }
    return [now, before].compactMap { $0 }.min().map { devices[$0] }
  }

  /// The name by which its entry matches it: see ``Advertisement/matchedName``.
  package func matchedName(of advertisement: Advertisement, at address: BluetoothAddress) -> String? {
    guard let match = device(matching: address, advertisement)?.match, match.hasName else {
      return advertisement.matchedName
    }
    let isMatched = advertisement.matched.map { match.matches(address, $0) } ?? false
    return isMatched ? advertisement.matchedName : advertisement.name
  }

  /// Whether an entry names the address.
  package func names(_ address: BluetoothAddress) -> Bool { entries.byAddress[address] != nil }

  /// The places of entries, so that what is looked up for each device does not go through those of all others.
  struct EntryIndex: Sendable, Equatable {
    private(set) var byAddress: [BluetoothAddress: [Int]] = [:]
    /// The places of entries that name no address.
    private(set) var patterns: [Int] = []

    init(_ entries: [Device]) {
      for (index, entry) in entries.enumerated() {
        if let address = entry.match.identifier {
          byAddress[address, default: []].append(index)
        } else {
          patterns.append(index)
        }
      }
    }
  }
}

extension Configuration.Match: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("identifier", \.identifier, .optional(.address)),
    ConfigurationKey("radio", \.radio, .optional(.microbitName)),
    ConfigurationKey("name", \.name, .optional(.bluetoothName)),
    ConfigurationKey("name_prefix", \.namePrefix, .optional(.bluetoothName)),
    ConfigurationKey("name_contains", \.nameContains, .optional(.bluetoothName)),
    ConfigurationKey("service", \.service, .optional(.uuid)),
    ConfigurationKey("manufacturer", \.manufacturer, .optional(.company)),
    ConfigurationKey("min_rssi", \.minRSSI, .optional(.integer(-127...20))),
  ]

  /// The keys that are given, but `min_rssi`.
  var given: [String] { Self.keys.filter { $0.name != "min_rssi" && $0.write(self) != nil }.map(\.name) }

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    if radio != nil, given != ["radio"] || minRSSI != nil {
      return [path.key("radio").error("must not be combined", hint: "give radio alone")]
    }
    guard given.isEmpty else { return [] }
    let others = Self.keys.map(\.name).filter { $0 != "min_rssi" }.joined(separator: ", ")
    let hint = "give at least one of \(others)"
    return minRSSI == nil
      ? [path.error("must not be empty", hint: hint)]
      : [path.key("min_rssi").error("by itself matches every peripheral that is near", hint: hint)]
  }
}

extension ConfigurationRule<String> {
  /// A Bluetooth name or a part of one: 248 bytes are the most (Core Specification, volume 3, part C, section 12.1).
  fileprivate static var bluetoothName: Self { .text(longest: 248) }
}

extension ConfigurationRule<MicrobitName> {
  /// The five letters of a micro:bit: `zotut`.
  fileprivate static var microbitName: Self {
    .text(
      5...5, { MicrobitName($0) }, "the name of a micro:bit",
      hint: "its five letters, as the block \"device name\" shows them")
  }
}

extension ConfigurationRule<Configuration.Match> {
  /// The given keys replace the default.
  static var match: Self { section.map({ $0 }, back: { $0 }) }
}
