import Configuration
import EventLoop
import GATT
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
      DeviceRecord.records(try StateDatabase.sections(path: path)["devices"] ?? [:]).first
    }
    store.change(address) { $0.counter = 1 }
    try await eventually("the first change") { try stored()?.counter == 1 }
    store.change(address) { $0.counter = 2 }
    store.flush()
    store.change(address) { $0.isAdded = true }
    try await eventually("what was requested") { try stored()?.isAdded == true }
    await database.close(within: patience)
  }
}
