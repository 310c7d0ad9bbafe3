import DBus

/// Why an operation of the central did not succeed, by what can be done about it.
public enum CentralError: Error, Sendable, Equatable {
  /// It may go better next time.
  case transient(String)
  /// Another operation on the same object is under way: it may go better in a moment.
  case busy(String)
  /// ATT's "unlikely error" (Core Specification Vol 3, Part F, 3.4.1.1): what bluetoothd fails operations in flight
  /// with when the link has ended, before it says that it has.
  case unlikely(String)
  /// No answer within the operation's own time-out: whether it took effect is unknown.
  case timedOut(String)
  /// bluetoothd no longer knows the peripheral: wait until it is seen again.
  case gone
  /// The link is not there, or ended under the operation.
  case disconnected
  /// The peripheral or bluetoothd will not do this, however often it is asked.
  case refused(String)
  /// Another program has taken the notifications by a socket; or a bluetoothd before 5.84 wrongly believes so, until
  /// it is restarted: a link was lost while a program took them.
  case notifyAcquired
  /// No bus, no bluetoothd, or no adapter that is on.
  case unavailable

  /// - Parameter operation: what was tried, for the text of a time-out.
  init(_ error: DBusError, during operation: String) {
    switch error {
    case .timedOut: self = .timedOut("\(operation): no answer in time")
    case .disconnected, .unreachable: self = .unavailable
    case .invalid(let what): self = .refused("\(operation): \(what)")
    case .remote(let name, let message):
      let short = name.split(separator: ".").last.map(String.init) ?? name
      let text = message.isEmpty ? short : "\(short): \(message)"
      switch name {
      case DBusName.unknownObject, BlueZName.Failure.doesNotExist: self = .gone
      case BlueZName.Failure.notReady: self = .unavailable
      case BlueZName.Failure.notConnected: self = .disconnected
      case BlueZName.Failure.failed where message == "Not connected": self = .disconnected
      case BlueZName.Failure.failed where message.hasSuffix("ATT error: 0x0e"): self = .unlikely(text)
      case BlueZName.Failure.notPermitted where message == "Notify acquired": self = .notifyAcquired
      case BlueZName.Failure.inProgress: self = .busy(text)
      case BlueZName.Failure.notPermitted, BlueZName.Failure.notAuthorized,
        BlueZName.Failure.notSupported, BlueZName.Failure.invalidArguments, DBusName.unknownMethod:
        self = .refused(text)
      case BlueZName.Failure.serviceUnknown, BlueZName.Failure.nameHasNoOwner, BlueZName.Failure.noReply,
        BlueZName.Failure.limitsExceeded:
        // The bus itself says so when bluetoothd went away under the call, or when it takes no more of them.
        self = .unavailable
      case _ where name.hasPrefix(BlueZName.Failure.spawn):
        // Nor could the bus start it.
        self = .unavailable
      default: self = .transient(text)
      }
    }
  }
}

extension CentralError: CustomStringConvertible {
  /// A line for the log; it may quote bluetoothd.
  public var description: String {
    switch self {
    case .transient(let text), .busy(let text), .unlikely(let text), .timedOut(let text), .refused(let text):
      text
    case .gone: "bluetoothd no longer knows it"
    case .disconnected: "the link is gone"
    case .notifyAcquired: "another program takes the notifications"
    case .unavailable: "the Bluetooth adapter is missing or off"
    }
  }
}
