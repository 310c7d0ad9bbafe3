import EventLoop
import GATT

/// What the session and the properties of a device report to it, apart from values.
enum DeviceEvent {
  /// The state of the session has changed, or why its link ended is known.
  case session
  case online
  case offline
  /// The peripheral has changed its services: the link offers these properties.
  case offered(Set<String>)
  /// The values of the Device Information Service, by characteristic.
  case information([BluetoothUUID: String])
  /// A command waits for a link, until the end of its time to live.
  case commandWaits(until: Moment?)
  /// An operation on the link was not answered in time.
  case unresponsive
}
