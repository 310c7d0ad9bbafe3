import GATT
import JSON

/// Every key of config.json: its name, where its value goes, and what it may hold.

extension Configuration: ConfigurationSection {
  package static var keys: [ConfigurationKey<Configuration>] {
    [
      ConfigurationKey(ignored: "$schema", .text(longest: 1024)),
      ConfigurationKey("gateway", \.gateway, .section),
      ConfigurationKey("bluetooth", \.bluetooth, .section),
      ConfigurationKey("mqtt", \.mqtt, .section),
      ConfigurationKey("home_assistant", \.homeAssistant, .section),
      ConfigurationKey("devices", \.devices, .list(of: .section, check: Device.duplicates)),
    ]
  }
}

extension Configuration.Gateway: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.id, .optional(.gatewayID)),
      ConfigurationKey("area", \.area, .optional(.label)),
    ]
  }
}

extension Configuration.Bluetooth: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("adapter", \.adapter, .adapter),
      ConfigurationKey("notify", \.notify, .choice),
    ]
  }
}

extension Configuration.MQTT: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("host", \.host, .host),
      ConfigurationKey("port", \.port, .integer(1...65535)),
      ConfigurationKey("protocol", \.protocolVersion, .choice),
      ConfigurationKey("username", \.username, .optional(.text(longest: 1024))),
      ConfigurationKey("password_file", \.passwordFile, .optional(.text(longest: 4096))),
      ConfigurationKey("base_topic", \.baseTopic, .topic),
      ConfigurationKey("qos", \.qos, .integer(0...1)),
      ConfigurationKey("readings", \.readings, .bool),
      ConfigurationKey("tls", \.tls, .optional(.section)),
    ]
  }

  package func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    guard passwordFile != nil, username == nil else { return [] }
    return [path.key("password_file").error("a password needs a user name", hint: "add username")]
  }
}

extension Configuration.TLS: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("ca_file", \.caFile, .optional(.text(longest: 4096))),
      ConfigurationKey("cert_file", \.certFile, .optional(.text(longest: 4096))),
      ConfigurationKey("key_file", \.keyFile, .optional(.text(longest: 4096))),
    ]
  }

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

extension Configuration.HomeAssistant: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("discovery", \.discovery, .bool),
      ConfigurationKey("prefix", \.prefix, .topic),
    ]
  }
}

extension Configuration.Device: ConfigurationSection {
  package static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("match", \.match, .match),
      ConfigurationKey("id", \.id, .optional(.deviceID)),
      ConfigurationKey("name", \.name, .optional(.label)),
      ConfigurationKey("area", \.area, .optional(.label)),
      ConfigurationKey("period", \.period, .optional(.period)),
      ConfigurationKey("enabled", \.isEnabled, .optional(.bool)),
      ConfigurationKey("gateway", \.gateway, .optional(.gatewayID)),
    ]
  }

  /// What two entries cannot have in common.
  fileprivate static func duplicates(
    _ devices: [Self], at path: ConfigurationPath
  ) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    var ids: [String: Int] = [:]
    var matches: [Configuration.Match: Int] = [:]
    for (index, device) in devices.enumerated() {
      let path = path.index(index)
      if let first = matches[device.match] {
        let key = path.key("match").key(device.match.key)
        errors.append(key.error("devices[\(first)] already matches this"))
        // Said once is enough.
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

  /// The `{device}` of the entry's topics, where it is known before a device was seen.
  private var topicName: String? {
    switch match {
    case .identifier(let address): id?.description ?? address.compact
    case .namePrefix: id?.description
    }
  }
}

/// The keys of `match`, of which one is given.
private struct MatchKeys: ConfigurationSection {
  var identifier: BluetoothAddress?
  var namePrefix: String?

  static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("identifier", \.identifier, .optional(.address)),
      ConfigurationKey("name_prefix", \.namePrefix, .optional(.text(longest: 248))),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (identifier, namePrefix) {
    case (nil, nil): [path.error("must not be empty", hint: "give identifier or name_prefix")]
    case (.some, .some):
      [path.error("identifier and name_prefix must not be combined", hint: "give one of them")]
    case (.some, nil), (nil, .some): []
    }
  }
}

extension Configuration.Match {
  fileprivate var key: String {
    switch self {
    case .identifier: "identifier"
    case .namePrefix: "name_prefix"
    }
  }
}

extension ConfigurationRule<Configuration.Match> {
  fileprivate static var match: Self {
    let keys = ConfigurationRule<MatchKeys>.section
    return ConfigurationRule(
      shape: keys.shape,
      read: { json, _, path, errors in
        // Never added to what was there: one of the two keys takes the place of the other.
        guard let match = keys.read(json, nil, path, &errors) else { return nil }
        return match.identifier.map(Configuration.Match.identifier)
          ?? match.namePrefix.map(Configuration.Match.namePrefix)
      },
      write: { match in
        switch match {
        case .identifier(let address): keys.write(MatchKeys(identifier: address))
        case .namePrefix(let prefix): keys.write(MatchKeys(namePrefix: prefix))
        }
      })
  }
}
