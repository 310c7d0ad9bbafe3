/// Why a call has no reply, or why there is no connection.
public enum DBusError: Error, Sendable, Hashable {
  /// An error reply: its D-Bus name and its text.
  case remote(name: String, message: String)
  /// No reply in time. Whether the call took effect is unknown.
  case timedOut
  /// The connection to the bus has ended.
  case disconnected
  /// The bus takes no more calls of this connection, as too many were never answered.
  case tooManyCalls
  /// The bus could not be reached, or rejected the connection.
  case unreachable(address: String, reason: String)
  /// The message cannot be expressed in D-Bus (an invalid path, a NUL in a string).
  case invalid(String)

  /// The D-Bus name of a remote error.
  public var name: String? {
    if case .remote(let name, _) = self { name } else { nil }
  }

  /// The reply to a call of a method that an object does not have.
  package static let noSuchMethod = remote(name: DBusName.Failure.unknownMethod, message: "no such method")
}

extension DBusError: CustomStringConvertible {
  /// A line for the log; it may quote the other side.
  public var description: String {
    switch self {
    case .remote(let name, let message): message.isEmpty ? name : "\(name): \(message)"
    case .timedOut: "no reply in time"
    case .disconnected: "the D-Bus connection was lost"
    case .tooManyCalls: "too many D-Bus calls were never answered"
    case .unreachable(let address, let reason): "cannot connect to \(address): \(reason)"
    case .invalid(let what): "not a valid D-Bus message: \(what)"
    }
  }
}
