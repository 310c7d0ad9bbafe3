/// The timer of a state machine that says when it next has something to do.
@LoopActor public struct DeadlineTimer {
  private var current: (deadline: Moment, timer: LoopTimer)?

  /// Creates a timer that is not set.
  public nonisolated init() {}

  /// Runs `body`, which is the same in each call, at `deadline`, instead of the one set before; nil: never. To be called after
  /// each input of the machine, also after that of `body`.
  public mutating func set(_ deadline: Moment?, _ body: @escaping @LoopActor () -> Void) {
    if let current, current.deadline == deadline, current.timer.isPending { return }
    current?.timer.cancel()
    current = deadline.map { ($0, loop.timer(after: Moment.now.duration(to: $0), body)) }
  }
}
