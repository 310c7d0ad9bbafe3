/// The clock of one sender by radio, in ms since its program started.
struct RadioClock: Sendable {
  /// Packets may overtake each other on their way through two receivers: by less than this.
  private static let tolerance: Int64 = 2000

  private var last: Int64?

  /// A packet was received.
  /// - Returns: whether the sender was reset: its clock has stepped back.
  mutating func received(_ time: UInt32) -> Bool {
    let time = Int64(time)
    let isReset = last.map { time < $0 - Self.tolerance } ?? false
    last = isReset ? time : max(time, last ?? 0)
    return isReset
  }
}
