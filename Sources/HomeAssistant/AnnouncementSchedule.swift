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
  /// Those that wait.
  private var known: Set<Announcement> = []

  var isEmpty: Bool { waiting.isEmpty }

  mutating func append(_ announcement: Announcement) {
    if known.insert(announcement).inserted { waiting.append(announcement) }
  }

  /// Puts the announcement before all others, unless it waits already.
  mutating func prepend(_ announcement: Announcement) {
    if known.insert(announcement).inserted { waiting.insert(announcement, at: 0) }
  }

  /// Takes out what matches; its documents only say what holds now, and remove nothing.
  mutating func cancel(where isCancelled: (Announcement) -> Bool) {
    let all = waiting
    (waiting, known) = ([], [])
    for announcement in all {
      if !isCancelled(announcement) {
        append(announcement)
      } else if case .document(let subject, _) = announcement {
        append(.document(subject, .plain))
      }
    }
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

  /// Makes an announcement; false if it is too early for it: it waits, behind the others.
  var perform: (Announcement) -> Bool = { _ in true }
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

  private func announceNext(after delay: Duration) {
    if timer?.isPending != true { timer = loop.timer(after: delay) { [weak self] in self?.announceNext() } }
  }

  private func announceNext() {
    if !hasBacklog() {
      for announcement in queue.next(Self.batch) where !perform(announcement) { queue.append(announcement) }
    }
    if !queue.isEmpty {
      announceNext(after: Self.batchPause)
    } else if !followUps.isEmpty, followUp?.isPending != true {
      followUp = loop.timer(after: Self.followUpDelay) { [weak self] in self?.announceFollowUps() }
    }
  }

  /// The delay of all of them starts again when everything is announced, but not for a link: the gateway is known for as long.
  func addFollowUp(_ announcement: Announcement) {
    if !followUps.contains(announcement) { followUps.append(announcement) }
    if case .link = announcement { return }
    followUp?.cancel()
  }

  private func announceFollowUps() {
    for announcement in followUps { append(announcement) }
    followUps = []
  }

  /// Home Assistant restarts or the connection has ended: what follows, and what is to be removed, comes with the next announcement of
  /// everything.
  func cancelFollowUps(where isCancelled: (Announcement) -> Bool) {
    followUps.removeAll(where: isCancelled)
    change { $0.cancel(where: isCancelled) }
    if followUps.isEmpty { followUp?.cancel() }
  }
}
