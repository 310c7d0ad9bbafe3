import CDBus
import EventLoop

/// A call on its way: ends exactly once, by the reply, by its time-out or by the connection's end.
final class PendingCall: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone.

  private var done: (@Sendable (Result<[DBusValue], DBusError>) -> Void)?
  private var onEnd: (@Sendable (PendingCall) -> Void)?
  private var raw: OpaquePointer?
  private var timer: LoopTimer?

  init(
    _ done: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void,
    onEnd: @escaping @Sendable (PendingCall) -> Void
  ) {
    self.done = done
    self.onEnd = onEnd
  }

  func send(_ message: OutgoingMessage, over handle: ConnectionHandle, timeout: Duration, loop: EventLoop) {
    var pending: OpaquePointer?
    let sent = dbus_connection_send_with_reply(
      handle.raw, message.raw, &pending, Int32(DBUS_TIMEOUT_INFINITE))
    guard sent != 0, let pending else { return finish(.failure(.disconnected)) }
    raw = pending
    timer = loop.timer(after: timeout) { [weak self] in self?.finish(.failure(.timedOut)) }
    // Retained for libdbus, which gives it back through the free function, however the call ends.
    dbus_pending_call_set_notify(
      pending, { _, me in Unmanaged<PendingCall>.fromOpaque(me!).takeUnretainedValue().replied() },
      Unmanaged.passRetained(self).toOpaque(), { Unmanaged<PendingCall>.fromOpaque($0!).release() })
  }

  private func replied() {
    guard let raw, let reply = dbus_pending_call_steal_reply(raw) else { return }
    let result: Result<[DBusValue], DBusError>
    if dbus_message_get_type(reply) == DBUS_MESSAGE_TYPE_ERROR {
      let name = dbus_message_get_error_name(reply).map(String.init(cString:)) ?? ""
      // A message without a sender is libdbus's own: the connection ended under the call.
      result = .failure(
        dbus_message_get_sender(reply) == nil
          ? .disconnected : .remote(name: name, message: arguments(of: reply).first?.text ?? ""))
    } else {
      result = .success(arguments(of: reply))
    }
    dbus_message_unref(reply)
    finish(result)
  }

  /// Ends the call. What comes later is ignored.
  func finish(_ result: Result<[DBusValue], DBusError>) {
    guard let done else { return }
    self.done = nil
    timer?.cancel()
    timer = nil
    if let raw {
      self.raw = nil
      dbus_pending_call_cancel(raw)
      dbus_pending_call_unref(raw)
    }
    let onEnd = onEnd
    self.onEnd = nil
    onEnd?(self)
    done(result)
  }
}
