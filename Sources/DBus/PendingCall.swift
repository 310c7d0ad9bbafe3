import EventLoop

/// A call that is to be answered: by its reply, by its time-out, or by the connection's end.
final class PendingCall {
  let message: OutgoingMessage
  let timeout: Duration
  let done: @Sendable (DBusAnswer) -> Void
  /// Once it is on its way.
  var timer: LoopTimer?

  init(_ message: OutgoingMessage, timeout: Duration, _ done: @escaping @Sendable (DBusAnswer) -> Void) {
    self.message = message
    self.timeout = timeout
    self.done = done
  }
}
