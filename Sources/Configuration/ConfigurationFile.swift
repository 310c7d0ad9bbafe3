import GATT
import JSON

/// A configuration read from disk, with the files that it names.
package struct ConfigurationFile: Sendable {
  package let path: String
  /// The configuration with the defaults, the password and all profiles.
  package let configuration: Configuration
  /// The ``digest(_:)`` of the file's content.
  package let digest: String
  /// The JSON of the file: what is not in it has its default.
  package let document: JSONValue
  /// What is valid but probably a mistake.
  package let warnings: [ConfigurationError]

  /// The files that are tried when none is named.
  package static let searched = ["./config.json", service]
  /// The configuration of the installed service.
  package static let service = "/etc/microbit-gateway/config.json"
  /// The user of the service, to whom its files with passwords belong.
  package static let serviceUser = "microbit-gateway"

  /// Reads the configuration at `path`, else the first of ``searched`` that exists, and the files it names.
  /// Blocks while it reads.
  /// - Parameters:
  ///   - excluded: keys of the document that are treated as absent.
  ///   - filesMayBeAway: the files that it names need not be readable yet: for a gateway that starts. It reads those of `mqtt`
  ///     and `http` again until it can, and says so; those of devices are warnings.
  /// - Throws: every error that was found.
  package static func load(
    path: String?, searching places: [String] = searched, without excluded: Set<String> = [],
    filesMayBeAway: Bool = false
  ) throws(ConfigurationErrors) -> ConfigurationFile {
    let (file, bytes) = try find(path, places)
    return try parse(bytes, at: file, without: excluded, filesMayBeAway: filesMayBeAway)
  }

  /// Reads a configuration as the file at `path` holds it, and the files that it names.
  package static func parse(
    _ bytes: [UInt8], at path: String, without excluded: Set<String> = [], filesMayBeAway: Bool
  ) throws(ConfigurationErrors) -> ConfigurationFile {
    do throws(ConfigurationErrors) {
      let folder = folder(of: path)
      let document = try Configuration.document(bytes).get().without(excluded)
      let installed = try ProfilesDirectory.profiles(namedBy: document, in: folder)
      var configuration = try Configuration.parse(document, profiles: installed.profiles).get()
      let warnings = configuration.warnings(installed: installed.profiles.count)
      var resolver = FileResolver(folder: folder)
      resolver.resolve(&configuration.mqtt)
      resolver.resolve(&configuration.http)
      resolver.resolve(&configuration.devices)
      let errors = resolver.errors.map { $0.located(in: document) }
      guard filesMayBeAway || errors.isEmpty else { throw ConfigurationErrors(errors: errors) }
      return ConfigurationFile(
        path: path, configuration: configuration, digest: digest(bytes), document: document.value,
        warnings: warnings.map { $0.located(in: document) } + installed.warnings
          + resolver.warnings.map { $0.located(in: document) }
          + errors.filter { $0.path.section == "devices" })
    } catch {
      throw error.located(in: path)
    }
  }

  /// The password in a file: its first line, which is not empty, without a byte order mark.
  package static func password(in file: String) throws(FileProblem) -> [UInt8] {
    var bytes = try FileProblem.read(file)[...]
    // Editors on Windows write it.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    if line.isEmpty { throw FileProblem("its first line is empty") }
    // UTF-16 has one or the other.
    guard let text = String(validating: line, as: UTF8.self) else {
      throw FileProblem("its first line is not UTF-8: save the file as UTF-8")
    }
    guard !text.unicodeScalars.contains(where: \.isControl) else {
      throw FileProblem("its first line has a control character: save the file as plain text in UTF-8")
    }
    return Array(line)
  }

  /// Tells whether two contents are the same.
  package static func digest(_ bytes: [UInt8]) -> String { String(Digest.of(bytes), radix: 16) }

  private static func find(
    _ path: String?, _ places: [String]
  ) throws(ConfigurationErrors) -> (file: String, bytes: [UInt8]) {
    for place in path.map({ [$0] }) ?? places {
      if path == nil, !place.hasPrefix("/"), let reason = FileProblem.distrust(place) {
        throw .unreadable(
          place, FileProblem("root does not use it: \(reason)"),
          hint: "name it with --config if you trust what it says, or go to another folder")
      }
      do throws(FileProblem) {
        return (place, try FileProblem.read(place))
      } catch {
        if path == nil, error.isMissing { continue }
        let hint = error.isMissing ? "name another with --config" : nil
        throw .unreadable(place, error, hint: hint)
      }
    }
    throw .unreadable(
      nil, FileProblem("no configuration: neither \(places.joined(separator: " nor ")) exists"),
      hint: "write one: microbit-gateway init; or name another with --config")
  }

  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Reads the files that a configuration names, relative to its own folder.
struct FileResolver {
  let folder: String
  var errors: [ConfigurationError] = []
  var warnings: [ConfigurationError] = []

  mutating func resolve(_ mqtt: inout Configuration.MQTT) {
    let path = ConfigurationPath.root.key("mqtt")
    mqtt.password = read(
      &mqtt.passwordFile, path.key("password_file"), isSecret: true, ConfigurationFile.password)
    guard var tls = mqtt.tls else { return }
    read(&tls.caFile, path.key("tls").key("ca_file"), isSecret: false)
    read(&tls.certFile, path.key("tls").key("cert_file"), isSecret: false)
    read(&tls.keyFile, path.key("tls").key("key_file"), isSecret: true)
    mqtt.tls = tls
  }

  mutating func resolve(_ http: inout Configuration.HTTP) {
    let path = ConfigurationPath.root.key("http")
    let password = read(
      &http.passwordFile, path.key("password_file"), isSecret: true, ConfigurationFile.password)
    let key = path.key("read_password_file")
    let reading = read(&http.readPasswordFile, key, isSecret: true, ConfigurationFile.password)
    if let reading, reading == password {
      warnings.append(key.error("whoever has this password can change everything: both are the same"))
    }
  }

  mutating func resolve(_ devices: inout [Configuration.Device]) {
    for index in devices.indices {
      let key = ConfigurationPath.root.key("devices").index(index).key("key_file")
      devices[index].key =
        read(&devices[index].keyFile, key, isSecret: true) { (file) throws(FileProblem) in
          let line = String(decoding: try ConfigurationFile.password(in: file), as: UTF8.self)
          guard let key = ConfigurationRule<[UInt8]>.encryptionKey(line) else {
            throw FileProblem("its first line has not the 32 hexadecimal digits of a key")
          }
          return key
        } ?? devices[index].key
    }
  }

  /// How to close a file to others, so that who needs it can still read it.
  static func closing(_ file: String) -> String {
    let isOfService =
      ConfigurationFile.folder(of: file) == ConfigurationFile.folder(of: ConfigurationFile.service)
    return isOfService
      ? "sudo chown \(ConfigurationFile.serviceUser) \(file); sudo chmod 600 \(file)" : "chmod o-r \(file)"
  }

  /// Resolves the file's name, and reads it.
  @discardableResult
  private mutating func read(
    _ file: inout String?, _ key: ConfigurationPath, isSecret: Bool,
    _ content: (String) throws(FileProblem) -> [UInt8] = { (file) throws(FileProblem) in
      try FileProblem.read(file)
    }
  ) -> [UInt8]? {
    guard let named = file else { return nil }
    let resolved = named.resolved(in: folder)
    file = resolved
    if isSecret, FileProblem.isReadableByAll(resolved) {
      warnings.append(key.error("\(resolved) can be read by every user", hint: Self.closing(resolved)))
    }
    do throws(FileProblem) {
      return try content(resolved)
    } catch {
      let hint = error.isMissing ? "create it, or correct the path" : nil
      errors.append(key.error(resolved, error, hint: hint))
      return nil
    }
  }
}
