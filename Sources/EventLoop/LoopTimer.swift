import Glibc

/// A point of time on the clock that runs through a suspend as well, in ns: what ``ContinuousClock`` tells, as a plain
/// number. The loop looks at it in each turn, where the arithmetic of `Instant` (a struct of unknown layout) and
/// `Duration` (128 bits) would be felt.
struct Moment: Comparable {
  private let nanoseconds: Int64

  static var now: Moment {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Moment(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// - Parameter delay: more than 146 years count as so many.
  static func after(_ delay: Duration) -> Moment {
    let (seconds, attoseconds) = delay.components
    let (whole, isTooLong) = max(0, seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let most = Int64.max / 2
    return Moment(
      nanoseconds: now.nanoseconds + (isTooLong ? most : min(most, whole) + attoseconds / 1_000_000_000))
  }

  static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Whole ms until `other`, rounded up; 0 when that is past.
  func milliseconds(until other: Moment) -> Int64 {
    max(0, (other.nanoseconds - nanoseconds + 999_999) / 1_000_000)
  }
}

/// A timer of the loop: fires once, or never when cancelled first.
public final class LoopTimer: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone.
  let deadline: Moment
  private var handler: (@Sendable () -> Void)?

  init(deadline: Moment, handler: @escaping @Sendable () -> Void) {
    self.deadline = deadline
    self.handler = handler
  }

  /// From now on it does nothing, and what its handler held is let go.
  public func cancel() { handler = nil }

  var isCancelled: Bool { handler == nil }

  func fire() {
    let handler = handler
    self.handler = nil
    handler?()
  }
}

/// The timers of a loop in the order of their deadlines, the next one last.
///
/// A gateway has a few timers for each peripheral: a sorted array is smaller and quicker than a heap.
struct TimerQueue {
  private var timers: [LoopTimer] = []

  var count: Int { timers.count }

  var next: Moment? { timers.last?.deadline }

  /// Lets go of cancelled timers that would be the next.
  mutating func dropCancelled() {
    while let timer = timers.last, timer.isCancelled { timers.removeLast() }
  }

  mutating func insert(_ timer: LoopTimer) {
    // Cancelled ones leave when their time comes; were they to pile up, they leave here.
    if timers.count >= 1024, timers.count.nonzeroBitCount == 1 { timers.removeAll(where: \.isCancelled) }
    var low = 0
    var high = timers.count
    while low < high {
      let middle = (low + high) / 2
      // Equal deadlines fire in the order of their insertion: the later one goes further front.
      if timers[middle].deadline > timer.deadline { low = middle + 1 } else { high = middle }
    }
    timers.insert(timer, at: low)
  }

  /// Takes out a timer that is due. One at a time, as its handler may set and cancel others.
  mutating func popDue(at now: Moment) -> LoopTimer? {
    guard let timer = timers.last, timer.deadline <= now else { return nil }
    timers.removeLast()
    return timer
  }
}
