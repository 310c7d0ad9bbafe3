import DBus
import Testing

@testable import BlueZ

@Suite struct CentralErrorTests {
  /// Every error that was recorded on a real bluetoothd, and those of newer ones, and what a central makes of it.
  @Test(arguments: [
    ("Connect", "org.bluez.Error.Failed", "le-connection-abort-by-local", Kind.transient),
    ("Connect", "org.bluez.Error.Failed", "br-connection-canceled", .transient),
    ("Connect", "org.bluez.Error.Failed", "br-connection-key-missing", .keyMissing),
    ("Connect", "org.bluez.Error.Failed", ":br-connection-key-missing:Link key missing", .keyMissing),
    ("Connect", "org.bluez.Error.Failed", "Operation already in progress", .busy),
    ("Connect", "org.bluez.Error.InProgress", "br-connection-busy", .busy),
    ("Connect", "org.bluez.Error.NotReady", "br-connection-adapter-not-powered", .unavailable),
    ("Connect", "org.bluez.Error.Failed", "br-connection-unknown", .classic),
    ("Connect", "org.bluez.Error.NotAvailable", "br-connection-profile-unavailable", .classic),
    ("Connect", "org.bluez.Error.BREDR.ProfileUnavailable", "No more profiles to connect to", .classic),
    ("Connect", "org.bluez.Error.Failed", "Input/output error", .transient),
    ("Connect", "org.freedesktop.DBus.Error.UnknownObject", "Method \"Connect\" doesn't exist", .gone),
    ("RemoveDevice", "org.bluez.Error.DoesNotExist", "Does Not Exist", .gone),
    ("ReadValue", "org.freedesktop.DBus.Error.UnknownObject", "Method \"ReadValue\" doesn't exist", .gone),
    ("ReadValue", "org.bluez.Error.Failed", "Not connected", .disconnected),
    ("Disconnect", "org.bluez.Error.NotConnected", "Not Connected", .disconnected),
    ("ReadValue", "org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e", .unlikely),
    ("ReadValue", "org.bluez.Error.Failed", "Operation failed with ATT error: 0x80", .transient),
    ("WriteValue", "org.bluez.Error.Failed", "Failed to initiate write", .transient),
    ("WriteValue", "org.bluez.Error.InProgress", "In Progress", .busy),
    ("StartDiscovery", "org.bluez.Error.InProgress", "Operation already in progress", .busy),
    ("StopDiscovery", "org.bluez.Error.Failed", "No discovery started", .transient),
    ("Pair", "org.bluez.Error.AuthenticationFailed", "Authentication Failed", .transient),
    ("ReadValue", "org.bluez.Error.NotPermitted", "Read not permitted", .refused),
    ("AcquireNotify", "org.bluez.Error.NotPermitted", "Notify acquired", .notifyAcquired),
    ("ReadValue", "org.bluez.Error.NotAuthorized", "Operation Not Authorized", .refused),
    ("WriteValue", "org.bluez.Error.NotSupported", "Operation is not supported", .refused),
    ("WriteValue", "org.bluez.Error.InvalidArguments", "Invalid Length", .refused),
    ("Bogus", "org.freedesktop.DBus.Error.UnknownMethod", "Method \"Bogus\" doesn't exist", .refused),
    ("StartDiscovery", "org.bluez.Error.NotReady", "Resource Not Ready", .unavailable),
    ("ReadValue", "org.freedesktop.DBus.Error.NoReply", "Message recipient disconnected", .unavailable),
    ("ReadValue", "org.freedesktop.DBus.Error.ServiceUnknown", "was not provided", .unavailable),
    ("ReadValue", "org.freedesktop.DBus.Error.NameHasNoOwner", "no such name", .unavailable),
    ("ReadValue", "org.freedesktop.DBus.Error.Spawn.ChildExited", "Launch helper exited", .unavailable),
    ("ReadValue", "org.freedesktop.DBus.Error.LimitsExceeded", "too many pending replies", .unavailable),
  ])
  func recordedErrors(member: String, name: String, message: String, kind: Kind) {
    let error = CentralError(.remote(name: name, message: message), during: member)
    let short = String(name.split(separator: ".").last!)
    switch kind {
    case .transient: #expect(error == .transient("\(short): \(message)"))
    case .busy: #expect(error == .busy("\(short): \(message)"))
    case .unlikely: #expect(error == .unlikely("\(short): \(message)"))
    case .refused: #expect(error == .refused("\(short): \(message)"))
    case .classic: #expect(error == .refused("\(short): \(message): bluetoothd tries classic Bluetooth"))
    case .gone: #expect(error == .gone)
    case .disconnected: #expect(error == .disconnected)
    case .unavailable: #expect(error == .unavailable)
    case .notifyAcquired: #expect(error == .notifyAcquired)
    case .keyMissing: #expect(error == .keyMissing)
    }
  }

  enum Kind: Sendable {
    case transient, busy, unlikely, refused, classic, gone, disconnected, notifyAcquired, keyMissing,
      unavailable
  }

  @Test func localErrorsAreClassified() {
    #expect(CentralError(.timedOut, during: "Connect") == .timedOut("Connect: no answer in time"))
    #expect(CentralError(.disconnected, during: "Connect") == .unavailable)
    #expect(CentralError(.tooManyCalls, during: "Connect") == .unavailable)
    #expect(CentralError(.unreachable(address: "a", reason: "b"), during: "Connect") == .unavailable)
    #expect(CentralError(.invalid("a path"), during: "Connect") == .refused("Connect: a path"))
  }

  @Test func aNameWithoutWordsIsText() {
    #expect(CentralError(.remote(name: "Odd", message: ""), during: "X") == .transient("Odd"))
    #expect(CentralError(.remote(name: "", message: ""), during: "X") == .transient(""))
  }
}
