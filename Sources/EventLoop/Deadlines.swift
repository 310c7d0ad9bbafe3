/// An operation exceeded its time limit.
public struct TimedOut: Error, Sendable {}

extension EventLoop {
  /// Suspends for `duration`; ends early, with `CancellationError`, when the task is cancelled.
  @LoopActor public func sleep(for duration: Duration) async throws {
    let waiter = Waiter<Void>()
    let timer = timer(after: duration) { waiter.resume(.success(())) }
    do {
      try await waiter.value()
    } catch {
      // Removed at once: its deadline may be hours away.
      timer.cancel()
      throw error
    }
  }

  /// Runs `operation`, and throws ``TimedOut`` if it takes longer than `limit`; `operation` is then cancelled, and
  /// awaited.
  @LoopActor public func withTimeout<T: Sendable>(
    _ limit: Duration, _ operation: @escaping @LoopActor () async throws -> T
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
}
