import Configuration
import GATT
import JSON

/// What someone has answered to set the gateway up, and the files that follow from it. A terminal, options of the command
/// line or a form give the answers; each is checked when it is given. Pure.
struct SetupAnswers {
  /// Who may open the page in a browser.
  enum Page: String, CaseIterable {
    /// Everybody in this network who knows the password.
    case network
    /// Browsers on this computer.
    case computer
    case nobody

    init(_ http: Configuration.HTTP) {
      self = !http.isEnabled ? .nobody : http.isLocal ? .computer : .network
    }
  }

  /// Which micro:bits are used.
  enum Microbits: String, CaseIterable {
    /// All in range, now and later.
    case all
    /// The micro:bits that somebody lets join.
    case join
  }

  let present: PresentConfiguration
  var page: Page
  /// nil: the message for all gateways has the entries, and one of the file would take the place of one there.
  var microbits: Microbits?
  /// The new config.json, but for the page and the micro:bits.
  private var document: JSONValue
  /// The broker's password; nil: none.
  private var password: [UInt8]?
  /// The new content of files beside config.json, which only the gateway may read.
  private var secrets: [String: [UInt8]] = [:]
  /// Whether the service that uses the configuration can read a file.
  var isReadable: (String) -> Bool = { _ in true }

  init(_ present: PresentConfiguration) {
    self.present = present
    document = present.document ?? [:]
    page = Page(present.configuration.http)
    microbits = !present.isThere || present.entries.contains(where: \.isForEveryMicrobit) ? .all : .join
    let now = present.configuration.mqtt
    password = now.password
    if present.configuration.fleet, document["devices"] == nil { microbits = nil }
    mqtt = document["mqtt"] ?? [:]
    if now.hosts == nil { mqtt.set("host", to: .string(now.host)) }
    mqtt.set("port", to: .integer(now.port))
    if now.tls == nil { mqtt.set("tls", to: nil) }
  }

  /// `mqtt` of the new config.json.
  private(set) var mqtt: JSONValue {
    get { document["mqtt"] ?? [:] }
    set { document.set("mqtt", to: newValue) }
  }
  /// The area of the gateway.
  var area: String? { document["gateway"]?["area"]?.text }
  /// Whether a password of the page is known, or was given.
  var hasPagePassword: Bool { pagePasswordFile != nil }
  private var pagePasswordFile: String? {
    secrets[Self.pagePasswordName] == nil
      ? present.document?["http"]?["password_file"]?.text : Self.pagePasswordName
  }

  private static let pagePasswordName = "http.password"
  private static let brokerPasswordName = "mqtt-password"

  /// Sets a key of a section, by the rules of config.json.
  mutating func set(_ section: String, _ key: String, _ value: JSONValue?) throws(SetupRefusal) {
    let new: JSONValue = [section: ([:] as JSONValue).setting(key, to: value)]
    if case .failure(let errors) = Configuration.parse(new.bytes), let error = errors.errors.first {
      // What follows is about other keys.
      let hint = error.hint?.split(separator: ";").first.map { ": \($0)" } ?? ""
      throw SetupRefusal("\(error.problem)\(hint).")
    }
    if value == nil, document[section] == nil { return }
    document.set(section, to: (document[section] ?? [:]).setting(key, to: value))
  }

  mutating func setFleet() {
    document.set("fleet", to: .bool(true))
    if document["devices"] == nil { microbits = nil }
  }

  // MARK: The page

  mutating func setPagePassword(_ text: String) throws(SetupRefusal) {
    if text.isEmpty, hasPagePassword { return }
    guard text.count >= 4 else {
      throw SetupRefusal("At least 4 characters: who knows the password can control the micro:bits.")
    }
    try Self.checkPassword(text)
    secrets[Self.pagePasswordName] = Array(text.utf8)
  }

  private static func checkPassword(_ text: String) throws(SetupRefusal) {
    guard !text.unicodeScalars.contains(where: \.isControl) else {
      throw SetupRefusal("the password contains a control character")
    }
  }

  // MARK: The broker

  /// - Parameter text: a host, or an address as other programs have it: `broker:1884`, `mqtts://broker`.
  mutating func setHost(_ text: String) throws(SetupRefusal) {
    var host = text
    for (scheme, isEncrypted) in [("mqtt://", false), ("mqtts://", true)] where text.hasPrefix(scheme) {
      host.removeFirst(scheme.count)
      setEncryption(isEncrypted)
    }
    let parts = host.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count == 2, let port = Int(parts[1]) {
      try set("mqtt", "port", .integer(port))
      host = String(parts[0])
    }
    guard Int(host) == nil else {
      throw SetupRefusal("\(Excerpt(host)) is a number, not the name of a computer.")
    }
    try set("mqtt", "host", .string(host))
    mqtt.set("hosts", to: nil)
  }

  mutating func setEncryption(_ isEncrypted: Bool) {
    let usual = mqtt["tls"] == nil ? 1883 : 8883
    if mqtt["port"] == .integer(usual) {
      mqtt.set("port", to: .integer(isEncrypted ? 8883 : 1883))
    }
    mqtt.set("tls", to: isEncrypted ? mqtt["tls"] ?? [:] : nil)
  }

  /// Sets `ca_file`, `cert_file` or `key_file`.
  /// - Parameter file: a typed path is relative to the working folder, one in config.json to the folder of config.json.
  mutating func setTLSFile(_ key: String, _ file: String?) throws(SetupRefusal) {
    guard let tls = mqtt["tls"], file != tls[key]?.text else { return }
    let path = file?.absolutePath
    if let path, !isReadable(path) {
      throw SetupRefusal(
        "The service may not read \(path). Make a copy, and name that: "
          + ServiceAccess.copyCommand(path, to: present.folder))
    }
    mqtt.set("tls", to: tls.setting(key, to: path.map(JSONValue.string)))
  }

