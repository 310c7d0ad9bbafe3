import GATT
import JSON

extension Configuration {
  /// Reads a configuration, or finds all its errors.
  package static func parse(_ bytes: [UInt8]) -> Result<Configuration, ConfigurationErrors> {
    document(bytes).flatMap { parse($0) }
  }

  /// Reads JSON.
  static func document(_ bytes: [UInt8]) -> Result<JSONDocument, ConfigurationErrors> {
    do {
      return .success(try JSONParser.locate(bytes))
    } catch {
      let error = ConfigurationError(position: error.position, problem: error.problem, hint: error.hint)
      return .failure(ConfigurationErrors(errors: [error]))
    }
  }

  /// Reads a configuration from JSON.
  /// - Parameter profiles: those of its ``profilesDirectory``.
  static func parse(
    _ document: JSONDocument, profiles: [Profile] = []
  ) -> Result<Configuration, ConfigurationErrors> {
    var errors: [ConfigurationError] = []
    var initial = Configuration()
    initial.profiles = profiles
    let configuration = ConfigurationRule<Configuration>.section.read(document.value, initial, .root, &errors)
    guard let configuration, errors.isEmpty else {
      return .failure(ConfigurationErrors(errors: errors.map { $0.located(in: document) }))
    }
    return .success(configuration)
  }

  /// The configuration as JSON: every key that has a value, defaults as well.
  package var json: JSONValue? { ConfigurationRule<Configuration>.section.write(self) }

  /// What is valid but probably a mistake.
  var warnings: [ConfigurationError] {
    let path = ConfigurationPath.root.key("devices")
    if devices.isEmpty {
      return [
        path.error(
          "the list is empty: no micro:bit is connected unless a request adds it",
          hint: "leave the key out to connect to every micro:bit in range")
      ]
    }
    return devices.indices.compactMap { index in
      let (path, match) = (path.index(index), devices[index].match)
      let earlier = devices[..<index]
      if let first = earlier.firstIndex(where: { $0.match.covers(match) }) {
        return path.error("never used: devices[\(first)] comes first and matches the same peripherals")
      }
      guard match.isIdentifier, let first = earlier.firstIndex(where: { !$0.match.isIdentifier }) else {
        return nil
      }
      let keys = devices[first].match.given.joined(separator: " and ")
      return path.error("devices[\(first)] may match first, by its \(keys)", hint: "move this entry up")
    }
  }
}
