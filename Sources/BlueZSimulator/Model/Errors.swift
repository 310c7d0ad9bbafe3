import DBus
import GATT

/// bluetoothd's error replies: their D-Bus names and texts, as recorded.
extension DBusError {
  private static func bluez(_ name: String, _ text: String) -> DBusError {
    .remote(name: "org.bluez.Error." + name, message: text)
  }

  static func failed(_ text: String) -> DBusError { bluez("Failed", text) }
  static let notConnected = failed("Not connected")
  static let abortByLocal = failed("le-connection-abort-by-local")
  static let canceled = failed("br-connection-canceled")
  static let unlikely = attribute(0x0E)
  static let alreadyInProgress = bluez("InProgress", "Operation already in progress")
  static let inProgress = bluez("InProgress", "In Progress")
  static let notReady = bluez("NotReady", "Resource Not Ready")
  static let notSupported = bluez("NotSupported", "Operation is not supported")
  static let doesNotExist = bluez("DoesNotExist", "Does Not Exist")
  static let notifyAcquired = bluez("NotPermitted", "Notify acquired")
  static let readNotPermitted = bluez("NotPermitted", "Read not permitted")
  static let writeNotPermitted = bluez("NotPermitted", "Write not permitted")
  static let invalidArguments = bluez("InvalidArguments", "Invalid arguments in method call")
  static let invalidLength = bluez("InvalidArguments", "Invalid Length")
  static let invalidOffset = bluez("InvalidArguments", "Invalid offset")
  static let alreadyExists = bluez("AlreadyExists", "Already Exists")
  static let authenticationCanceled = bluez("AuthenticationCanceled", "Authentication Canceled")
  static let connectionAttemptFailed = bluez("ConnectionAttemptFailed", "Page Timeout")
  static let authenticationFailed = bluez("AuthenticationFailed", "Authentication Failed")

  /// bluetoothd's mapping of ATT errors (`create_gatt_dbus_error` in its `src/gatt-client.c`).
  static func attribute(_ code: UInt8) -> DBusError {
    switch code {
    case 0x02: readNotPermitted
    case 0x03: writeNotPermitted
    case 0x05, 0x0C, 0x0F: bluez("NotPermitted", "Not paired")
    case 0x06: notSupported
    case 0x07: invalidOffset
    case 0x08: bluez("NotAuthorized", "Operation Not Authorized")
    case 0x0D: invalidLength
    default: failed("Operation failed with ATT error: 0x\(Hexadecimal.text(code, bytes: 1))")
    }
  }

  private static func dbus(_ name: String, _ text: String) -> DBusError {
    .remote(name: "org.freedesktop.DBus.Error." + name, message: text)
  }

  static func unknownObject(_ text: String) -> DBusError { dbus("UnknownObject", text) }
  static func unknownMethod(_ text: String) -> DBusError { dbus("UnknownMethod", text) }
  static func unknownProperty(_ name: String) -> DBusError {
    dbus("UnknownProperty", "No such property '\(name)'")
  }
  static func noSuch(_ kind: String, _ name: String) -> DBusError {
    dbus("InvalidArgs", "No such \(kind) '\(name)'")
  }
  static func readOnly(_ name: String) -> DBusError {
    dbus("PropertyReadOnly", "Property '\(name)' is not writable")
  }
  static func invalidSignature(_ name: String) -> DBusError {
    dbus("InvalidSignature", "Invalid signature for '\(name)'")
  }
}
