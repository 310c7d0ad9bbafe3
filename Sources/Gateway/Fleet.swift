import Bridge
import Configuration
import EventLoop
import Store

/// The message for the whole fleet that is in force, and what became of the last one.
@LoopActor struct Fleet {
  /// The section of the state database.
  nonisolated static let section = "fleet"
  /// The key of the message in force, for a start without the broker.
  nonisolated static let key = "config"

  private let state: StateSection
  private(set) var inForce: FleetConfiguration?
  private(set) var status: FleetStatus?
  /// The last message, if it is valid and does not fit config.json: it is decided again when that has changed.
  private var misfit: Message?
  /// The newest message that is not decided.
  private var waiting: [UInt8]?
  /// The digest of the last one that was decided, or is being decided.
  private var last: String
  /// Whether ``next()`` will be called.
  private var isDeciding = false

  /// - Parameter isAllowed: the key `fleet` of config.json.
  init(_ state: StateSection, isAllowed: Bool) {
    self.state = state
    let stored = state.takeRecords()[Self.key] ?? []
    inForce = isAllowed ? try? FleetConfiguration.read(stored) : nil
    last = ConfigurationFile.digest(inForce == nil ? [] : stored)
    if inForce == nil, !stored.isEmpty { state.put(Self.key, nil) }
  }

  /// Withdraws the message in force; called when config.json no longer has `fleet`.
  mutating func forget() {
    waiting = nil
    remove()
  }

  private mutating func remove() {
    if inForce != nil { state.put(Self.key, nil) }
    (inForce, misfit, status, last) = (nil, nil, nil, ConfigurationFile.digest([]))
  }

  // MARK: Messages

  /// - Returns: whether to call ``next()``.
  mutating func received(_ payload: [UInt8]) -> Bool {
    waiting = payload
    defer { isDeciding = true }
    return !isDeciding
  }

  /// The message to decide now; nil: none. One that is equal to the last one is left out.
  mutating func next() -> [UInt8]? {
    let payload = waiting.flatMap { ConfigurationFile.digest($0) == last ? nil : $0 }
    waiting = nil
    isDeciding = payload != nil
    if let payload { last = ConfigurationFile.digest(payload) }
    return payload
  }

  /// What a message says. Blocks for some milliseconds.
  struct Message: Sendable {
    let payload: [UInt8]
    let content: Result<FleetConfiguration, ConfigurationErrors>
    /// Nil: it has none.
    let version: Int?

    init(_ payload: [UInt8]) {
      self.payload = payload
      content = Result { () throws(ConfigurationErrors) in try FleetConfiguration.read(payload) }
      version = (try? content.get().version) ?? FleetConfiguration.version(of: payload)
    }
  }

  /// - Parameter message: an empty one: the fleet has no configuration any more.
  /// - Returns: whether another one is in force.
  mutating func decide(_ message: Message, _ file: ConfigurationFile) -> Bool {
    misfit = nil
    if message.payload.isEmpty {
      defer { remove() }
      return inForce != nil
    }
    do throws(ConfigurationErrors) {
      let new = try message.content.get()
      status = FleetStatus(version: new.version)
      if new == inForce {
        _ = configuration(with: file)
        return false
      }
      if new.version == inForce?.version {
        throw ConfigurationErrors(
          ConfigurationPath.root.error("this version has another content", hint: "give each content its own"))
      }
      misfit = message
      _ = try new.merged(into: file)
      misfit = nil
      inForce = new
      state.put(Self.key, message.payload)
      return true
    } catch {
      let rest = inForce.map { "version \($0.version) stays in force" } ?? "none is in force"
      status = FleetStatus(version: message.version, reason: "\(error.summary); \(rest)")
      return false
    }
  }

  // MARK: The configuration

  /// What the file and the fleet make together; the file alone if they do not fit.
  mutating func configuration(with file: ConfigurationFile) -> Configuration {
    guard file.configuration.fleet else { return file.configuration }
    if let misfit { _ = decide(misfit, file) }
    guard let inForce else { return file.configuration }
    do throws(ConfigurationErrors) {
      let merged = try inForce.merged(into: file)
      if status == nil || status?.version == inForce.version {
        status = FleetStatus(version: inForce.version)
      }
      return merged
    } catch {
      status = FleetStatus(
        version: inForce.version, reason: "\(error.summary); it does not fit \(file.path): none is in force")
      return file.configuration
    }
  }
}
