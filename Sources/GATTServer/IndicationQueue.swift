import EventLoop

/// The indications of a characteristic: each is handed to bluetoothd when the one before has been confirmed.
///
/// bluetoothd 5.66 sends indications that it has to queue in reverse order.
struct IndicationQueue: Sendable {
  /// Further indications are dropped.
  private static let longest = 64
  /// A central that does not confirm in this time ends the link (Core specification, Vol 3, Part F, 3.3.3).
  private static let timeout = Duration.seconds(30)

  private var waiting: [[UInt8]] = []
  /// When the unconfirmed indication was sent.
  private var sent: Moment?

  /// - Returns: what is to be sent now.
  mutating func add(_ bytes: [UInt8], at now: Moment) -> [UInt8]? {
    if waiting.count < Self.longest { waiting.append(bytes) }
    if let sent, now < sent + Self.timeout { return nil }
    return next(at: now)
  }

  /// The indication that was sent is confirmed, or no longer awaited.
  /// - Returns: what is to be sent now.
  mutating func next(at now: Moment) -> [UInt8]? {
    sent = waiting.isEmpty ? nil : now
    return waiting.isEmpty ? nil : waiting.removeFirst()
  }
}
