import EventLoop
import GATT

/// Something to announce to Home Assistant.
enum Announcement: Sendable, Hashable {
  case document(Discovery.Subject, Stage)
  /// A device that was removed, by its discovery topic.
  case removal(String, Stage)
  /// That a device is connected via the gateway.
  case link(BluetoothAddress)

  enum Stage: Sendable, CaseIterable {
    /// What holds now.
    case plain
    /// When Home Assistant has started: what holds now, and what is to be removed → remove, some seconds later.
    case reannounce
    /// What was re-announced is removed.
    case remove
  }
}

/// Announcements that wait, in order, each once.
struct AnnouncementQueue {
  private var waiting: [Announcement] = []
  /// Those that wait, and those that are too early.
  private var known: Set<Announcement> = []

  var isEmpty: Bool { waiting.isEmpty }

  mutating func append(_ announcement: Announcement) {
    if known.insert(announcement).inserted { waiting.append(announcement) }
  }

  /// Puts the announcement before all others, unless it is known already.
  mutating func prepend(_ announcement: Announcement) {
    if known.insert(announcement).inserted { waiting.insert(announcement, at: 0) }
  }

  /// Ignores the announcement, which was taken out, until it is released.
  /// - Returns: false if it is known again already.
  mutating func hold(_ announcement: Announcement) -> Bool { known.insert(announcement).inserted }

  /// Appends an announcement that was held.
  mutating func release(_ announcement: Announcement) {
    if known.remove(announcement) != nil { append(announcement) }
  }

  /// Documents only say what holds now, and remove nothing.
  mutating func removeNothing() {
    let removals = known.filter { if case .document(_, .remove) = $0 { true } else { false } }
    known.subtract(removals)
    waiting.removeAll(where: removals.contains)
    for case .document(let subject, _) in removals { append(.document(subject, .plain)) }
  }

  /// Takes out the first `count`.
  mutating func next(_ count: Int) -> ArraySlice<Announcement> {
    let next = waiting.prefix(count)
    waiting.removeFirst(next.count)
    known.subtract(next)
    return next
  }
}

/// When the announcements are made: in batches, and what follows after a while.
@LoopActor final class AnnouncementSchedule {
  /// Documents sent together, so that readings do not wait behind hundreds of them.
  private static let batch = 10
  private static let batchPause = Duration.milliseconds(20)
  /// Home Assistant has handled all announcements within this time after its start.
  private static let followUpDelay = Duration.seconds(5)

  /// Makes an announcement.
  var perform: (Announcement) -> Void = { _ in }
  /// Whether the next ones have to wait.
  var hasBacklog: () -> Bool = { false }
  private var queue = AnnouncementQueue()
  /// Until the next batch.
  private var timer: LoopTimer?
  /// Announcements to make when Home Assistant has handled those at its start.
  private var followUps: [Announcement] = []
  private var followUp: LoopTimer?

  func append(_ announcement: Announcement) { change { $0.append(announcement) } }

  /// Changes several announcements at once.
  func change(_ body: (inout AnnouncementQueue) -> Void) {
    let wasEmpty = queue.isEmpty
    body(&queue)
    if wasEmpty, !queue.isEmpty { announceNext(after: .zero) }
  }

  /// Makes an announcement that is too early after `delay`.
  func postpone(_ announcement: Announcement, for delay: Duration) {
    guard queue.hold(announcement) else { return }
    loop.timer(after: delay) { [weak self] in
      self?.change { $0.release(announcement) }
    }
  }

  private func announceNext(after delay: Duration) {
    guard timer == nil else { return }
    timer = loop.timer(after: delay) { [weak self] in self?.announceNext() }
  }

  private func announceNext() {
    if !hasBacklog() { for announcement in queue.next(Self.batch) { perform(announcement) } }
    timer = nil
    if !queue.isEmpty {
      announceNext(after: Self.batchPause)
    } else if !followUps.isEmpty, followUp == nil {
      followUp = loop.timer(after: Self.followUpDelay) { [weak self] in self?.announceFollowUps() }
    }
  }

  /// The delay of all of them starts again when everything is announced, but not for a link: the gateway is known for as long.
  func addFollowUp(_ announcement: Announcement) {
    if !followUps.contains(announcement) { followUps.append(announcement) }
    if case .link = announcement { return }
    followUp?.cancel()
    followUp = nil
  }

  private func announceFollowUps() {
    let due = followUps
    (followUps, followUp) = ([], nil)
    for announcement in due { append(announcement) }
  }

  /// Home Assistant restarts or the connection has ended: follow-ups come with the next announcement of everything.
  func cancelFollowUps(where isCancelled: (Announcement) -> Bool) {
    followUps.removeAll(where: isCancelled)
    change { $0.removeNothing() }
    guard followUps.isEmpty else { return }
    followUp?.cancel()
    followUp = nil
  }
}
