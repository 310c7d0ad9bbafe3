/// Why a call brought no answer, or why there is no connection.
public enum DBusError: Error, Sendable, Hashable {
  /// The other side answered with an error: its D-Bus name and its words.
  case remote(name: String, message: String)
  /// No answer within the call's own time-out. Whether the call took effect is unknown.
  case timedOut
  /// The connection to the bus is gone; nothing will come over it any more.
  case disconnected
  /// The bus could not be reached, or refused us.
  case unreachable(address: String, reason: String)
  /// The message cannot be expressed in D-Bus (a path that is none, a NUL in a string).
  case invalid(String)

  /// The D-Bus name of a remote error.
  public var name: String? {
    if case .remote(let name, _) = self { name } else { nil }
  }
}

extension DBusError: CustomStringConvertible {
  /// A line for the log; it may quote the other side.
  public var description: String {
    switch self {
    case .remote(let name, let message): message.isEmpty ? name : "\(name): \(message)"
    case .timedOut: "no answer in time"
    case .disconnected: "the D-Bus connection is gone"
    case .unreachable(let address, let reason): "no D-Bus at \(address): \(reason)"
    case .invalid(let what): "not a valid D-Bus message: \(what)"
    }
  }
}
