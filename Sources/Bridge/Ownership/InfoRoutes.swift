import Configuration
import Devices
import GATT

/// Which devices an `info` is for, and what it says of those that this gateway does not know. Pure.
struct InfoRoutes {
  /// A device that this gateway owns by its retained `info` and does not know under that id: published by an earlier run, by this
  /// one before the broker went back to an older state, or by others in its name.
  struct Lost: Equatable {
    let address: BluetoothAddress?
    /// The properties that were published, without those of the built-in profile, which are cleared in any case.
    let properties: Set<PropertyName>
  }

  private let this: GatewayID
  /// The lost devices by their ids; nil once they are reported, until the next connection: a broker that was killed may have gone
  /// back to what it had some time ago.
  private var lost: [DeviceID: Lost]? = [:]
  /// How many properties the lost devices have.
  private var names = 0
  /// The most properties of lost devices; the topics of further ones stay.
  private static let mostNames = 8192
  /// The properties of the built-in profile, whose topics are cleared in any case.
  static let builtIn = Set(names: Profile.microbit.properties.map(\.name))
  /// The devices that other gateways publish and this one does not know, by the ids there; beyond
  /// ``DeviceManager/capacity``, further ones are left out.
  private var unknown: [DeviceID: BluetoothAddress] = [:]

  init(_ this: GatewayID) { self.this = this }

  /// - Parameters:
  ///   - named: the device that has the id here.
  ///   - isOrphan: whether the topics of the id are being cleared.
  ///   - owner: nil for a device that is not known.
  /// - Returns: the devices that it is for: another one may have the id here, and the device another id.
  mutating func received(
    _ notice: OwnershipMachine.Notice, named: BluetoothAddress?, isOrphan: Bool,
    owner: (BluetoothAddress) -> Owner?
  ) -> [BluetoothAddress] {
    let isOwn = notice.gateway == this
    forgetLost(notice.id)
    var devices = named.map { [$0] } ?? []
    if let address = notice.address, address != named {
      switch owner(address) {
      case nil: if !isOwn { note(notice.id, address) }
      // This gateway has published the device under another id before.
      case .other where isOwn: break
      // The id is another device's by now, and this one was published since.
      case .this where isOwn && named != nil: break
      case .unknown, .this, .other: devices.append(address)
      }
    }
    if isOwn, named == nil, !isOrphan { noteLost(notice) }
    return devices
  }

  func isUnknown(_ id: DeviceID) -> Bool { unknown[id] != nil }

  mutating func cleared(_ id: DeviceID) {
    unknown[id] = nil
    forgetLost(id)
  }

  mutating func disconnected() { (unknown, lost, names) = ([:], [:], 0) }

  /// The device is removed here, and another gateway publishes it under the id.
  mutating func removed(_ address: BluetoothAddress, elsewhere id: DeviceID) { note(id, address) }

  /// The device is known from now on.
  /// - Returns: the ids under which others publish it, whose `info` has arrived before.
  mutating func added(_ address: BluetoothAddress) -> [DeviceID] {
    let ids = unknown.filter { $0.value == address }.keys.sorted { $0.description < $1.description }
    for id in ids { unknown[id] = nil }
    return ids
  }

  /// What the broker retains has arrived: once on each connection.
  mutating func takeLost() -> [(id: DeviceID, device: Lost)] {
    defer { lost = nil }
    return (lost ?? [:]).sorted { $0.key.description < $1.key.description }.map { ($0.key, $0.value) }
  }

  private mutating func note(_ id: DeviceID, _ address: BluetoothAddress) {
    if unknown[id] != nil || unknown.count < DeviceManager.capacity { unknown[id] = address }
  }

  private mutating func forgetLost(_ id: DeviceID) {
    names -= lost?.removeValue(forKey: id)?.properties.count ?? 0
  }

  private mutating func noteLost(_ notice: OwnershipMachine.Notice) {
    // Taken out, so that it is changed in place.
    guard var devices = lost.take() else { return }
    defer { lost = devices }
    guard devices.count < DeviceManager.capacity else { return }
    var properties = notice.properties.subtracting(Self.builtIn)
    if names + properties.count > Self.mostNames { properties = [] }
    names += properties.count
    devices[notice.id] = Lost(address: notice.address, properties: properties)
  }
}
