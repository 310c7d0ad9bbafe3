/// A timer of the loop: fires once, unless cancelled first.
@LoopActor public final class LoopTimer {
  let deadline: Moment
  private var handler: (@LoopActor () -> Void)?

  init(deadline: Moment, handler: @escaping @LoopActor () -> Void) {
    self.deadline = deadline
    self.handler = handler
  }

  /// Cancels the timer and releases its handler. Harmless when repeated.
  public func cancel() { handler = nil }

  /// Whether the timer is still to fire.
  public var isPending: Bool { handler != nil }

  func fire() {
    let handler = handler
    self.handler = nil
    handler?()
  }
}

/// The timers of a loop in the order of their deadlines, the next one last.
///
/// A sorted array: with a few timers per peripheral it is smaller and faster than a heap.
@LoopActor struct TimerQueue {
  private(set) var timers: [LoopTimer] = []

  nonisolated init() {}

  var next: Moment? { timers.last?.deadline }

  /// Removes cancelled timers at the end of the array.
  mutating func dropCancelled() {
    while let timer = timers.last, !timer.isPending { timers.removeLast() }
  }

  mutating func insert(_ timer: LoopTimer) {
    // Cancelled timers are removed when due; here too, so that they do not accumulate.
    if timers.count >= 1024, timers.count.nonzeroBitCount == 1 { timers.removeAll { !$0.isPending } }
    var low = 0
    var high = timers.count
    while low < high {
      let middle = (low + high) / 2
      // Equal deadlines fire in insertion order.
      if timers[middle].deadline > timer.deadline { low = middle + 1 } else { high = middle }
    }
    timers.insert(timer, at: low)
  }

  /// Removes and returns a timer that is due. One at a time, as its handler may set and cancel others.
  mutating func popDue(at now: Moment) -> LoopTimer? {
    guard let timer = timers.last, timer.deadline <= now else { return nil }
    timers.removeLast()
    return timer
  }
}
