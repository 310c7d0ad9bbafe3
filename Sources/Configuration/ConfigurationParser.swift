import GATT
import JSON

extension ConfigurationSection {
  /// Reads a JSON text, or finds all its errors.
  /// - Parameter most: the maximum of values in it.
  package static func parse(_ bytes: [UInt8], most: Int = .max) -> Result<Self, ConfigurationErrors> {
    Configuration.document(bytes, most: most).flatMap { read($0, Self()) }
  }

  package static func parse(file: String) throws(ConfigurationErrors) -> Self {
    try read(try Configuration.document(file: file), Self()).mapError { $0.located(in: file) }.get()
  }

  /// - Parameter initial: has the values of the keys that are left out.
  fileprivate static func read(
    _ document: JSONDocument, _ initial: Self
  ) -> Result<Self, ConfigurationErrors> {
    var errors: [ConfigurationError] = []
    let section = read(document.value, initial, .root, &errors)
    guard let section, errors.isEmpty else {
      return .failure(ConfigurationErrors(errors: errors.map { $0.located(in: document) }))
    }
    return .success(section)
  }
}

extension Configuration {
  static func document(_ bytes: [UInt8], most: Int = .max) -> Result<JSONDocument, ConfigurationErrors> {
    do {
      return .success(try JSONParser.locate(bytes, most: most))
    } catch {
      let error = ConfigurationError(position: error.position, problem: error.problem, hint: error.hint)
      return .failure(ConfigurationErrors(errors: [error]))
    }
  }

  static func document(file: String) throws(ConfigurationErrors) -> JSONDocument {
    let bytes: [UInt8]
    do throws(FileProblem) {
      bytes = try FileProblem.read(file)
    } catch {
      throw .unreadable(file, error)
    }
    return try document(bytes).mapError { $0.located(in: file) }.get()
  }

  /// - Parameter profiles: those of its ``profilesDirectory``.
  static func parse(
    _ document: JSONDocument, profiles: [Profile]
  ) -> Result<Configuration, ConfigurationErrors> {
    var initial = Configuration()
    initial.profiles = profiles
    return read(document, initial)
  }

  /// What is valid but probably a mistake.
  /// - Parameter installed: how many profiles are those of ``profilesDirectory``, whose warnings name their files.
  func warnings(installed: Int = 0) -> [ConfigurationError] {
    deviceWarnings + entryWarnings + radioWarnings + valueWarnings + proxyWarnings
      + (radio.isSending && !radio.isEnabled
        ? [
          ConfigurationPath.root.key("radio").key("send").error(
            "has no effect", hint: "add \"enabled\": true")
        ]
        : [])
      + profiles.dropFirst(installed).flatMap { $0.warnings(at: .root.key("profiles").key($0.name)) }
  }

  /// The first entry in vain stands for all.
  private var radioWarnings: [ConfigurationError] {
    let first = devices.firstIndex { $0.match.isRadio && $0.isEnabled != false }
    guard !radio.isEnabled, let index = first else { return [] }
    let path = ConfigurationPath.root.key("devices").index(index).key("match")
    return [path.error("nothing is heard by radio", hint: "add \"radio\": {\"enabled\": true}")]
  }

  private var proxyWarnings: [ConfigurationError] {
    guard http.isEnabled, http.isLocal, let proxy = http.proxy, !proxy.hasPrefix("127.") else { return [] }
    let path = ConfigurationPath.root.key("http").key("proxy")
    let hint = "add \"address\", one of this computer that the proxy can reach"
    return [path.error("the page is for this computer only", hint: hint)]
  }

  private var valueWarnings: [ConfigurationError] {
    let option = DeviceOptionTable.table.values
    return devices.indices.flatMap { index in
      devices[index].options[option].flatMap(option.value)?
        .warnings(at: .root.key("devices").index(index).key(option.name)) ?? []
    }
  }

  /// Warnings about entries one by one.
  private var entryWarnings: [ConfigurationError] {
    devices.enumerated().flatMap { index, device in
      let path = ConfigurationPath.root.key("devices").index(index)
      let match = device.match
      var warnings: [ConfigurationError] = []
      func isMicrobit(_ name: String?) -> Bool { name.flatMap { MicrobitName($0) } != nil }
      if let name = match.name, isMicrobit(name) {
        let hint = "that of a micro:bit is \"BBC micro:bit [\(name)]\""
        warnings.append(path.key("match").key("name").error("this is the whole Bluetooth name", hint: hint))
      }
      let isForOne = match.isIdentifier || match.isRadio || match.name != nil
      if let name = device.name, isMicrobit(name), !isForOne {
        let hint = "for one: {\"match\": {\"name\": \"BBC micro:bit [\(name)]\"}}"
        warnings.append(
          path.key("name").error("every device that the entry matches gets this name", hint: hint))
      }
      if device.pairing == .always, device.passkey == nil, !match.isIdentifier {
        let hint = "match it by its identifier, or add its passkey"
        warnings.append(
          path.key("pair").error(
            "whatever imitates a device that the entry matches gets a pairing", hint: hint))
      }
      let events = eventsInVain(of: device.options)
      if !events.isEmpty {
        warnings.append(
          path.key("connect").error(
            "on demand, events are not received: \(events.joined(separator: ", "))",
            hint: "leave the key out to receive them"))
      }
      return warnings
    }
  }

  /// The events that a device on demand is to receive; those that a program may lack are not counted.
  private func eventsInVain(of options: DeviceOptions) -> [String] {
    guard options.connect == .onDemand else { return [] }
    let (profile, listed) = (profile(of: options), options.properties ?? [])
    return profile.properties.filter { property in
      property.kind == .event && property.isNotifying
        && (listed.contains(property.name) || !(profile.isAutomatic && property.isAutomatic))
    }.map(\.name)
  }

  /// The most entries of an address, of a name and of other patterns that an entry is compared with.
  private static let mostCompared = 100

  private var deviceWarnings: [ConfigurationError] {
    let path = ConfigurationPath.root.key("devices")
    if devices.isEmpty {
      return [
        path.error(
          "the list is empty: no micro:bit is connected unless a request adds it",
          hint: "leave the key out to connect to every micro:bit in range")
      ]
    }
    let byName = Dictionary(grouping: entries.patterns) { devices[$0].match.name }
    // That of a sender by radio tells its letters, too.
    let firstPattern = entries.patterns.first { !devices[$0].match.isRadio }
    return devices.indices.compactMap { index in
      let (path, match) = (path.index(index), devices[index].match)
      // Each entry is compared with few, as there may be ten thousand.
      let compared = [match.identifier.flatMap { entries.byAddress[$0] }, byName[match.name], byName[nil]]
        .flatMap { ($0 ?? []).prefix(Self.mostCompared) }
      if let first = compared.filter({ $0 < index && devices[$0].match.covers(match) }).min() {
        return path.error("never used: devices[\(first)] comes first and matches the same peripherals")
      }
      guard match.isIdentifier, !match.isRadio, let first = firstPattern, first < index else { return nil }
      let keys = devices[first].match.given.joined(separator: " and ")
      return path.error("devices[\(first)] may match first, by its \(keys)", hint: "move this entry up")
    }
  }
}
