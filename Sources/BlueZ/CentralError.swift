import DBus

/// Why an operation of the central failed, by what can be done about it.
public enum CentralError: Error, Sendable, Equatable {
  /// May succeed on the next attempt.
  case transient(String)
  /// Another operation on the same object is in progress: may succeed in a moment.
  case busy(String)
  /// ATT's "unlikely error" (Core Specification Vol 3, Part F, 3.4.1.1): bluetoothd fails operations in flight with it
  /// when the link ends, before it reports the end of the link.
  case unlikely(String)
  /// No answer within the operation's own time-out: whether it took effect is unknown.
  case timedOut(String)
  /// bluetoothd no longer knows the peripheral: wait until it is seen again.
  case gone
  /// There is no link, or it ended during the operation.
  case disconnected
  /// The peripheral or bluetoothd rejects the operation; retrying does not help.
  case refused(String)
  /// Another program has acquired the notifications (`AcquireNotify`); or bluetoothd before 5.84 wrongly reports so
  /// until it is restarted, because a link was lost during AcquireNotify.
  case notifyAcquired
  /// The link to a paired peripheral was not encrypted: the peripheral or the kernel may have lost its part of the bond.
  case keyMissing
  /// Connect to a paired peripheral failed with this text, and the link had ended at once: the signal is weak, or the
  /// peripheral has lost its part of the bond.
  case cutShort(String)
  /// No bus, no bluetoothd, or no powered adapter.
  case unavailable

  /// The end of the text of ``timedOut(_:)``.
  public static let noAnswer = "no answer in time"
  /// The end of the text of a Connect by classic Bluetooth (BR/EDR).
  public static let classic = "bluetoothd tries classic Bluetooth"
  /// The end of the text of a Connect that failed, beside other links, sooner than the radio can have tried.
  public static let atOnce = "at once: perhaps the adapter makes no more connections"

  /// - Parameter operation: the D-Bus method, for the error's text.
  init(_ error: DBusError, during operation: String) {
    switch error {
    case .timedOut: self = .timedOut("\(operation): \(Self.noAnswer)")
    case .disconnected, .tooManyCalls, .unreachable: self = .unavailable
    case .invalid(let what): self = .refused("\(operation): \(what)")
    case .remote(let name, let message):
      let short = name.split(separator: ".").last.map(String.init) ?? name
      let text = message.isEmpty ? short : "\(short): \(message)"
      switch name {
      case DBusName.Failure.unknownObject, BlueZName.Failure.doesNotExist: self = .gone
      case BlueZName.Failure.notReady: self = .unavailable
      case BlueZName.Failure.notConnected: self = .disconnected
      case BlueZName.Failure.failed where message == "Not connected": self = .disconnected
      // Of Connect, from BlueZ 5.84 on: "br-connection-key-missing", also where the link is one of LE.
      case BlueZName.Failure.failed
      where message.split(separator: ":").contains { $0.hasSuffix("connection-key-missing") }:
        self = .keyMissing
      case BlueZName.Failure.failed where message.hasSuffix("ATT error: 0x0e"): self = .unlikely(text)
      case BlueZName.Failure.notPermitted where message == "Notify acquired": self = .notifyAcquired
      case BlueZName.Failure.inProgress, BlueZName.Failure.busy: self = .busy(text)
      // Of Connect, before BlueZ 5.81.
      case BlueZName.Failure.failed where message == "Operation already in progress": self = .busy(text)
      case BlueZName.Failure.notPermitted, BlueZName.Failure.notAuthorized,
        BlueZName.Failure.notSupported, BlueZName.Failure.invalidArguments, DBusName.Failure.unknownMethod:
        self = .refused(text)
      case DBusName.Failure.serviceUnknown, DBusName.Failure.nameHasNoOwner, DBusName.Failure.noReply,
        DBusName.Failure.limitsExceeded:
        // Reported by the bus when bluetoothd ended during the call, or when too many calls are pending.
        self = .unavailable
      // Of Connect, if the address is public and "BR/EDR not supported" is not advertised; "canceled" is for both.
      case _ where message.hasPrefix("br-connection-") && message != "br-connection-canceled",
        _ where name.hasSuffix(".BREDR.ProfileUnavailable"):
        self = .refused("\(text): \(Self.classic)")
      // The bus could not start bluetoothd.
      case _ where name.hasPrefix(DBusName.Failure.spawn): self = .unavailable
      default: self = .transient(text)
      }
    }
  }
}

extension CentralError {
  /// Whether a peripheral without a bond that fails a read so probably requires pairing: bluetoothd does not answer
  /// while it waits for the pairing, or says so.
  public var wantsPairing: Bool {
    switch self {
    case .timedOut, .unlikely: true
    case .refused(let text): text.hasSuffix("Not paired") || text.hasPrefix("NotAuthorized")
    case .transient, .busy, .gone, .disconnected, .notifyAcquired, .keyMissing, .cutShort, .unavailable: false
    }
  }

  /// Whether other characteristics can be used nevertheless: an error that the end of the link has caused arrives as
  /// ``disconnected``.
  public var concernsOneCharacteristic: Bool {
    switch self {
    case .refused, .transient, .busy, .unlikely, .notifyAcquired: true
    case .timedOut, .gone, .disconnected, .keyMissing, .cutShort, .unavailable: false
    }
  }

  var isBusy: Bool { if case .busy = self { true } else { false } }

  /// Of an operation on a characteristic that the peripheral no longer has.
  package static let characteristicRemoved = CentralError.refused("the characteristic was removed")
  /// See ``Central/isRefused(_:)``.
  static let inputDevice = CentralError.refused("it offers to be a keyboard or mouse (HID over GATT)")
}

extension CentralError: CustomStringConvertible {
  /// A line for the log; it may quote bluetoothd.
  public var description: String {
    switch self {
    case .transient(let text), .busy(let text), .unlikely(let text), .timedOut(let text), .refused(let text):
      text
    case .gone: "bluetoothd no longer knows it"
    case .disconnected: "the link is gone"
    case .notifyAcquired: "another Bluetooth program receives its values"
    case .keyMissing: "the link was not encrypted: its pairing may be lost"
    case .cutShort(let text):
      "\(text): the link ended at once: its signal is weak, or it may have lost its pairing"
    case .unavailable: "the Bluetooth adapter is missing or off"
    }
  }
}
