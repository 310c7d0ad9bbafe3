import EventLoop

/// A call that ends with its reply, its time-out, or the end of the connection.
final class PendingCall {
  let message: OutgoingMessage
  let timeout: Duration
  let done: @LoopActor (DBusAnswer) -> Void
  /// Set when the call has been sent.
  var timer: LoopTimer?

  init(_ message: OutgoingMessage, timeout: Duration, _ done: @escaping @LoopActor (DBusAnswer) -> Void) {
    self.message = message
    self.timeout = timeout
    self.done = done
  }
}
