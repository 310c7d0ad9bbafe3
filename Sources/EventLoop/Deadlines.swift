/// An operation exceeded its time limit.
public struct TimedOut: Error, Sendable {}

extension EventLoop {
  /// Suspends for `duration`; ends early, with `CancellationError`, when the task is cancelled.
  public func sleep(
    for duration: Duration, _ isolation: isolated (any Actor)? = #isolation
  ) async throws {
    let waiter = Waiter<Void>()
    let timer = LoopTimer(deadline: Moment.now + duration) { waiter.resume(.success(())) }
    onLoop { self.insert(timer) }
    do {
      try await waiter.value()
    } catch {
      // Removed at once: its deadline may be hours away.
      onLoop { timer.cancel() }
      throw error
    }
  }

  /// Runs `operation`, and throws ``TimedOut`` if it takes longer than `limit`; `operation` is then cancelled, and
  /// awaited.
  public func withTimeout<T: Sendable>(
    _ limit: Duration, _ operation: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    try await withThrowingTaskGroup(of: T.self) { group in
      group.addTask(executorPreference: self, operation: operation)
      group.addTask(executorPreference: self) {
        try await self.sleep(for: limit)
        throw TimedOut()
      }
      defer { group.cancelAll() }
      return try await group.next()!
    }
  }

  /// Runs `body` on the loop: at once if the caller is on its thread, else in a later iteration.
  public func onLoop(_ body: @escaping @Sendable () -> Void) {
    if isCurrent { body() } else { Task(executorPreference: self) { body() } }
  }
}
