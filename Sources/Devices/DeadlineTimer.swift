import EventLoop

/// The timer of a state machine that says when it next has something to do.
@LoopActor struct DeadlineTimer {
  private var current: (deadline: Moment, timer: LoopTimer)?

  /// Runs `body` at `deadline`, instead of what was set before; nil: never.
  mutating func set(_ deadline: Moment?, _ body: @escaping @LoopActor () -> Void) {
    guard deadline != current?.deadline else { return }
    current?.timer.cancel()
    current = deadline.map { ($0, loop.timer(after: Moment.now.duration(to: $0), body)) }
  }
}
