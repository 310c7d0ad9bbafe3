import GATT
import JSON

/// Every key of config.json: its name, where its value goes, and what it may hold.

extension Configuration: ConfigurationSection {
  package static let keys: [ConfigurationKey<Configuration>] = [
    ConfigurationKey(ignored: "$schema", .text(longest: 1024)),
    ConfigurationKey("gateway", \.gateway, .section),
    ConfigurationKey("bluetooth", \.bluetooth, .section),
    ConfigurationKey("mqtt", \.mqtt, .section),
    ConfigurationKey("spool", \.spool, .section),
    ConfigurationKey("home_assistant", \.homeAssistant, .section),
    ConfigurationKey("http", \.http, .section),
    ConfigurationKey("radio", \.radio, .section),
    ConfigurationKey("devices", \.devices, .list(of: .section, check: Device.duplicates)),
    ConfigurationKey("profiles", \.profiles, .profiles),
    ConfigurationKey("profiles_directory", \.profilesDirectory, .optional(.text(longest: 4096))),
    ConfigurationKey("fleet", \.fleet, .bool),
  ]

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    devices.indices.flatMap { problems(of: devices[$0].options, at: path.key("devices").index($0)) }
  }
}

extension Configuration.Gateway: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.id, .optional(.gatewayID)),
    ConfigurationKey("area", \.area, .optional(.label)),
  ]
}

extension Configuration.Bluetooth: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("adapters", \.adaptersKey, .optional(.list(of: .adapter, check: adapterProblems))),
    ConfigurationKey("adapter", \.adapter, .optional(.adapter)).one(of: "adapters"),
    ConfigurationKey("links", \.links, .integer(1...1000)),
    ConfigurationKey("stay", \.stay, .integer(1...86_400)),
  ]

  private static func adapterProblems(
    _ names: [String], at path: ConfigurationPath
  ) -> [ConfigurationError] {
    if names.isEmpty { return [path.error("must not be empty", hint: "leave the key out for hci0")] }
    return path.repeated(in: names)
  }
}

extension Configuration.MQTT: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("host", \.hostKey, .optional(.host)).one(of: "hosts"),
    ConfigurationKey("hosts", \.hosts, .optional(.list(of: .hostAndPort, check: hostProblems))),
    ConfigurationKey("port", \.port, .integer(1...65535)),
    ConfigurationKey("protocol", \.protocolVersion, .choice),
    ConfigurationKey("username", \.username, .optional(.text(longest: 1024))),
    ConfigurationKey("password_file", \.passwordFile, .optional(.text(longest: 4096))),
    ConfigurationKey("base_topic", \.baseTopic, .topic),
    ConfigurationKey("qos", \.qos, .integer(0...1)),
    ConfigurationKey("readings", \.readings, .bool),
    ConfigurationKey("tls", \.tls, .optional(.section)),
  ]

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    passwordFile == nil || username != nil
      ? [] : [path.key("password_file").error("a password needs a user name", hint: "add username")]
  }

  private static let hostCounts = 2...8

  private static func hostProblems(_ hosts: [Host], at path: ConfigurationPath) -> [ConfigurationError] {
    guard hostCounts.contains(hosts.count) else {
      let counts = "\(hostCounts.lowerBound) to \(hostCounts.upperBound)"
      return [path.error("must have \(counts) brokers", hint: "for one there is host")]
    }
    return path.repeated(in: hosts)
  }
}

extension ConfigurationPath {
  /// The errors of elements that stand in the list at this path before.
  fileprivate func repeated<Element: Equatable>(in list: [Element]) -> [ConfigurationError] {
    list.indices.filter { list[..<$0].contains(list[$0]) }.map {
      index($0).error("\(list[$0]) is listed already")
    }
  }
}

extension Configuration.TLS: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("ca_file", \.caFile, .optional(.text(longest: 4096))),
    ConfigurationKey("cert_file", \.certFile, .optional(.text(longest: 4096))),
    ConfigurationKey("key_file", \.keyFile, .optional(.text(longest: 4096))),
    ConfigurationKey("alpn", \.alpn, .optional(.text(longest: 254))),
  ]

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (certFile, keyFile) {
    case (.some, nil):
      [path.key("cert_file").error("a certificate needs its key", hint: "add key_file")]
    case (nil, .some):
      [path.key("key_file").error("a key needs its certificate", hint: "add cert_file")]
    case (.some, .some), (nil, nil): []
    }
  }
}

extension Configuration.Spool: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("enabled", \.isEnabled, .bool),
    ConfigurationKey("max_age", \.maxAge, .integer(1...31_536_000)),
    ConfigurationKey("max_size", \.maxSize, .integer(65_536...1_099_511_627_776)),
    ConfigurationKey("rate", \.rate, .integer(1...10_000)),
  ]
}

extension Configuration.HomeAssistant: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("discovery", \.discovery, .bool),
    ConfigurationKey("prefix", \.prefix, .topic),
  ]
}

