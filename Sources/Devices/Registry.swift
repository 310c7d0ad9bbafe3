import BlueZ
import Configuration
import EventLoop
import GATT

/// The devices by what they are known by.
@LoopActor struct Registry {
  private(set) var byAddress: [BluetoothAddress: Device] = [:]
  private(set) var byID: [DeviceID: Device] = [:]
  var byPeripheral: [PeripheralID: Device] = [:]
  /// Peripherals that no entry matches, whose signal is too weak for the one that does, that send nothing for its profile, or for
  /// which there is no room.
  var ignored: [PeripheralID: IgnoredPeripheral] = [:]

  /// How many devices are known by advertisements alone.
  private(set) var onlyAdvertised = 0

  var all: Dictionary<BluetoothAddress, Device>.Values { byAddress.values }

  /// The highest sequence number of the devices that were removed: one that comes again in this run goes on from there.
  private var removedSequence: UInt64 = 0

  mutating func insert(_ device: Device) {
    device.sequence = removedSequence
    byAddress[device.address] = device
    byID[device.id] = device
    if type(of: device.session).isOnlyAdvertised { onlyAdvertised += 1 }
  }

  mutating func remove(_ device: Device) {
    removedSequence = max(removedSequence, device.sequence)
    if byAddress.removeValue(forKey: device.address) != nil, type(of: device.session).isOnlyAdvertised {
      onlyAdvertised -= 1
    }
    if byID[device.id] === device { byID[device.id] = nil }
    // An object that was just found is removed too, although `session.adapters` does not have it yet.
    byPeripheral = byPeripheral.filter { $0.value !== device }
  }

  /// Registers the device under another id; called before the device itself has that.
  mutating func rename(_ device: Device, to id: DeviceID) {
    byID[device.id] = nil
    byID[id] = device
  }
}

/// A peripheral that is not a device, and what would have to change for it to become one.
struct IgnoredPeripheral {
  /// What the peripheral had advertised when it was ignored.
  let advertisement: Advertisement
  /// The signal strength, in dBm, that the matching entry requires; nil: no entry matches, or it is strong enough.
  let minRSSI: Int?
  /// The profile that it would have, and has sent nothing for; nil: it has, or may be connected.
  let deaf: Profile?
  /// The session that it would have.
  let session: DeviceSession.Type
  /// Whether there was no room for another device.
  let isOverLimit: Bool

  /// Whether nothing has changed. Called for every advertisement of peripherals that are not devices.
  func holds(
    for peripheral: Peripheral, _ now: Advertisement, hasRoom: @autoclosure () -> Bool
  ) -> Bool {
    if let minRSSI, let rssi = peripheral.rssi, rssi >= minRSSI { return false }
    if let deaf, deaf.takes(peripheral.advertised) { return false }
    if isOverLimit, hasRoom() { return false }
    return advertisement == now
  }
}

extension Advertisement {
  package init(_ peripheral: Peripheral) {
    var services = peripheral.services
    for service in peripheral.advertised.serviceData.keys.sorted(by: { $0.description < $1.description })
    where !services.contains(service) {
      services.append(service)
    }
    self.init(
      name: peripheral.name, services: services,
      manufacturers: peripheral.advertised.manufacturerData.keys.sorted())
  }
}