  mutating func setUsername(_ username: String?) throws(SetupRefusal) {
    let before = mqtt["username"]?.text
    try set("mqtt", "username", username.map(JSONValue.string))
    // The password was that of another user.
    guard username != before else { return }
    if let file = mqtt["password_file"]?.text { secrets[file] = nil }
    mqtt.set("password_file", to: nil)
    password = nil
  }

  /// Puts the password into the file beside config.json. A file elsewhere may be another program's too.
  mutating func setPassword(_ text: String) throws(SetupRefusal) {
    try Self.checkPassword(text)
    let new = Array(text.utf8)
    let file = present.document?["mqtt"]?["password_file"]?.text
    let name = file.flatMap { $0.contains("/") ? nil : $0 } ?? Self.brokerPasswordName
    password = new
    let isPresent = new == present.configuration.mqtt.password
    // Another one may have been given before.
    secrets[name] = isPresent ? nil : new
    mqtt.set("password_file", to: isPresent ? file.map(JSONValue.string) : .string(name))
  }

  // MARK: The micro:bits

  /// Adds the entry of a micro:bit, or changes the present one: `ADDRESS=NAME,AREA`. The id in topics follows from the
  /// name.
  mutating func addDevice(_ text: String) throws(SetupRefusal) {
    let parts = text.split(separator: "=", maxSplits: 1)
    guard
      let address = parts.first.flatMap({ BluetoothAddress($0) ?? BluetoothAddress(compact: $0.lowercased()) }
      )
    else {
      throw SetupRefusal("\(text) must begin with an address such as C5:A1:B2:C3:D4:E5 (see scan)")
    }
    let words = parts.dropFirst().joined().split(separator: ",", maxSplits: 1).map(String.init)
    var entries = document["devices"]?.elements ?? []
    // The first that matches is used: one for this micro:bit comes before those for several.
    let index = entries.firstIndex { $0.address == address }
    var entry =
      index.map { entries.remove(at: $0) } ?? ["match": ["identifier": .string(address.description)]]
    if let name = words.first {
      entry.set("name", to: .string(name))
      if let id = TopicWord.similar(to: name) { entry.set("id", to: .string(id)) }
    }
    if words.count > 1 { entry.set("area", to: .string(words[1])) }
    entries.insert(entry, at: index ?? entries.firstIndex { $0.address == nil } ?? entries.endIndex)
    document.set("devices", to: .array(entries))
  }

  /// Two entries with one id, which is made of the name.
  func checkNames() throws(SetupRefusal) {
    var owners: [String: JSONValue] = [:]
    for entry in document["devices"]?.elements ?? [] {
      guard let id = entry["id"]?.text else { continue }
      if let other = owners.updateValue(entry, forKey: id) {
        let (one, two) = (other.address?.description ?? "another", entry.address?.description ?? "another")
        throw SetupRefusal(
          "\(one) and \(two) are both called \(Excerpt(id)) in topics: choose another name for one of them.")
      }
    }
  }

  // MARK: The result

  /// The new config.json.
  private var result: JSONValue {
    var result = document
    if secrets[Self.pagePasswordName] != nil || page != Page(present.configuration.http) {
      var http = (document["http"] ?? [:]).setting("enabled", to: .bool(page != .nobody))
      switch page {
      case .network:
        if present.configuration.http.isLocal { http.set("address", to: "::") }
        http.set("password_file", to: pagePasswordFile.map(JSONValue.string))
      case .computer: http.set("address", to: nil)
      case .nobody: break
      }
      result.set("http", to: http)
    }
    if let microbits {
      var entries = document["devices"]?.elements ?? present.entries
      if microbits == .join {
        entries.removeAll(where: \.isForEveryMicrobit)
      } else if !entries.contains(where: \.isForEveryMicrobit) {
        entries.append(.everyMicrobit)
      }
      result.set("devices", to: .array(entries))
    }
    // Somebody has decided: the gateway is not open for set-up in a browser any more.
    if let parsed = try? Configuration.parse(result.bytes).get(), !parsed.isSetUp(result) {
      result.set("http", to: (result["http"] ?? [:]).setting("enabled", to: .bool(page != .nobody)))
    }
    return result
  }

  /// The configuration that the answers make, with its password.
  func configuration() throws(CommandFailure) -> Configuration {
    do throws(ConfigurationErrors) {
      let bytes = Array(PresentConfiguration.text(result).utf8)
      var configuration = try ConfigurationFile.parse(bytes, at: present.path, filesMayBeAway: true)
        .configuration
      configuration.mqtt.password = password
      return configuration
    } catch {
      throw CommandFailure(.configuration, error.errors.map(\.description).joined(separator: "\n"))
    }
  }

  /// What is to be written.
  var plan: SetupPlan {
    SetupPlan(text: result == present.document ? nil : PresentConfiguration.text(result), secrets: secrets)
  }
}

/// What set-up writes.
struct SetupPlan: Equatable, Sendable {
  /// The new config.json; nil: it stays as it is.
  var text: String?
  /// The passwords, by the names of their files beside config.json.
  var secrets: [String: [UInt8]] = [:]

  var isEmpty: Bool { text == nil && secrets.isEmpty }
}

extension JSONValue {
  static let everyMicrobit: JSONValue = ["match": ["name_prefix": .string(Profile.microbitNamePrefix)]]

  var isForEveryMicrobit: Bool { self["match"] == Self.everyMicrobit["match"] }

  /// The address that the entry names; nil: it is for several devices.
  fileprivate var address: BluetoothAddress? { self["match"]?.identifier }
}
