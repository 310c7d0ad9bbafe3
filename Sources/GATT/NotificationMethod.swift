/// How notifications come from bluetoothd.
public enum NotificationMethod: String, Sendable, Hashable, CaseIterable {
  /// As D-Bus signals (BlueZ's `StartNotify`). Whatever becomes of the link, a later attempt is not hindered.
  case signal
  /// Through a socket for each characteristic (`AcquireNotify`), which needs less CPU where values come many times a
  /// second. bluetoothd before 5.84 may refuse notifications until it is restarted, when the link is lost while it
  /// sets the socket up.
  case socket
}
