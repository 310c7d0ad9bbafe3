import JSON

/// A configuration read from disk, with the files that it names.
package struct ConfigurationFile: Sendable {
  /// The file.
  package let path: String
  /// With the defaults, the password and all profiles.
  package let configuration: Configuration
  /// The JSON of the file: what is not in it has its default.
  package let document: JSONValue
  /// What is valid but probably a mistake.
  package let warnings: [ConfigurationError]

  /// The files that are tried when none is named.
  package static let searched = ["./config.json", "/etc/microbit-gateway/config.json"]

  /// Reads the configuration at `path`, else the first of ``searched`` that exists, and the files it names.
  /// Blocks while it reads.
  /// - Parameter excluded: keys of the document that are treated as absent.
  /// - Throws: every error that was found.
  package static func load(
    path: String?, searching places: [String] = searched, without excluded: Set<String> = []
  ) throws(ConfigurationFailure) -> ConfigurationFile {
    let (file, bytes) = try find(path, places)
    do throws(ConfigurationErrors) {
      let folder = folder(of: file)
      var (configuration, document) = try read(bytes, in: folder, without: excluded)
      var resolver = FileResolver(folder: folder)
      resolver.resolve(&configuration.mqtt)
      guard resolver.errors.isEmpty else {
        throw ConfigurationErrors(errors: resolver.errors.map { $0.located(in: document) })
      }
      return ConfigurationFile(
        path: file, configuration: configuration, document: document.value,
        warnings: (configuration.warnings + resolver.warnings).map { $0.located(in: document) })
    } catch {
      throw ConfigurationFailure(file: error.file ?? file, errors: error.errors)
    }
  }

  /// Reads a configuration as a file in `folder` holds it, with its profiles, but without its other files.
  package static func parse(
    _ bytes: [UInt8], in folder: String
  ) throws(ConfigurationErrors) -> (configuration: Configuration, document: JSONValue) {
    let (configuration, document) = try read(bytes, in: folder)
    return (configuration, document.value)
  }

  private static func read(
    _ bytes: [UInt8], in folder: String, without excluded: Set<String> = []
  ) throws(ConfigurationErrors) -> (Configuration, JSONDocument) {
    let document = try Configuration.document(bytes).get().without(excluded)
    let profiles = try ProfilesDirectory.profiles(namedBy: document, in: folder)
    return (try Configuration.parse(document, profiles: profiles).get(), document)
  }

  private static func find(
    _ path: String?, _ places: [String]
  ) throws(ConfigurationFailure) -> (file: String, bytes: [UInt8]) {
    for place in path.map({ [$0] }) ?? places {
      do throws(FileProblem) {
        return (place, try FileProblem.read(place, limit: 1 << 20))
      } catch {
        if path == nil, error.isMissing { continue }
        let hint = error.isMissing ? "name another with --config" : nil
        throw ConfigurationFailure(
          file: place, errors: [ConfigurationError(problem: error.description, hint: hint)])
      }
    }
    throw ConfigurationFailure(
      file: nil,
      errors: [
        ConfigurationError(
          problem: "no configuration: neither \(places.joined(separator: " nor ")) exists",
          hint: "write one: microbit-gateway init; or name another with --config")
      ])
  }

  /// The folder of a file.
  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Why there is no configuration: every error.
package struct ConfigurationFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// Nil when none was found.
  package let file: String?
  /// At least one.
  package let errors: [ConfigurationError]

  /// A line for each error: `config.json:7:15: devices[0].period: 0 is below 20`.
  package var description: String {
    errors.map { error in file.map { error.description(in: $0) } ?? error.description }.joined(
      separator: "\n")
  }
}

/// Reads the files that a configuration names, relative to its own folder.
private struct FileResolver {
  let folder: String
  var errors: [ConfigurationError] = []
  var warnings: [ConfigurationError] = []

  init(folder: String) {
    self.folder = folder
  }

  mutating func resolve(_ mqtt: inout Configuration.MQTT) {
    let path = ConfigurationPath.root.key("mqtt")
    if let bytes = read(&mqtt.passwordFile, path.key("password_file"), isSecret: true) {
      let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
      if line.isEmpty { errors.append(path.key("password_file").error("the file's first line is empty")) }
      mqtt.password = Array(line)
    }
    guard var tls = mqtt.tls else { return }
    _ = read(&tls.caFile, path.key("tls").key("ca_file"), isSecret: false)
    _ = read(&tls.certFile, path.key("tls").key("cert_file"), isSecret: false)
    _ = read(&tls.keyFile, path.key("tls").key("key_file"), isSecret: true)
    mqtt.tls = tls
  }

  /// Resolves the file's name, and reads it.
  private mutating func read(_ file: inout String?, _ key: ConfigurationPath, isSecret: Bool) -> [UInt8]? {
    guard let named = file else { return nil }
    let resolved = named.resolved(in: folder)
    file = resolved
    if isSecret, FileProblem.isReadableByAll(resolved) {
      warnings.append(key.error("\(resolved) can be read by every user", hint: "chmod o-r"))
    }
    do throws(FileProblem) {
      return try FileProblem.read(resolved, limit: 1 << 20)
    } catch {
      errors.append(key.error("\(resolved): \(error)"))
      return nil
    }
  }
}
