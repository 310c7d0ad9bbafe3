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

  /// How many devices have a session of each kind.
  private var counts: [ObjectIdentifier: Int] = [:]

  var all: Dictionary<BluetoothAddress, Device>.Values { byAddress.values }

  func count(of session: DeviceSession.Type) -> Int { counts[ObjectIdentifier(session), default: 0] }

  /// The highest sequence number of the devices that were removed: one that comes again in this run goes on from there.
  private var removedSequence: UInt64 = 0

  mutating func insert(_ device: Device) {
    device.sequence = removedSequence
    byAddress[device.address] = device
    byID[device.id] = device
    counts[ObjectIdentifier(type(of: device.session)), default: 0] += 1
  }

  mutating func remove(_ device: Device) {
    removedSequence = max(removedSequence, device.sequence)
    if byAddress.removeValue(forKey: device.address) != nil {
      counts[ObjectIdentifier(type(of: device.session)), default: 0] -= 1
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

/// A peripheral that is not a device, and why.
struct IgnoredPeripheral {
  enum Cause {
    /// No entry matches it, or the one that does is another gateway's.
    case unmatched
    /// Its signal is weaker than this strength, in dBm, which the matching entry requires.
    case weak(below: Int)
    /// It has sent nothing for the profile that it would have.
    case deaf(Profile)
    /// There is no room for another device with the session that it would have.
    case full(DeviceSession.Type)
  }

  /// What the peripheral had advertised when it was ignored.
  let advertisement: Advertisement
  let cause: Cause

  var isOverLimit: Bool { if case .full = cause { true } else { false } }
  var deaf: Profile? { if case .deaf(let profile) = cause { profile } else { nil } }

  /// Whether nothing has changed. Called for every advertisement of peripherals that are not devices.
  func holds(
    for peripheral: Peripheral, _ now: Advertisement, hasRoom: (DeviceSession.Type) -> Bool
  ) -> Bool {
    let isOver =
      switch cause {
      case .unmatched: false
      case .weak(let limit): (peripheral.rssi ?? .min) >= limit
      case .deaf(let profile): profile.takes(peripheral.advertised)
      case .full(let session): hasRoom(session)
      }
    return !isOver && advertisement == now
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
