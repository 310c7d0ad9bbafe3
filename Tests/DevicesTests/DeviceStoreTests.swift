import Configuration
import EventLoop
import GATT
import Log
import TestSupport
import Testing

@testable import Devices
@testable import Store

@LoopActor @Suite struct DeviceStoreTests {
  private let folder: TemporaryFolder
  private let address = BluetoothAddress(truncating: 1)
  private let pacing = Pacing(
    gather: .milliseconds(1), apart: .seconds(600),
    retry: BackOff(first: .seconds(600), longest: .seconds(600)))

  init() throws { folder = try TemporaryFolder() }

  @Test("What a request has set is stored at once, though the writer pauses after what changes by itself")
  func requestedChangeIsUrgent() async throws {
    let path = folder.path + "/state.db"
    let database = StateDatabase(path: path, pacing: pacing)
    let store = DeviceStore(database.section("devices"))
    @Sendable func stored() throws -> DeviceRecord? {
      DeviceRecord.records(try StateDatabase.sections(path: path)["devices"] ?? [:]).values.first
    }
    store.change(address) { $0.counter = 1 }
    try await eventually("the first change") { try stored()?.counter == 1 }
    store.change(address) { $0.model = "V2" }
    store.change(address) { $0.requested.isAdded = true }
    try await eventually("what was requested") { try stored()?.requested.isAdded == true }
    store.change(address) { $0.requested.isDisabledElsewhere = true }
    try await eventually("it is disabled elsewhere") { try stored()?.requested.isDisabledElsewhere == true }
    let key: ValueKey = "light"
    store.change(address) {
      $0.valueTable[key] = ValueTable.Entry(written: "light", isNumber: true, isConfirmed: true, lastSeen: 1)
    }
    store.change(address) { $0.valueTable[key] = nil }
    store.change(address) { $0.model = "V1" }
    try await eventually("the value is removed") { try stored()?.model == "V1" }
    await database.close(within: patience)
  }

  /// A stranger may repeat a frame that is newer than the stored counter.
  @Test(
    "The counter of encrypted frames is stored after ten minutes, at an event at once, and exactly at the end"
  )
  func counter() async throws {
    let path = folder.path + "/state.db"
    let database = StateDatabase(path: path, pacing: Pacing(gather: .milliseconds(1), apart: .zero))
    let store = DeviceStore(database.section("devices"))
    @Sendable func stored() throws -> Int? {
      DeviceRecord.records(try StateDatabase.sections(path: path)["devices"] ?? [:]).values.first?.counter
    }
    store.change(address) { $0.counter = 1 }
    try await eventually("the first one") { try stored() == 1 }
    store.change(address) { $0.counter = 2 }
    try await eventually("it waits for ten minutes") { await database.isPatient }
    #expect(try stored() == 1)
    store.change(address, isPrompt: true) { $0.counter = 3 }
    try await eventually("that of an event") { try stored() == 3 }
    store.change(address) { $0.counter = 4 }
    await database.close()
    #expect(try stored() == 4)
  }

  @Test("A device is found by its identity address after a restart, unless another one has that by now")
  func identityAddresses() throws {
    let (other, identity) = (BluetoothAddress(truncating: 2), BluetoothAddress(truncating: 3))
    let store = DeviceStore(.inMemory())
    func restarted() -> DeviceStore {
      DeviceStore(.inMemory(store.records.reduce(into: [:]) { $0[$1.key.description] = $1.value.bytes }))
    }
    #expect(store.address(ofIdentity: identity) == nil)
    store.setIdentity(identity, of: address)
    // Otherwise one that was removed would come back as another one.
    store.change(address) { $0.forget() }
    #expect([store, restarted()].allSatisfy { $0.address(ofIdentity: identity) == address })
    store.setIdentity(identity, of: other)
    #expect([store, restarted()].allSatisfy { $0.address(ofIdentity: identity) == other })
    store.remove(other)
    #expect([store, restarted()].allSatisfy { $0.address(ofIdentity: identity) == nil })
  }

  private nonisolated static func heard(_ count: Int) -> Timestamp {
    Timestamp(milliseconds: Int64(count) * 11_000)
  }

  /// It is heard every 11 s, for ever.
  @Test("When a device was heard is stored at once the first time, then after ten minutes or before")
  func heardAgainIsStoredLater() async throws {
    let path = folder.path + "/state.db"
    let database = StateDatabase(path: path, pacing: Pacing(gather: .milliseconds(1), apart: .zero))
    let store = DeviceStore(database.section("devices"))
    @Sendable func stored() throws -> DeviceRecord? {
      DeviceRecord.records(try StateDatabase.sections(path: path)["devices"] ?? [:]).values.first
    }
    store.change(address) { $0.lastHeard = Self.heard(1) }
    try await eventually("the first time") { try stored()?.lastHeard == Self.heard(1) }
    for count in 2...9 { store.change(address) { $0.lastHeard = Self.heard(count) } }
    #expect(store.record(address).lastHeard == Self.heard(9))
    try await eventually("it waits for ten minutes") { await database.isPatient }
    #expect(try stored()?.lastHeard == Self.heard(1))
    store.change(address) { $0.counter = 1 }
    try await eventually("with the change") { try stored()?.lastHeard == Self.heard(9) }
    store.change(address) { $0.lastHeard = Self.heard(10) }
    store.change(address) { $0.lastHeard = nil }
    try await eventually("that it does not count any more") { try stored()?.lastHeard == nil }
    store.change(address) { $0.lastHeard = Self.heard(11) }
    try await eventually("the first time again") { try stored()?.lastHeard == Self.heard(11) }
    store.change(address) { $0.lastHeard = Self.heard(12) }
    await database.close()
    #expect(try stored()?.lastHeard == Self.heard(12))
  }
}

extension StateDatabase {
  /// Whether what waits is written in about ten minutes.
  fileprivate var isPatient: Bool { deadline.map { $0 > .now + .seconds(500) } ?? false }
}
