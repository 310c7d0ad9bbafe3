import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import JSON

/// The readings and the availability of devices, as lines for one client. It observes the devices only from
/// ``begin()`` to ``end()``, so that readings cost nothing extra while no client watches.
@LoopActor final class ReadingWatch: FrontEnd {
  private let keys: WatchKeys
  private let engine: DeviceManager
  /// Returns false if the client has too much unread, and the line was not sent.
  private let send: ([UInt8]) -> Bool
  /// The device that was attached last: with an id, only that is watched, also under another id.
  private var address: BluetoothAddress?
  private var hasBegun = false
  /// Lines that were dropped since the last one that was sent.
  private var dropped = 0

  init(_ keys: WatchKeys, _ engine: DeviceManager, send: @escaping ([UInt8]) -> Bool) {
    self.keys = keys
    self.engine = engine
    self.send = send
  }

  func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    engine.add(self)
  }

  func end() { if hasBegun { engine.remove(self) } }

  /// The socket has room again.
  func drained() {
    guard dropped > 0 else { return }
    let line: JSONValue = ["dropped": .integer(dropped)]
    if send(line.bytes) { dropped = 0 }
  }

  // MARK: Front end

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? {
    if let id = keys.id, id != device.id, address != device.address { return nil }
    address = device.address
    let observer = WatchedDevice(device, only: keys.property) { [weak self] in self?.report($0) }
    observer.describe()
    return observer
  }

  private func report(_ line: JSONValue) {
    // Dropped lines are reported before the next line.
    drained()
    if dropped > 0 || !send(line.bytes) { dropped += 1 }
  }
}

@LoopActor private final class WatchedDevice: DeviceObserver {
  private var device: DeviceDescription
  /// The only property that is watched; nil: all properties.
  private let name: String?
  private let report: (JSONValue) -> Void

  init(_ device: DeviceDescription, only name: String?, report: @escaping (JSONValue) -> Void) {
    self.device = device
    self.name = name
    self.report = report
  }

  func describe() {
    report([
      "device": .string(device.id.description), "identifier": .string(device.address.description),
      "name": device.name.map(JSONValue.string),
      "session": .string(device.sessionWord),
      "online": .bool(device.isOnline),
    ])
  }

  func reported(_ reading: Reading) {
    guard let property = device.property(of: reading), name == nil || name == property.name else { return }
    report([
      "device": .string(device.id.description), "property": .string(property.name),
      "value": property.codec.json(reading.value), "unit": property.unit.map(JSONValue.string),
      "time": .string(reading.time.description),
      "sequence": reading.sequence.map { .integer(Int(clamping: $0)) },
    ])
  }

  func changed(_ change: DeviceChange, _ device: DeviceDescription) {
    self.device = device
    switch change {
    case .renamed(let before, _):
      reportEnd(of: before)
      describe()
    case .availability, .session: describe()
    case .description, .handover: break
    }
  }

  func detach(_ reason: DetachReason) {
    if reason != .replaced { reportEnd(of: device.id) }
  }

  private func reportEnd(of id: DeviceID) {
    report(["device": .string(id.description), "session": .string("removed")])
  }
}