extension Configuration.HTTP: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("enabled", \.isEnabled, .bool),
    ConfigurationKey("address", \.addresses, .oneOrMore(.ipAddress, check: addressProblems)),
    ConfigurationKey("port", \.port, .integer(1...65535)),
    ConfigurationKey("password_file", \.passwordFile, .optional(.text(longest: 4096))),
    ConfigurationKey("read_password_file", \.readPasswordFile, .optional(.text(longest: 4096))),
    ConfigurationKey("proxy", \.proxy, .optional(.ipv4Address)),
    ConfigurationKey("language", \.language, .choice),
  ]

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    guard passwordFile == nil else { return [] }
    let hint = "add password_file, the name of a file whose first line is the password; or leave this out"
    let open = path.key("address").error("others could control the micro:bits without a password", hint: hint)
    let reading = path.key("read_password_file").error("everybody could look without a password", hint: hint)
    return (isLocal || proxy != nil ? [] : [open]) + (readPasswordFile == nil ? [] : [reading])
  }

  private static let addressCounts = 1...8

  private static func addressProblems(
    _ addresses: [String], at path: ConfigurationPath
  ) -> [ConfigurationError] {
    let isAlone = addresses.count == 1 || !addresses.contains(where: isEverywhere)
    if addressCounts.contains(addresses.count), Set(addresses).count == addresses.count, isAlone { return [] }
    let counts = "\(addressCounts.lowerBound) to \(addressCounts.upperBound)"
    return [
      path.error(
        "expected \(counts) different addresses", hint: "one that is for all networks stands alone")
    ]
  }
}

extension Configuration.Radio: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("enabled", \.isEnabled, .bool),
    ConfigurationKey("ports", \.ports, .radioPorts),
    ConfigurationKey("send", \.isSending, .bool),
  ]
}

extension ConfigurationRule<Configuration.Radio.Ports> {
  /// `"auto"`, or paths.
  fileprivate static var radioPorts: Self {
    let counts = 1...8
    let list = ConfigurationRule<[String]>.oneOrMore(.text(longest: 4096)) { paths, path in
      if counts.contains(paths.count), paths.allSatisfy({ $0.hasPrefix("/") }) { return [] }
      let expected = "expected \"auto\" or \(counts.lowerBound) to \(counts.upperBound) paths"
      return [path.error(expected, hint: "example: /dev/ttyACM0")]
    }
    return ConfigurationRule(
      shape: list.shape,
      read: { json, _, path, errors in
        json == "auto" ? .auto : list.read(json, nil, path, &errors).map(Configuration.Radio.Ports.paths)
      },
      write: { ports in
        switch ports {
        case .auto: "auto"
        case .paths(let paths): .array(paths.map(JSONValue.string))
        }
      })
  }
}

extension Configuration.Device: ConfigurationSection {
  package static let keys: [ConfigurationKey<Self>] =
    [ConfigurationKey("match", \.match, .match)]
    + DeviceOptionTable.all.map { ConfigurationKey($0, \.options) }

  /// What belongs into `match`.
  package static let elsewhere = Dictionary(
    uniqueKeysWithValues: Configuration.Match.keys.map {
      ($0.name, "put it into match: {\"match\": {\"\($0.name)\": …}}")
    })

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    (self.profile == nil || (self.profile == Profile.radio.name) == match.isRadio
      ? [] : [wrongProfile(at: path)])
      + options.problems(at: path)
      + (self.every != nil && self.connect != .onDemand ? [.everyWithoutVisits(at: path)] : [])
  }

  private func wrongProfile(at path: ConfigurationPath) -> ConfigurationError {
    path.key("profile").error(
      match.isRadio
        ? "what is heard by radio has the profile radio" : "only what is heard by radio has this profile",
      hint: match.isRadio ? "leave the key out" : "match it by its letters: {\"radio\": \"zotut\"}")
  }

  /// Ids and matches that stand in two entries.
  static func duplicates(
    _ devices: [Self], at path: ConfigurationPath
  ) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    var ids: [String: Int] = [:]
    var matches: [Configuration.Match: Int] = [:]
    for (index, device) in devices.enumerated() {
      let path = path.index(index)
      if let first = matches[device.match] {
        let key = path.key("match").key(device.match.given.first ?? "")
        errors.append(key.error("devices[\(first)] already matches this"))
        // One error is enough.
        if device.id == nil { continue }
      }
      matches[device.match] = index
      guard let id = device.topicName else { continue }
      if let first = ids[id] {
        errors.append(path.key("id").error("devices[\(first)] already has the id \(id)"))
      } else {
        ids[id] = index
      }
    }
    return errors
  }

  /// The `{device}` of the entry's topics, where the entry determines it.
  package var topicName: String? {
    self.id?.description ?? match.identifier?.compact ?? match.radio?.description
  }
}
