import Configuration
import EventLoop
import GATT

/// What a front end (MQTT, the page, `watch`, a recording) learns from the engine beyond single devices.
@LoopActor package protocol FrontEnd: AnyObject, Sendable {
  /// A device is known from now on.
  /// - Returns: its observer; nil: the front end does not follow it.
  func attach(_ device: DeviceDescription) -> (any DeviceObserver)?
  /// An adapter, the set of devices, or the state of a session has changed.
  func engineChanged()
  /// An earlier run published topics of this device under `id`, which it no longer has.
  /// - Parameter offered: the properties that the device offered on its last link.
  func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>)
  /// Whether another gateway publishes a device under `id`, which has another id here, or none.
  func isUsedElsewhere(_ id: DeviceID) -> Bool
}

extension FrontEnd {
  package func engineChanged() {}
  package func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>) {}
  package func isUsedElsewhere(_ id: DeviceID) -> Bool { false }
}
