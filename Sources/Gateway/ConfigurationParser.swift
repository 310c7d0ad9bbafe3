extension Configuration {
  /// Reads a configuration; gives all that is wrong with it, not the first alone.
  static func parse(_ bytes: [UInt8]) -> Result<Configuration, ConfigurationErrors> {
    document(bytes).flatMap(parse)
  }

  /// The JSON that a configuration is written in.
  static func document(_ bytes: [UInt8]) -> Result<JSONValue, ConfigurationErrors> {
    do {
      return .success(try JSONParser.parse(bytes))
    } catch {
      return .failure(ConfigurationErrors(errors: [ConfigurationError(path: "", problem: error.description)]))
    }
  }

  /// Reads a configuration that is known to be JSON.
  static func parse(_ document: JSONValue) -> Result<Configuration, ConfigurationErrors> {
    var errors: [ConfigurationError] = []
    let configuration = ConfigurationRule<Configuration>.section.read(document, nil, .root, &errors)
    guard let configuration, errors.isEmpty else { return .failure(ConfigurationErrors(errors: errors)) }
    return .success(configuration)
  }

  /// The configuration as JSON: every key that has a value, defaults as well.
  var json: JSONValue? { ConfigurationRule<Configuration>.section.write(self) }

  /// What can be meant, but hardly is.
  var warnings: [ConfigurationError] {
    devices.indices.compactMap { index in
      let path = ConfigurationPath.root.key("devices").index(index)
      guard case .namePrefix(let prefix) = devices[index].match else {
        let earlier = devices[..<index].firstIndex { if case .namePrefix = $0.match { true } else { false } }
        return earlier.map {
          path.error(
            "stands behind devices[\($0)], whose name_prefix may match it first", hint: "put it before")
        }
      }
      let covering = devices[..<index].firstIndex {
        if case .namePrefix(let other) = $0.match { prefix.utf8.starts(with: other.utf8) } else { false }
      }
      return covering.map { path.error("never matches: devices[\($0)] comes first and matches all of it") }
    }
  }
}
