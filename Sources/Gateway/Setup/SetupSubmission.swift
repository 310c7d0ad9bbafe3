import BlueZ
import Configuration
import EventLoop
import Glibc
import JSON

/// The answers of the form for set-up in a browser. No file, path or URL can be given.
struct SetupSubmission: ConfigurationSection {
  private var page = SetupAnswers.Page.network
  private var pagePassword: String?
  /// The broker; nil: the one on this computer.
  private var host: String?
  private var port: Int?
  private var isEncrypted = false
  private var username: String?
  private var password: String?
  private var microbits = SetupAnswers.Microbits.all
  private var area: String?
  /// Whether the broker is taken without being tried.
  private(set) var insists = false

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("page", \.page, .choice),
    ConfigurationKey("page_password", \.pagePassword, .optional(.text(longest: 128))),
    ConfigurationKey("host", \.host, .optional(.text(longest: 253))),
    ConfigurationKey("port", \.port, .optional(.integer(1...65535))),
    ConfigurationKey("tls", \.isEncrypted, .bool),
    ConfigurationKey("username", \.username, .optional(.text(longest: 128))),
    ConfigurationKey("password", \.password, .optional(.text(longest: 1024))),
    ConfigurationKey("microbits", \.microbits, .choice),
    ConfigurationKey("area", \.area, .optional(.text(longest: 64))),
    ConfigurationKey("insist", \.insists, .bool),
  ]

  init() {}

  init(_ json: JSONValue) throws(SetupRefusal) {
    var errors: [ConfigurationError] = []
    guard let answers = Self.read(json, nil, .root, &errors), errors.isEmpty else {
      throw SetupRefusal(errors.map(\.description).joined(separator: "; "))
    }
    self = answers
  }

  /// The present configuration with these answers.
  func answers(_ present: PresentConfiguration) throws(SetupRefusal) -> SetupAnswers {
    var answers = SetupAnswers(present)
    answers.page = page
    if page == .network { try answers.setPagePassword(pagePassword ?? "") }
    answers.setEncryption(isEncrypted)
    if let port { try answers.set("mqtt", "port", .integer(port)) }
    // What the address says goes before the fields, which may be untouched; TLS that was chosen stays.
    if let host { try answers.setHost(host) }
    if isEncrypted { answers.setEncryption(true) }
    try answers.setUsername(username)
    if username != nil, let password { try answers.setPassword(password) }
    answers.microbits = microbits
    if let area { try answers.set("gateway", "area", .string(area)) }
    return answers
  }
}

/// The answers that were given in a browser, until they are written: by the gateway when it starts, or, for the service, which
/// cannot write its configuration, by root before that (deploy/microbit-gateway.service).
struct PendingSetup: Sendable {
  let path: String

  /// - Returns: nil if there is no folder for them.
  init?(_ environment: [String: String] = StateFolder.environment) {
    guard let folder = StateFolder.path(environment) else { return nil }
    path = "\(folder)/setup.json"
  }

  /// The mark of `setup --apply` in systemd's `RuntimeDirectory=`, which is empty before each start of the service.
  private static func mark(_ environment: [String: String]) -> String? {
    environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first.map { "\($0)/setup" }
  }

  /// The unit that has started this process has run `setup --apply` before, for this configuration, and does so when it starts it
  /// again.
  static func isApplied(
    to configuration: String, _ environment: [String: String] = StateFolder.environment
  ) -> Bool {
    mark(environment).flatMap { try? FileProblem.read($0, limit: 4096) } == Array(configuration.utf8)
  }

  /// `setup --apply` runs: see ``isApplied(to:_:)``.
  static func noteApplied(
    to configuration: String, _ environment: [String: String] = StateFolder.environment
  ) {
    guard let mark = mark(environment) else { return }
    // Root follows no link of the service's user: the file takes its place.
    try? NewFile(at: mark, Array(configuration.utf8), mode: 0o644).replace()
  }

  /// Keeps the answers. Blocks.
  func store(_ answers: JSONValue) throws(CommandFailure) {
    Folder.make(ConfigurationFile.folder(of: path), mode: 0o755)
    try NewFile(at: path, answers.bytes, mode: 0o600).replace()
  }

  /// Writes the configuration with the answers, if there are any and the gateway is not set up. They are used once. Blocks.
  /// - Returns: what was done, in lines for the log.
  func apply(
    to configuration: String, service: String = ConfigurationFile.service
  ) throws(CommandFailure) -> [String] {
    var status = stat()
    guard lstat(path, &status) == 0 else { return [] }
    defer { unlink(path) }
    // Root reads no other file through a link of the service's user.
    guard let bytes = try? FileProblem.read(path, limit: 64 << 10, followsLink: false),
      let json = try? JSONParser.parse(bytes)
    else { throw CommandFailure(.refused, "\(path) has no answers") }
    let present = PresentConfiguration(readingFrom: configuration)
    if let problem = present.problem { throw CommandFailure(.configuration, problem) }
    if let document = present.document, present.configuration.isSetUp(document) {
      throw CommandFailure(
        .refused, "\(present.path) was set up already: the answers of the browser are not used")
    }
    let answers: SetupAnswers
    do throws(SetupRefusal) {
      answers = try SetupSubmission(json).answers(present)
    } catch {
      throw CommandFailure(.refused, error.description)
    }
    _ = try answers.configuration()
    let files = SetupFiles(path: present.path, serviceConfiguration: service)
    if let problem = files.problem { throw CommandFailure(.refused, problem) }
    let notes = try files.write(answers.plan, backup: files.newBackup)
    let unblocked = RFKill.unblock(present.configuration.bluetooth.adapters).map { [$0] } ?? []
    return ["written: \(present.path)"] + notes + unblocked
  }
}
