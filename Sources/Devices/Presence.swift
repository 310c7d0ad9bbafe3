import EventLoop

/// Whether a device is online: while it has a link, and between two links as long as the next one is not overdue; one that is
/// only heard, for some time after each advertisement. It also says when a device that is connected on demand is visited.
///
/// A pure machine. After each input the caller sets a timer for its ``deadline``.
struct Presence: Sendable {
  enum Action: Sendable, Equatable {
    /// A visit is due: the device is to be connected.
    case visit
    case online
    case offline
  }

  /// The time from one visit to the next; nil: the device is not connected on demand.
  private let interval: Duration?
  private(set) var isOnline = false
  /// The last visit, by this gateway or by the one that owns the device; nil: none yet. One that lasted longer than
  /// ``interval`` counts as begun that long before its end.
  private var lastVisit: Moment?
  /// When to call ``timer(at:)``: at the next visit, when the next turn is overdue, or at the end of `offline_after`; nil:
  /// not at all.
  private(set) var deadline: Moment?

  /// Time for earlier connects in the queue, and for a second attempt.
  private static let margin = Duration.seconds(60)

  init(interval: Duration?) {
    self.interval = interval
  }

  /// How long the device stays online after a visit, if the next one was to follow after `interval`.
  private static func limit(_ interval: Duration) -> Duration { interval * 2 + margin }

  /// Whether a visit takes place before `deadline`, if the device can be connected within ``margin``.
  func isDue(before deadline: Moment) -> Bool {
    interval != nil && (self.deadline.map { $0 + Self.margin <= deadline } ?? true)
  }

  // MARK: Inputs

  /// The device is connected, and its values are read.
  mutating func visited(at now: Moment) -> [Action] {
    lastVisit = now
    deadline = nil
    isOnline = true
    return [.online]
  }

  /// The device, which is only heard, was heard; it stays online for so long, without a limit if there is none.
  mutating func heard(for limit: Duration?, at now: Moment) -> [Action] {
    lastVisit = now
    deadline = limit.map { now + $0 }
    defer { isOnline = true }
    return isOnline ? [] : [.online]
  }

  /// The device, which is only heard, stays online for so long after it was heard, without a limit if there is none.
  mutating func changeLimit(to limit: Duration?) -> [Action] {
    if isOnline, let lastVisit { deadline = limit.map { lastVisit + $0 } }
    return []
  }

  /// Another gateway has visited the device; this gateway takes over when the other one misses a visit.
  mutating func visitedElsewhere(at now: Moment) -> [Action] {
    lastVisit = now
    deadline = interval.map { now + Self.limit($0) }
    return goOffline()
  }

  /// The device gives up its link for others, and is to get another one after `wait`.
  mutating func turnEnds(nextAfter wait: Duration, at now: Moment) -> [Action] {
    deadline = now + Self.limit(wait)
    return []
  }

  /// The link has ended. If the visit lasted longer than the interval, the next one is due at once.
  mutating func linkEnded(at now: Moment) -> [Action] {
    guard let interval, let visit = lastVisit else { return deadline == nil ? goOffline() : [] }
    let begin = max(visit, now + (.zero - interval))
    (lastVisit, deadline) = (begin, begin + interval)
    return []
  }

  mutating func timer(at now: Moment) -> [Action] {
    guard let lastVisit, let deadline, deadline <= now else { return [] }
    guard let interval else {
      self.deadline = nil
      return goOffline()
    }
    let overdue = lastVisit + Self.limit(interval)
    self.deadline = now < overdue ? overdue : nil
    return (now < overdue ? [] : goOffline()) + [.visit]
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
