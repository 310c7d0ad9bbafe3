import EventLoop

/// Whether the readings on a link show that it is alive. A part of ``PeripheralSession``.
struct Liveness: Sendable {
  /// Whether there was a reading on this link.
  private(set) var hasReading = false
  private var liveSince: Moment?
  /// When the session became live, or the last reading since.
  private(set) var lastSignOfLife: Moment
  /// Nil: the link alone keeps it alive.
  private var silence: Silence?

  /// After a link that lasted this long, the back-off starts anew.
  private static let goodLink = Duration.seconds(30)
  /// The same, if another gateway takes the device over.
  private static let steadyLink = Duration.seconds(600)

  /// - Parameter silence: nil: the link alone keeps it alive.
  init(now: Moment, silence: Silence?) {
    lastSignOfLife = now
    self.silence = silence
  }

  /// How long no reading may come; nil: without a limit.
  var limit: Duration? { silence?.limit }

  /// How long no reading may come from now on; not positive if the link is no longer alive.
  func remaining(at now: Moment) -> Duration? { limit.map { $0 - lastSignOfLife.duration(to: now) } }

  mutating func linked() { hasReading = false }

  mutating func becameLive(at now: Moment) {
    liveSince = now
    lastSignOfLife = now
  }

  /// On the path of every notification.
  mutating func received(at now: Moment) {
    lastSignOfLife = now
    hasReading = true
    silence?.ended()
  }

  /// - Returns: when to look again; nil: nothing has changed.
  mutating func setPeriod(_ period: Duration) -> Duration? { silence?.setPeriod(period) }

  /// Whether the link, which was alive until `end`, lasted long enough for earlier failures not to count.
  func wasGood(until end: Moment) -> Bool {
    liveSince.map { $0.duration(to: end) >= Self.goodLink } ?? false
  }

  /// Whether the link lasted long enough for earlier moves to other gateways not to count.
  var wasSteady: Bool { liveSince.map { $0.duration(to: lastSignOfLife) >= Self.steadyLink } ?? false }
}
