import EventLoop

/// Runs `body` on a new thread.
public func detach(_ body: @escaping @Sendable () -> Void) {
  precondition(startThread(body), "no thread for a test")
}

/// Runs long computations on a thread of their own: the threads of the concurrency pool are as few as the processors, and no
/// other test goes on while all of them compute.
public func offPool<T: Sendable, E>(
  _ body: @escaping @Sendable () throws(E) -> T
) async throws(E) -> T {
  try await EventLoop.blocking(body)
}
