public struct Outbox: Sendable {
  /// How much may wait for a broker that is away.
  public struct Limits: Sendable, Equatable {
    /// Events, and their bytes (topics and payloads).
    public var events = 10_000
    public var bytes = 4 * 1024 * 1024
    /// QoS 1 messages sent and not yet acknowledged; the broker may lower it.
    public var inFlight = 64

    public init() {}
  }
}
