import EventLoop
import GATT
import JSON
import Log
import Store

/// What the engine keeps of its devices over restarts: all of it here, and each change soon in the state database.
///
/// A record for each device that was ever connected or changed; the key is its address.
@LoopActor final class DeviceStore {
  private nonisolated static let log = Logger(component: "state")
  /// How long it may wait that a device was only heard again: that is so every few seconds, and would wear a memory card out.
  private static let heardPatience = Duration.seconds(600)

  private(set) var records: [BluetoothAddress: DeviceRecord]
  /// The addresses of devices by ``DeviceRecord/identity``, also by earlier ones.
  private var identities: [BluetoothAddress: BluetoothAddress]
  /// Called after each change.
  var onChange: (BluetoothAddress, DeviceRecord) -> Void = { _, _ in }
  private let section: StateSection

  init(_ section: StateSection) {
    self.section = section
    records = Self.records(section.takeRecords())
    let known = records.values.compactMap { record in record.identity.map { ($0, record.address) } }
    identities = Dictionary(known) { first, _ in first }
  }

  /// The devices' records in a section of the state database; one that cannot be read is left out, and logged.
  nonisolated static func records(_ stored: [String: [UInt8]]) -> [BluetoothAddress: DeviceRecord] {
    var records: [BluetoothAddress: DeviceRecord] = [:]
    for (key, bytes) in stored {
      guard let address = BluetoothAddress(key), let record = DeviceRecord(address: address, bytes: bytes)
      else {
        Self.log.warning("ignoring an unreadable record of the state database", ["key": Excerpt(key)])
        continue
      }
      records[address] = record
    }
    return records
  }

  /// The record of the device at `address`; an empty one if there is none.
  func record(_ address: BluetoothAddress) -> DeviceRecord {
    records[address] ?? DeviceRecord(address: address)
  }

  func address(ofIdentity identity: BluetoothAddress) -> BluetoothAddress? {
    identities[identity].flatMap { records[$0]?.identity == identity ? $0 : nil }
  }

  /// The device at `address` has this identity address, and no other device.
  func setIdentity(_ identity: BluetoothAddress, of address: BluetoothAddress) {
    if let other = self.address(ofIdentity: identity) { change(other) { $0.identity = nil } }
    identities[identity] = address
    change(address) { $0.identity = identity }
  }

  /// Changes the record of the device at `address`; an empty one is deleted.
  /// - Parameter isPrompt: whether it is stored soon, also if the device was only heard again.
  func change(_ address: BluetoothAddress, isPrompt: Bool = false, _ body: (inout DeviceRecord) -> Void) {
    let new = DeviceRecord(address: address)
    let before = record(address)
    var record = before
    body(&record)
    guard record != before else { return }
    records[address] = record == new ? nil : record
    onChange(address, record)
    let patience = !isPrompt && record.isOnlyHeard(since: before) ? Self.heardPatience : .zero
    // Who has asked for a change may have been told that it is done. Its bytes are made later: answers that are due go out first.
    section.put(address.description, isUrgent: !record.isSet(as: before), patience: patience) { [self] in
      records[address]?.bytes
    }
  }

  func remove(_ address: BluetoothAddress) { change(address) { $0 = DeviceRecord(address: address) } }
}

extension DeviceRecord {
  /// Whether commands and requests have set the same.
  fileprivate func isSet(as other: DeviceRecord) -> Bool {
    // A request removes a value; by themselves they come, or one replaces another.
    requested == other.requested && valueTable.count >= other.valueTable.count
  }

  /// Whether the device was heard again, and nothing else has changed.
  fileprivate func isOnlyHeard(since before: DeviceRecord) -> Bool {
    var other = before
    other.learnedLimit = learnedLimit
    if lastHeard != nil, before.lastHeard != nil { other.lastHeard = lastHeard }
    if counter != nil, before.counter != nil { other.counter = counter }
    return self == other
  }

  /// The records in a section of the state database.
  package static func records(_ section: [String: [UInt8]]) -> [BluetoothAddress: DeviceRecord] {
    DeviceStore.records(section)
  }
}
