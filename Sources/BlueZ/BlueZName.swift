/// The vocabulary of `org.bluez` (BlueZ, doc/org.bluez.*.rst).
enum BlueZName {
  static let busName = "org.bluez"
  static let adapter = "org.bluez.Adapter1"
  static let device = "org.bluez.Device1"
  static let gattService = "org.bluez.GattService1"
  static let characteristic = "org.bluez.GattCharacteristic1"
  static let descriptor = "org.bluez.GattDescriptor1"
  static let agentManager = "org.bluez.AgentManager1"
  static let monitor = "org.bluez.AdvertisementMonitor1"
  static let monitorManager = "org.bluez.AdvertisementMonitorManager1"
  /// The object of the agent manager.
  static let root = "/org/bluez"

  /// Errors that a central encounters (recorded with bluetoothd 5.66).
  enum Failure {
    static let inProgress = "org.bluez.Error.InProgress"
    static let failed = "org.bluez.Error.Failed"
    static let notReady = "org.bluez.Error.NotReady"
    static let notConnected = "org.bluez.Error.NotConnected"
    static let notPermitted = "org.bluez.Error.NotPermitted"
    static let notAuthorized = "org.bluez.Error.NotAuthorized"
    static let notSupported = "org.bluez.Error.NotSupported"
    static let invalidArguments = "org.bluez.Error.InvalidArguments"
    static let doesNotExist = "org.bluez.Error.DoesNotExist"
    static let alreadyExists = "org.bluez.Error.AlreadyExists"
    static let authenticationFailed = "org.bluez.Error.AuthenticationFailed"
    static let authenticationRejected = "org.bluez.Error.AuthenticationRejected"
    static let authenticationCanceled = "org.bluez.Error.AuthenticationCanceled"
    static let authenticationTimeout = "org.bluez.Error.AuthenticationTimeout"
    static let connectionAttemptFailed = "org.bluez.Error.ConnectionAttemptFailed"
    /// The agent's own.
    static let rejected = "org.bluez.Error.Rejected"
    // Errors of the bus.
    static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    static let processUnknown = "org.freedesktop.DBus.Error.UnixProcessIdUnknown"
    static let noReply = "org.freedesktop.DBus.Error.NoReply"
    /// Prefix of the errors that report that the bus could not start a service.
    static let spawn = "org.freedesktop.DBus.Error.Spawn."
  }
}
