/// An MQTT broker of its own for a test, on a free port of the loopback interface.
public protocol TestBroker: Sendable {
  /// Stays the same from one ``start()`` to the next, as it does for a broker that is restarted.
  var port: UInt16 { get }

  /// Starts it again after ``stop()`` or ``kill()``.
  func start() async throws

  /// Ends it in order: clients are told (MQTT 5).
  func stop() async throws

  /// Ends it as a crash would.
  func kill() async throws

  /// Stops its process without ending it, so that connections stay and nothing answers; `false` lets it go on.
  func freeze(_ isFrozen: Bool)

  /// Its log since it was started.
  var log: String { get }

  /// The next line of its log that satisfies `condition`, from where the last call left off.
  @discardableResult
  func logLine(
    within limit: Duration, where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String
}

extension TestBroker {
  @discardableResult
  public func logLine(where condition: @escaping @Sendable (String) -> Bool) async throws -> String {
    try await logLine(within: .seconds(10), where: condition)
  }
}
