import EventLoop

/// When the queued messages of a connection are sent: those of a loop iteration together at its end, in as few segments
/// as possible. Urgent messages are sent at once, but only a few in an iteration: with many, waiting for the end is
/// faster. Pure.
struct SendSchedule {
  enum Decision: Equatable {
    case now
    case atEndOfIteration
    /// The admission is awaited.
    case wait
  }

  private static let mostAtOnce = 4

  /// Whether queued messages may be sent on this connection.
  private(set) var isAdmitted: Bool
  /// How many messages were sent at once in an iteration.
  private var atOnce = (iteration: UInt64(0), count: 0)

  init(isAdmitted: Bool) { self.isAdmitted = isAdmitted }

  mutating func admit() { isAdmitted = true }

  /// A message was queued in an iteration of the loop.
  mutating func queued(isUrgent: Bool, in iteration: UInt64) -> Decision {
    guard isAdmitted else { return .wait }
    if isUrgent {
      if atOnce.iteration != iteration { atOnce = (iteration, 0) }
      atOnce.count += 1
      if atOnce.count <= Self.mostAtOnce { return .now }
    }
    return .atEndOfIteration
  }
}
