import Configuration
import Devices
import EventLoop
import GATT
import JSON

/// The publishers of all known devices.
@LoopActor package final class DevicePublishers {
  private let gateway: GatewayID
  private var byAddress: [BluetoothAddress: DevicePublisher] = [:]
  private var byID: [DeviceID: DevicePublisher] = [:]

  init(_ gateway: GatewayID) { self.gateway = gateway }

  package var all: Dictionary<BluetoothAddress, DevicePublisher>.Values { byAddress.values }
  package subscript(id: DeviceID) -> DevicePublisher? { byID[id] }
  package subscript(address: BluetoothAddress) -> DevicePublisher? { byAddress[address] }

  func add(_ publisher: DevicePublisher) {
    byAddress[publisher.device.address] = publisher
    byID[publisher.device.id] = publisher
  }

  func renamed(_ publisher: DevicePublisher, from before: DeviceID) {
    if byID[before] === publisher { byID[before] = nil }
    byID[publisher.device.id] = publisher
  }

  func remove(_ publisher: DevicePublisher) {
    let device = publisher.device
    if byAddress[device.address] === publisher { byAddress[device.address] = nil }
    if byID[device.id] === publisher { byID[device.id] = nil }
  }

  /// The publishers of the devices that a command is for.
  func targets(_ target: Target) -> [DevicePublisher] {
    switch target {
    case .device(let id): byID[id].map { [$0] } ?? []
    case .all: Array(all)
    case .area(let area): all.filter { $0.area == area }
    }
  }

  /// An entry of `{base}/bridge/{gateway}/devices`: a device, the state of its session, and its `info`.
  func listing(of device: DeviceDescription) -> JSONValue {
    let publisher = byAddress[device.address]
    let owner: GatewayID? =
      switch publisher?.owner {
      case .this: gateway
      case .other(let gateway): gateway
      case .unknown, nil: nil
      }
    return device.listing(owner: owner, moved: publisher?.moved)
  }
}
