import EventLoop
import GATT
import JSON
import Log
import Store

/// What the gateway remembers over restarts: all of it here, and each change soon in the state database.
///
/// A record for each device that was ever held or changed; the key is its address. Confined to the gateway's actor.
final class Memory: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone.

  private static let log = Logger(component: "state")
  private let store: StateStore
  private(set) var records: [BluetoothAddress: DeviceRecord] = [:]
  /// What Home Assistant was told of the gateway itself.
  private(set) var announcedGateway: Announced?
  /// What was taken back from Home Assistant, and may have to be once more, by its discovery topic.
  private(set) var removals: [String: Removal] = [:]
  /// Why changes are not kept; nil while they are.
  private(set) var trouble: String?
  private let loop: EventLoop
  /// Changed, and not handed to the store yet: that waits until whoever waits for an answer has got it.
  private var changed: Set<BluetoothAddress> = []
  private static let gathering = Duration.milliseconds(10)

  /// A key that is no address.
  private static let gatewayKey = "gateway"
  /// Those that come then are not remembered: as many as all devices, and more than a house has.
  static let mostRemovals = 1024

  /// Blocks until the database is read, some milliseconds. Without a place for one the memory ends with the process.
  init(path: String?, loop: EventLoop) {
    self.loop = loop
    guard let path else {
      store = .inMemory()
      trouble = "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME"
      Self.log.warning(
        "cannot write the state folder: changes will be lost on restart", ["reason": trouble ?? ""])
      return
    }
    let opened = StateStore.open(path: path)
    store = opened.store
    switch opened.opening {
    case .opened, .migrated:
      Self.log.debug("state database", ["path": path, "records": opened.records.count])
    case .setAside(let aside, let reason):
      Self.log.warning(
        "the state database was damaged: moved it aside and began a new one",
        ["moved_to": aside, "reason": reason])
    case .newer(let reason), .inMemoryOnly(let reason):
      trouble = reason
      Self.log.warning("cannot write the state folder: changes will be lost on restart", ["reason": reason])
    }
    records = Self.records(opened.records)
    announcedGateway = opened.records[Self.gatewayKey].flatMap { try? JSONParser.parse($0) }
      .flatMap(Announced.init)
    for (key, bytes) in opened.records where removals.count < Self.mostRemovals {
      removals[key] = Removal(key: key, bytes: bytes)
    }
  }

  /// The devices' records in what a store holds; one that cannot be read is left out, and told.
  static func records(_ stored: [String: [UInt8]]) -> [BluetoothAddress: DeviceRecord] {
    var records: [BluetoothAddress: DeviceRecord] = [:]
    for (key, bytes) in stored where key != gatewayKey {
      if let address = BluetoothAddress(key),
        var record = DeviceRecord(identifier: address, bytes: bytes)
      {
        for (property, value) in record.dropUnsettable() {
          Self.log.warning(
            "a remembered value is out of range: dropped",
            ["device": address, "property": Excerpt(property), "value": value])
        }
        records[address] = record
      } else if Removal(key: key, bytes: bytes) == nil {
        Self.log.warning("ignoring a record of the state database that cannot be read", ["key": Excerpt(key)])
      }
    }
    return records
  }

  /// Changes the record of the device at `address`; one that says nothing is not kept.
  func change(_ address: BluetoothAddress, _ body: (inout DeviceRecord) -> Void) {
    let new = DeviceRecord(identifier: address)
    let before = records[address] ?? new
    var record = before
    body(&record)
    guard record != before else { return }
    records[address] = record == new ? nil : record
    if changed.isEmpty { loop.timer(after: Self.gathering) { [weak self] in self?.putChanges() } }
    changed.insert(address)
  }

  /// Nothing is remembered of the device at `address`.
  func forget(_ address: BluetoothAddress) { change(address) { $0 = DeviceRecord(identifier: address) } }

  private func putChanges() {
    for address in changed { store.put(address.description, records[address]?.bytes) }
    changed = []
  }

  func announceGateway(_ announced: Announced?) {
    guard announced != announcedGateway else { return }
    announcedGateway = announced
    store.put(Self.gatewayKey, announced?.json.bytes)
  }

  func remember(_ removal: Removal) {
    let key = removal.topic.string
    guard removals[key] != nil || removals.count < Self.mostRemovals else { return }
    removals[key] = removal
    store.put(key, removal.announced.json.bytes)
  }

  /// Drops the removal of what was told on the discovery topic `topic`.
  func dropRemoval(_ topic: String) {
    if removals.removeValue(forKey: topic) != nil { store.put(topic, nil) }
  }

  // MARK: The store

  /// Calls `handler`, on the store's own thread, when writing fails and when it works again.
  func watch(_ handler: @escaping @Sendable (StoreEvent) -> Void) { store.setHandler(handler) }

  func heard(_ event: StoreEvent) {
    switch event {
    case .failing(let reason):
      trouble = reason
      Self.log.error(
        "cannot write the state database: changes are kept in memory, and writing is tried again",
        ["reason": reason])
    case .recovered:
      trouble = nil
      Self.log.notice("the state database is written again")
    }
  }

  /// Writes what is not written yet, for at most a second.
  func close() {
    putChanges()
    let lost = store.close(within: .seconds(1))
    if lost > 0 { Self.log.error("some changes were not written to the state database", ["devices": lost]) }
  }
}
