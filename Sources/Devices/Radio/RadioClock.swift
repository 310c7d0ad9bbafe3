import EventLoop

/// The clock of one sender by radio, in ms since its program started.
struct RadioClock: Sendable {
  /// Anybody can send as anybody, with any time: more resets than one in this time are not believed.
  private static let pause = Duration.seconds(60)
  /// Packets may overtake each other on their way through two receivers: by less than this.
  private static let tolerance: Int64 = 2000

  private var last: Int64?
  private var reset: Moment?

  /// A packet was received.
  /// - Returns: whether the sender was reset: its clock has stepped back.
  mutating func received(_ time: UInt32, at now: Moment) -> Bool {
    let time = Int64(time)
    guard let last, time < last - Self.tolerance else {
      last = max(time, last ?? 0)
      return false
    }
    self.last = time
    if let reset, now < reset + Self.pause { return false }
    reset = now
    return true
  }
}
