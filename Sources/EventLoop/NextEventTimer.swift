/// A timer for the next event of a state machine, whose time may change with each of its inputs.
@LoopActor public struct NextEventTimer {
  private var current: (timer: LoopTimer, deadline: ContinuousClock.Instant)?

  /// Creates a timer that is not set.
  public nonisolated init() {}

  /// Calls `handler` on the loop at `deadline`, unless an earlier call is due before: after each call the owner asks
  /// the state machine again.
  public mutating func set(
    _ deadline: ContinuousClock.Instant?, _ handler: @escaping @LoopActor () -> Void
  ) {
    guard let deadline else { return }
    if let current, current.deadline <= deadline { return }
    cancel()
    let wait = max(.zero, ContinuousClock.now.duration(to: deadline))
    current = (loop.timer(after: wait, handler), deadline)
  }

  /// Must be called by the handler first.
  public mutating func fired() { current = nil }

  /// Prevents the call.
  public mutating func cancel() {
    current?.timer.cancel()
    current = nil
  }
}
