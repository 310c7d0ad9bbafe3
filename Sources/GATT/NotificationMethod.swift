/// How bluetoothd delivers notifications.
public enum NotificationMethod: String, Sendable, Hashable, CaseIterable {
  /// As D-Bus signals (BlueZ's `StartNotify`). A failed attempt has no effect on later ones.
  case signal
  /// Through a socket for each characteristic (`AcquireNotify`), which takes less CPU time for many values per second.
  /// If the link is lost while the socket is set up, bluetoothd before 5.84 may refuse notifications until it is
  /// restarted.
  case socket
}
