import EventLoop

/// Whether the readings on a link show that it is alive. A part of ``LinkMachine``.
///
/// A link is dead when no reading has come for three periods, at least 30 s. A new period starts after the sample that is
/// scheduled already (up to 65 s away), so until the next periodic reading the longer of the two counts.
struct Liveness: Sendable {
  /// Whether there was a reading on this link.
  private(set) var hasReading = false
  private var liveSince: Moment?
  /// When the session became live, or the last reading since.
  private(set) var lastSignOfLife: Moment
  /// The period of the readings that keep the link alive; nil: the link alone does.
  private var period: Duration?
  /// Whether the link offers those readings.
  private var isExpected = true
  /// The period after the next periodic reading, if it is another one.
  private var nextPeriod: Duration?

  private static let leastLimit = Duration.seconds(30)
  /// The length of a link after which the back-off starts anew.
  private static let goodLink = Duration.seconds(30)
  /// The length of a link after which earlier moves to other gateways do not count.
  private static let steadyLink = Duration.seconds(600)

  /// - Parameter period: as long as no other is known; nil: the link alone keeps it alive.
  init(now: Moment, period: Duration?) {
    lastSignOfLife = now
    self.period = period
  }

  /// The longest time without a reading; nil: no limit.
  var limit: Duration? { isExpected ? period.map { Self.limit(max($0, nextPeriod ?? .zero)) } : nil }

  private static func limit(_ period: Duration) -> Duration { max(leastLimit, period * 3) }

  mutating func linked() { hasReading = false }

  /// - Parameter isExpected: whether the link offers the readings that keep it alive.
  mutating func expect(_ isExpected: Bool, at now: Moment) {
    if isExpected, !self.isExpected { lastSignOfLife = now }
    self.isExpected = isExpected
  }

  mutating func becameLive(at now: Moment) {
    liveSince = now
    lastSignOfLife = now
  }

  /// A reading has arrived. On the path of every notification.
  /// - Parameter isPeriodic: whether it is one of those that keep the link alive: they tell when a new period has begun.
  mutating func readingReceived(at now: Moment, isPeriodic: Bool) {
    lastSignOfLife = now
    hasReading = true
    if isPeriodic, let next = nextPeriod {
      period = next
      nextPeriod = nil
    }
  }

  /// - Returns: when to look again; nil: nothing has changed, or no readings are expected.
  mutating func setPeriod(_ new: Duration) -> Duration? {
    guard let period, new != nextPeriod ?? period else { return nil }
    nextPeriod = new
    return isExpected ? Self.limit(new) : nil
  }

  /// Whether the link, which was alive until `end`, lasted long enough for earlier failures not to count.
  func wasGood(until end: Moment) -> Bool {
    liveSince.map { $0.duration(to: end) >= Self.goodLink } ?? false
  }

  /// Whether the link lasted long enough for earlier moves to other gateways not to count.
  var wasSteady: Bool { liveSince.map { $0.duration(to: lastSignOfLife) >= Self.steadyLink } ?? false }
}
