import EventLoop

/// The clock of one sender by radio, in ms since its program started, beside that of this machine.
struct RadioClock: Sendable {
  /// Packets may overtake each other on their way through two receivers: by less than this.
  private static let tolerance: Int64 = 2000
  /// By how much the two clocks may run apart, in ms per second.
  private static let drift = 0.5

  private var last: Int64?
  /// When the program started, by the packet that took the shortest way; and when that was found.
  private var start: (moment: Moment, found: Moment)?

  /// A packet was received.
  /// - Returns: whether the sender was reset: its clock has stepped back.
  mutating func received(_ time: UInt32, at now: Moment) -> Bool {
    let time = Int64(time)
    let isReset = last.map { time < $0 - Self.tolerance } ?? false
    last = isReset ? time : max(time, last ?? 0)
    if isReset { start = nil }
    let found = now + .milliseconds(-time)
    let known = start.map { start in
      start.moment + .milliseconds(start.found.duration(to: now) / .seconds(1) * Self.drift)
    }
    start = (known.map { min($0, found) } ?? found, now)
    return isReset
  }

  /// When a packet was sent that was received now; nil: that is not known.
  func sent(_ time: UInt32?) -> Moment? {
    guard let time, let start else { return nil }
    return start.moment + .milliseconds(Int64(time))
  }
}
