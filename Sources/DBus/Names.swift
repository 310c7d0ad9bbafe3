import Glibc

/// Names defined by the D-Bus specification and libdbus.
public enum DBusName {
  /// The bus as a destination, as a sender, and as the interface of its own methods and signals.
  public static let bus = "org.freedesktop.DBus"
  /// The interface of signals that libdbus itself generates about the connection.
  static let local = "org.freedesktop.DBus.Local"
  /// The address of the system bus (D-Bus specification, "Well-known Message Bus Instances").
  package static var systemBus: String {
    getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? "unix:path=/run/dbus/system_bus_socket"
  }
  /// The object of the bus's own methods.
  package static let busPath = "/org/freedesktop/DBus"
  /// The interface of Get, Set, GetAll and PropertiesChanged.
  public static let properties = "org.freedesktop.DBus.Properties"
  /// The interface of GetManagedObjects, InterfacesAdded and InterfacesRemoved.
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"
  /// The interface of Introspect, which describes an object in XML.
  public static let introspectable = "org.freedesktop.DBus.Introspectable"

  /// Errors of the specification.
  package enum Failure {
    package static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    package static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
    /// A call beyond the maximum that the bus allows to wait for replies.
    package static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
    package static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    package static let noReply = "org.freedesktop.DBus.Error.NoReply"
    package static let processUnknown = "org.freedesktop.DBus.Error.UnixProcessIdUnknown"
    package static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    package static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
    package static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    /// The prefix of the errors that report that the bus could not start a service.
    package static let spawn = "org.freedesktop.DBus.Error.Spawn."
  }
}

/// The vocabulary of `org.bluez` (BlueZ, doc/org.bluez.*.rst).
package enum BlueZName {
  package static let busName = "org.bluez"
  /// The object of the managers that belong to no adapter, and the parent of the adapters.
  package static let root = "/org/bluez"

  package static let adapter = "org.bluez.Adapter1"
  package static let advertisement = "org.bluez.LEAdvertisement1"
  package static let advertisingManager = "org.bluez.LEAdvertisingManager1"
  package static let agent = "org.bluez.Agent1"
  package static let agentManager = "org.bluez.AgentManager1"
  package static let characteristic = "org.bluez.GattCharacteristic1"
  package static let descriptor = "org.bluez.GattDescriptor1"
  package static let device = "org.bluez.Device1"
  package static let gattManager = "org.bluez.GattManager1"
  package static let gattService = "org.bluez.GattService1"
  package static let healthManager = "org.bluez.HealthManager1"
  package static let media = "org.bluez.Media1"
  package static let monitor = "org.bluez.AdvertisementMonitor1"
  package static let monitorManager = "org.bluez.AdvertisementMonitorManager1"
  package static let network = "org.bluez.NetworkServer1"
  package static let profileManager = "org.bluez.ProfileManager1"

  /// The object of an adapter: `/org/bluez/hci0`.
  package static func adapterPath(_ name: String) -> String { "\(root)/\(name)" }

  /// The name of an adapter with this object.
  package static func adapterName(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? ""
  }

  /// The object of a device: `/org/bluez/hci0/dev_D0_5A_00_00_C0_DE`.
  package static func devicePath(_ address: String, of adapter: String) -> String {
    "\(adapter)/dev_" + String(address.map { $0 == ":" ? "_" : $0 })
  }

  /// Errors that a central encounters (recorded with bluetoothd 5.66).
  package enum Failure {
    package static let alreadyExists = "org.bluez.Error.AlreadyExists"
    package static let authenticationCanceled = "org.bluez.Error.AuthenticationCanceled"
    package static let authenticationFailed = "org.bluez.Error.AuthenticationFailed"
    package static let authenticationRejected = "org.bluez.Error.AuthenticationRejected"
    package static let authenticationTimeout = "org.bluez.Error.AuthenticationTimeout"
    package static let connectionAttemptFailed = "org.bluez.Error.ConnectionAttemptFailed"
    package static let doesNotExist = "org.bluez.Error.DoesNotExist"
    package static let failed = "org.bluez.Error.Failed"
    package static let inProgress = "org.bluez.Error.InProgress"
    /// The property is being changed already (BlueZ, src/adapter.c).
    package static let busy = "org.bluez.Error.Busy"
    package static let invalidArguments = "org.bluez.Error.InvalidArguments"
    package static let notAuthorized = "org.bluez.Error.NotAuthorized"
    package static let notConnected = "org.bluez.Error.NotConnected"
    package static let notPermitted = "org.bluez.Error.NotPermitted"
    package static let notReady = "org.bluez.Error.NotReady"
    package static let notSupported = "org.bluez.Error.NotSupported"
    /// The error by which the agent of this process refuses.
    package static let rejected = "org.bluez.Error.Rejected"
  }
}
