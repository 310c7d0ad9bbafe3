import EventLoop

extension EventLoop {
  /// Runs `body` on the loop, and waits for it.
  func perform<T: Sendable>(_ body: @escaping @LoopActor () -> T) async -> T {
    await Task(executorPreference: self) { await body() }.value
  }
}
