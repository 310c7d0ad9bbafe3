import EventLoop

/// Which of several brokers is used: they are tried in their order. While a later one is used, the first is probed, and
/// used again when it has been well for a while. Pure.
struct HostChoice {
  private let count: Int
  private let returnAfter: Duration
  /// The index of the broker of the current or next attempt.
  private(set) var index = 0
  /// Since when every probe of the first broker was successful; nil: the last one was not, or there was none.
  private var wellSince: Moment?

  init(count: Int, returnAfter: Duration) {
    self.count = count
    self.returnAfter = returnAfter
  }

  /// Whether the first broker is to be probed while the connection lasts.
  var probesFirst: Bool { index > 0 }

  /// An attempt has failed, or the connection did not last: the next one follows.
  /// - Returns: whether that has not been tried since the first.
  mutating func failed() -> Bool {
    index = (index + 1) % count
    wellSince = nil
    return index > 0
  }

  /// A connection that had lasted has ended: the first one follows.
  mutating func ended() {
    index = 0
    wellSince = nil
  }

  /// - Returns: whether the first broker is to be used again.
  mutating func probed(isWell: Bool, at now: Moment) -> Bool {
    guard probesFirst else { return false }
    wellSince = isWell ? (wellSince ?? now) : nil
    guard let wellSince, wellSince.duration(to: now) >= returnAfter else { return false }
    ended()
    return true
  }
}
