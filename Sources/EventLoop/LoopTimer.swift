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
