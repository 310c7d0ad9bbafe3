import GATT

/// What all gateways of a fleet share: profiles and entries, from a message on the topic `{base}/fleet/config`.
package struct FleetConfiguration: ConfigurationSection, Equatable {
  /// The number that the sender gives each content.
  package private(set) var version = 0
  private var profiles: [Profile] = []
  /// The entries; nil: the message has no list.
  private var devices: [Configuration.Device]?

  package init() {}

  package var profileCount: Int { profiles.count }
  package var entryCount: Int { devices?.count ?? 0 }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(
      required: "version", \.version, .integer(0...Int(Int32.max)), hint: "give each content another number"),
    ConfigurationKey("profiles", \.profiles, .profiles),
    ConfigurationKey(
      "devices", \.devices, .optional(.list(of: .section, check: Configuration.Device.duplicates))),
  ]

  package static let elsewhere = Dictionary(
    uniqueKeysWithValues: Configuration.keys.map {
      ($0.name, "it can only be set in the config.json of each gateway")
    })

  /// Everyone who may subscribe to the topic can read the message; and no gateway has the files of another.
  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    (devices ?? []).enumerated().flatMap { index, device in
      let secrets = DeviceOptionTable.all.filter { $0.isSecret && device.options[$0] != nil }
      let problems =
        secrets.map { ($0.name, "it is secret, and this message is not") }
        + (device.keyFile == nil ? [] : [("key_file", "it names a file of one gateway")])
      return problems.map { name, problem in
        path.key("devices").index(index).key(name).error(
          problem, hint: "set it in the config.json of the gateway")
      }
    }
  }

  /// The largest message in bytes.
  package static let largest = 512 << 10
  /// The most values of all kinds together, which bounds the memory that reading takes.
  private static let mostValues = 50_000
  private static let mostEntries = 4096
  /// The most entries without an address: each is compared with each peripheral.
  private static let mostPatterns = 256
  private static let mostProfiles = 256

  package static func read(_ payload: [UInt8]) throws(ConfigurationErrors) -> FleetConfiguration {
    guard payload.count <= largest else {
      throw ConfigurationErrors(
        ConfigurationError(problem: "\(payload.count) bytes, the maximum is \(largest)"))
    }
    let fleet = try parse(payload, most: mostValues).get()
    let entries = fleet.devices ?? []
    for (count, most, what) in [
      (entries.count, mostEntries, "entries"), (fleet.profiles.count, mostProfiles, "profiles"),
      (entries.count { !$0.match.isIdentifier }, mostPatterns, "entries without an address"),
    ] where count > most {
      throw ConfigurationErrors(ConfigurationError(problem: "\(count) \(what), the maximum is \(most)"))
    }
    return fleet
  }

  /// The version of a message with mistakes elsewhere; nil: it has none, or is no JSON.
  package static func version(of payload: [UInt8]) -> Int? {
    guard payload.count <= largest,
      let document = try? Configuration.document(payload, most: mostValues).get(),
      let version = document.value["version"]?.integer, (0...Int(Int32.max)).contains(version)
    else { return nil }
    return version
  }

  /// The configuration of a file with what the fleet adds. A profile of the file with the same name stays, and so does
  /// an entry for the same peripherals or with the same id.
  ///
  /// - Throws: what does not fit the file, such as a profile that neither has.
  package func merged(into file: ConfigurationFile) throws(ConfigurationErrors) -> Configuration {
    var merged = without(file)
    let own = Own(merged)
    merged.profiles += profiles.filter { !own.has($0) }
    var added: [Configuration.Device] = []
    var errors: [ConfigurationError] = []
    for (index, entry) in (devices ?? []).enumerated() where !own.has(entry) {
      errors += merged.problems(of: entry.options, at: .root.key("devices").index(index))
      // Every error takes a search for similar names among all.
      if errors.count >= 32 { break }
      var entry = entry
      entry.isOfFleet = true
      added.append(entry)
    }
    guard errors.isEmpty else { throw ConfigurationErrors(errors: errors) }
    // An entry that names an address comes before the file's patterns, which would hide it.
    merged.devices =
      added.filter(\.match.isIdentifier) + merged.devices + added.filter { !$0.match.isIdentifier }
    return merged
  }

  /// Which profiles and entries of the message are not used, as the file has its own.
  package func overridden(by file: ConfigurationFile) -> [ConfigurationPath] {
    let own = Own(without(file))
    let devices = devices ?? []
    return profiles.filter(own.has).map { .root.key("profiles").key($0.name) }
      + devices.indices.filter { own.has(devices[$0]) }.map { .root.key("devices").index($0) }
  }

  /// The file's configuration before the fleet's is added. It has one entry, for every micro:bit, if it has no list of its own.
  private func without(_ file: ConfigurationFile) -> Configuration {
    var configuration = file.configuration
    if devices != nil, file.document["devices"] == nil { configuration.devices = [] }
    return configuration
  }

  /// What a file has itself.
  private struct Own {
    let names: Set<String>
    let matches: Set<Configuration.Match>
    let ids: Set<String>
    let addresses: Set<BluetoothAddress>

    init(_ configuration: Configuration) {
      names = Set(configuration.profiles.map(\.name))
      matches = Set(configuration.devices.map(\.match))
      ids = Set(configuration.devices.compactMap(\.topicName))
      addresses = Set(configuration.devices.compactMap(\.match.identifier))
    }

    func has(_ profile: Profile) -> Bool { names.contains(profile.name) }

    func has(_ entry: Configuration.Device) -> Bool {
      matches.contains(entry.match) || entry.topicName.map(ids.contains) == true
        || entry.match.identifier.map(addresses.contains) == true
    }
  }
}

extension ConfigurationErrors {
  package init(_ error: ConfigurationError) { self.init(errors: [error]) }

  /// The first one, with its place, and how many more there are.
  package var summary: String {
    let first = errors.first.map { error in
      (error.position.map { "line \($0.line), column \($0.column): " } ?? "") + "\(error)"
    }
    return (first ?? "") + (errors.count > 1 ? " (and \(errors.count - 1) more)" : "")
  }
}
