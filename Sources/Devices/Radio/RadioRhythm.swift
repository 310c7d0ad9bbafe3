import EventLoop

/// How often a sender by radio is heard, and how long it is online after that: nothing tells when it is switched off.
struct RadioRhythm: Sendable {
  private static let most = 8
  private static let longest = Duration.seconds(3600)
  /// The shortest limit.
  static let least = Duration.seconds(60)
  /// The time until its rhythm is known.
  static let initial = Duration.seconds(600)

  /// The last packet that does not belong to another one.
  private var last: Moment?
  /// The last intervals.
  private var intervals: [Duration] = []

  /// What follows within a second belongs to the packet before.
  mutating func heard(at now: Moment) {
    let interval = last?.duration(to: now)
    if let interval, interval < .seconds(1) { return }
    last = now
    guard let interval else { return }
    intervals.append(min(interval, Self.longest))
    if intervals.count > Self.most { intervals.removeFirst() }
  }

  /// Three times the longest of the last intervals.
  var limit: Duration { intervals.max().map { max(Self.least, $0 * 3) } ?? Self.initial }
}
