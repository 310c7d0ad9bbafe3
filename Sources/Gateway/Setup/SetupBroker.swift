import Configuration
import JSON

/// The broker, as answered so far.
struct SetupBroker: Equatable {
  enum Password: Equatable {
    case none
    /// That of the present configuration; nil if its file cannot be read.
    case present([UInt8]?)
    /// To be written to a file.
    case typed([UInt8])
    /// In a file of the user's.
    case file(String, [UInt8])

    var bytes: [UInt8]? {
      switch self {
      case .none: nil
      case .present(let bytes): bytes
      case .typed(let bytes), .file(_, let bytes): bytes
      }
    }
  }

  private(set) var host = "localhost"
  private(set) var port = 1883
  private(set) var isEncrypted = false
  /// Nil: the certificates of the system.
  private(set) var caFile: String?
  private(set) var username: String?
  private(set) var password = Password.none

  init() {}

  /// That of a present configuration.
  init(_ mqtt: Configuration.MQTT, password: [UInt8]?) {
    host = mqtt.host
    port = mqtt.port
    isEncrypted = mqtt.tls != nil
    caFile = mqtt.tls?.caFile
    username = mqtt.username
    self.password = mqtt.passwordFile == nil ? .none : .present(password)
  }

  mutating func setHost(_ host: String) throws(SetupRefusal) {
    try Self.check(["host": .string(host)])
    if Int(host) != nil {
      throw SetupRefusal("\(Excerpt(host)) is a number: the port is asked for later.")
    }
    self.host = host
  }

  mutating func setEncryption(_ isEncrypted: Bool) {
    if isEncrypted != self.isEncrypted, port == Self.usualPort(self.isEncrypted) {
      port = Self.usualPort(isEncrypted)
    }
    self.isEncrypted = isEncrypted
    if !isEncrypted { caFile = nil }
  }

  private static func usualPort(_ isEncrypted: Bool) -> Int { isEncrypted ? 8883 : 1883 }

  mutating func setCAFile(_ file: String?) { caFile = file }

  mutating func setPort(_ text: String) throws(SetupRefusal) {
    guard let port = Int(text), (1...65535).contains(port) else {
      throw SetupRefusal("\(Excerpt(text)) is not a port: a number from 1 to 65535, usually 1883.")
    }
    self.port = port
  }

  /// - Parameter keepsPassword: whether the password belongs to another user as well.
  mutating func setUsername(_ username: String?, keepsPassword: Bool) throws(SetupRefusal) {
    if let username { try Self.check(["username": .string(username)]) }
    if username == nil || username != self.username && !keepsPassword { password = .none }
    self.username = username
  }

  mutating func setPassword(_ password: Password) { self.password = password }

  /// Checks keys of `mqtt` by the rules of config.json.
  private static func check(_ mqtt: JSONValue) throws(SetupRefusal) {
    let document: JSONValue = ["mqtt": mqtt]
    guard case .failure(let errors) = Configuration.parse(document.bytes), let error = errors.errors.first
    else { return }
    throw SetupRefusal(Self.inWords("\(error.problem)\(error.hint.map { ": \($0)" } ?? "")."))
  }

  /// A text for someone who has answered questions and has not seen the keys of config.json.
  static func inWords(_ text: String) -> String {
    // In this order: mqtt.tls begins other keys.
    [
      ("the port goes to mqtt.port", "the port is asked for later"), ("mqtt.host", "the broker's name"),
      ("mqtt.port", "the port"), ("mqtt.tls.ca_file", "the CA certificate"),
      ("mqtt.username", "the user name"),
      ("mqtt.password_file", "the password"), ("mqtt.tls", "whether it needs TLS"),
    ].reduce(text) { replace($1.0, with: $1.1, in: $0) }
  }

  /// Without `String.replacing`, with which the program would contain the regular expressions of Swift: 4 MB.
  private static func replace(_ old: String, with new: String, in text: String) -> String {
    var result = ""
    var rest = text[...]
    while let start = rest.indices.first(where: { rest[$0...].hasPrefix(old) }) {
      result += rest[..<start] + new
      rest = rest[start...].dropFirst(old.count)
    }
    return result + rest
  }
}
