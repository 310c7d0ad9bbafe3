import Configuration
import Devices
import GATT

extension Ownership {
  /// A device that this gateway knows.
  struct Device {
    var machine: OwnershipMachine
    var here: OwnershipMachine.Here
    /// Arrives after the retained messages of the device; `.max`: none is awaited.
    var barrier = UInt64.max
    /// The names of properties whose values may be retained: of an earlier program, run or gateway, or of another device
    /// that had the id. Those that are not published any more are cleared when this gateway owns the device.
    var orphanedValues: Set<PropertyName>
    /// Whether the values that are retained under the id are of another device, which had it in an earlier run.
    var hasValuesOfAnother = false
    var others = OtherGateways()
  }

  // MARK: Questions

  /// Whether the gateway may publish under its id.
  var isAdmitted: Bool { idGuard.isAdmitted }
  /// Whether other gateways may use the broker: it has not said yet, or there are some.
  var hasPeers: Bool { barriers.isConnected && (!isAdmitted || !online.isEmpty) }
  /// Whether the retained commands for all subscriptions so far have arrived.
  var retainedCommandsHaveArrived: Bool { barriers.hasArrived(commandBarrier) }

  /// Which gateway owns the device, as far as is known; nil: the device is not known.
  func owner(of address: BluetoothAddress) -> Owner? { devices[address]?.machine.owner }

  /// Whether another gateway publishes a device under `id`, which has another id here, or none.
  func isUsedElsewhere(_ id: DeviceID) -> Bool {
    routes.isUnknown(id) || devices.values.contains { $0.machine.elsewhere?.id == id }
  }

  /// Whether this gateway answers commands for the device: unless another one owns it, is online and does not leave it to this
  /// one.
  func isResponsible(for address: BluetoothAddress) -> Bool {
    guard let machine = devices[address]?.machine else { return false }
    guard case .other(let gateway) = machine.owner else { return true }
    return !online.contains(gateway) || machine.isLeftToThis
  }
}
