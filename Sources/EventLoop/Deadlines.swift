extension Waiter {
  private struct TimeIsOver: Error {}

  /// Waits as ``value(_:)`` does, for at most `limit`; nil: the time is over, and a value that is delivered later is
  /// dropped.
  @LoopActor public func value(within limit: Duration) async throws -> Value? {
    let timer = loop.timer(after: limit) { self.resume(.failure(TimeIsOver())) }
    // Also after a cancelled wait, as the deadline may be hours away.
    defer { timer.cancel() }
    do {
      return try await value()
    } catch is TimeIsOver {
      return nil
    }
  }
}

extension EventLoop {
  /// Suspends for `duration`; ends early, with `CancellationError`, when the task is cancelled.
  @LoopActor public func sleep(for duration: Duration) async throws {
    _ = try await Waiter<Void>().value(within: duration)
  }

  /// The result of `body`; nil if it takes longer than `limit`, or the task is cancelled: `body` then goes on by itself.
  @LoopActor public func result<T: Sendable>(
    within limit: Duration, of body: @escaping @LoopActor () async -> T
  ) async -> T? {
    let waiter = Waiter<T>()
    task { waiter.resume(.success(await body())) }
    return try? await waiter.value(within: limit)
  }
}
