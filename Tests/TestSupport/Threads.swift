import EventLoop

/// Runs `body` on a new thread.
public func detach(_ body: @escaping @Sendable () -> Void) {
  precondition(startThread(body), "no thread for a test")
}
