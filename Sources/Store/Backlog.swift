import EventLoop

/// The changes that are not written yet, the newest for each key, and when a transaction is to write them. Pure.
struct Backlog<Change> {
  let pacing: Pacing
  private var waiting: [String: Change] = [:]
  /// The changes of the transaction that is running; empty: none is.
  private var writing: [String: Change] = [:]
  /// When the first of the waiting changes is gathered, and when the first was put that is urgent.
  private var gathered: Moment?
  private var firstUrgent: Moment?
  /// The pause after the last transaction.
  private var pause: (start: Moment, end: Moment)
  /// How many urgent transactions may still end their pauses.
  private var early: Int
  private var backOff: BackOff
  private var isFailing = false
  private(set) var isClosed = false

  init(_ pacing: Pacing, at now: Moment) {
    self.pacing = pacing
    pause = (now, now)
    early = pacing.early
    backOff = pacing.retry
  }

  /// The number of keys whose last change is not known to be written.
  var count: Int { waiting.count + writing.count { waiting[$0.key] == nil } }

  /// When to ``take(at:)`` the changes; nil: there are none, a transaction is running, or the database is closed.
  var deadline: Moment? {
    guard let gathered, writing.isEmpty, !isClosed else { return nil }
    let paced = max(gathered, pause.end)
    guard let firstUrgent, early > 0, !isFailing else { return paced }
    return min(paced, max(firstUrgent, pause.start) + pacing.gather)
  }

  /// Adds a change; ignored after ``close()``.
  /// - Parameter patience: how long the change may wait for others.
  mutating func add(
    _ key: String, _ change: Change, isUrgent: Bool = false, patience: Duration = .zero, at now: Moment
  ) {
    guard !isClosed else { return }
    waiting[key] = change
    let end = now + max(patience, pacing.gather)
    gathered = min(gathered ?? end, end)
    if isUrgent { firstUrgent = firstUrgent ?? now }
  }

  /// The changes to write now; to be called while no transaction is running.
  mutating func take(at now: Moment) -> [String: Change] {
    if now < pause.end {
      early -= 1
    } else {
      let pauses = pause.start.duration(to: now) / pacing.apart
      early = Int(min(Double(pacing.early), Double(early) + pauses))
    }
    (writing, waiting, gathered, firstUrgent) = (waiting, [:], nil, nil)
    return writing
  }

  /// The transaction has written what was taken.
  mutating func written(at now: Moment) {
    (writing, isFailing) = ([:], false)
    backOff.reset()
    pause = (now, now + pacing.apart)
  }

  /// The transaction has failed: what was taken waits again, except for keys that have changed since.
  mutating func failed(at now: Moment) {
    waiting.merge(writing) { newer, _ in newer }
    (writing, isFailing) = ([:], true)
    gathered = now
    pause = (now, now + backOff.next())
  }

  /// Later changes are ignored; what waits is taken once more.
  mutating func close() { isClosed = true }
}
