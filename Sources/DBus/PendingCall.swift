import EventLoop

/// A call that ends with its reply, its time-out, or the end of the connection.
final class PendingCall {
  let message: OutgoingMessage
  let timeout: Duration
  let done: @LoopActor (DBusAnswer) -> Void
  /// Whether `done` is called again if the reply arrives after the time-out.
  let awaitsLateReply: Bool
  /// Set when the call has been sent.
  var timer: LoopTimer?

  init(
    _ message: OutgoingMessage, timeout: Duration, awaitsLateReply: Bool,
    _ done: @escaping @LoopActor (DBusAnswer) -> Void
  ) {
    self.message = message
    self.timeout = timeout
    self.awaitsLateReply = awaitsLateReply
    self.done = done
  }
}
