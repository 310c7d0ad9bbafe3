import EventLoop

/// When a device that is connected on demand is visited, and whether it is online: as long as no visit is overdue.
///
/// A pure machine. After each input the caller sets a timer for its ``deadline``.
struct VisitSchedule: Sendable {
  enum Action: Sendable, Equatable {
    /// A visit is due.
    case connect
    case online
    case offline
  }

  /// From one visit to the next.
  private let interval: Duration
  private(set) var isOnline = false
  /// By this gateway, or by the one that owns the device; nil: none yet.
  private var lastVisit: Moment?
  /// When to call ``timer(at:)``.
  private(set) var deadline: Moment?

  /// Time for earlier connects in the queue, and for a second attempt.
  private static let margin = Duration.seconds(60)

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
    deadline = now + interval
    isOnline = true
    return [.online]
  }

  /// Another gateway has visited the device; this gateway takes over when the other one misses a visit.
  mutating func visitedElsewhere(at now: Moment) -> [Action] {
    lastVisit = now
    deadline = now + limit
    return goOffline()
  }

  /// The deadline is reached.
  mutating func timer(at now: Moment) -> [Action] {
    guard let lastVisit, let deadline, deadline <= now else { return [] }
    let overdue = lastVisit + limit
    self.deadline = now < overdue ? overdue : nil
    return (now < overdue ? [] : goOffline()) + [.connect]
  }

  /// The device is disabled, removed, or the gateway stops.
  mutating func stop() -> [Action] {
    deadline = nil
    return goOffline()
  }

  private mutating func goOffline() -> [Action] {
    defer { isOnline = false }
    return isOnline ? [.offline] : []
  }
}
