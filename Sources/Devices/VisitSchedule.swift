import EventLoop

/// When a device that is connected on demand is visited, and whether it is online: as long as no visit is overdue.
///
/// A pure machine. It has one timer; setting it replaces the one before.
struct VisitSchedule: Sendable {
  enum Action: Sendable, Equatable {
    /// A visit is due.
    case connect
    case online
    case offline
    case setTimer(Duration)
  }

  /// From one visit to the next.
  let interval: Duration
  private(set) var isOnline = false
  /// By this gateway, or by the one that owns the device; nil: none yet.
  private var lastVisit: Moment?

  /// Time for earlier connects in the queue, and for a second attempt.
  static let margin = Duration.seconds(60)

  init(interval: Duration) {
    self.interval = interval
  }

  /// How long the device stays online after a visit.
  private var limit: Duration { interval * 2 + Self.margin }

  /// Whether a visit takes place before `deadline`, if the device can be connected then.
  func isDue(before deadline: Moment) -> Bool {
    lastVisit.map { $0 + interval + Self.margin <= deadline } ?? true
  }

  // MARK: Inputs

  /// The device is connected, and its values are read.
  mutating func visited(at now: Moment) -> [Action] {
    lastVisit = now
    isOnline = true
    return [.online, .setTimer(interval)]
  }

  /// Another gateway has visited the device; this gateway takes over when the other one misses a visit.
  mutating func visitedElsewhere(at now: Moment) -> [Action] {
    lastVisit = now
    return goOffline() + [.setTimer(limit)]
  }

  /// The timer that was set has run out.
  mutating func timer(at now: Moment) -> [Action] {
    guard let lastVisit else { return [] }
    let age = lastVisit.duration(to: now)
    if age >= limit { return goOffline() + [.connect] }
    guard isOnline, age >= interval else { return [.setTimer((isOnline ? interval : limit) - age)] }
    return [.connect, .setTimer(limit - age)]
  }

  /// The device is disabled, removed, or the gateway stops.
  mutating func stop() -> [Action] { goOffline() }

  private mutating func goOffline() -> [Action] {
    defer { isOnline = false }
    return isOnline ? [.offline] : []
  }
}
