/// How long a live peripheral may send nothing: three periods, at least 30 s.
///
/// A new period starts after the sample that is scheduled already (up to 65 s away), so until the next reading
/// the longer of the two counts.
struct Silence: Sendable {
  private static let least = Duration.seconds(30)

  private var present: Duration
  private var next: Duration?

  /// - Parameter interval: the period, as long as no other is known.
  init(interval: Duration) { present = interval }

  var limit: Duration { Self.limit(max(present, next ?? .zero)) }

  private static func limit(_ period: Duration) -> Duration { max(least, period * 3) }

  /// - Returns: the limit with this period alone; nil: it is the period already.
  mutating func setPeriod(_ period: Duration) -> Duration? {
    guard period != next ?? present else { return nil }
    next = period
    return Self.limit(period)
  }

  mutating func ended() {
    if let next {
      present = next
      self.next = nil
    }
  }
}
