import EventLoop
import GATT
import Store
import TestSupport
import Testing

@testable import HomeAssistant

@Suite struct DiscoveryStoreTests {
  private let kitchen = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  private let hall = BluetoothAddress(truncating: 1)
  private let announced = Announced(
    prefix: "homeassistant", components: [Announced.Component(key: "temperature", platform: .sensor)])
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func database() -> StateDatabase {
    StateDatabase(
      path: folder.path + "/state.db", loop: EventLoop())
  }

  /// What is stored after `body`, as text.
  private func stored(after body: (DiscoveryStore) -> Void) -> [String: String] {
    let before = database()
    body(DiscoveryStore(before.section("home_assistant")))
    before.close()
    let after = database()
    defer { after.close() }
    return after.section("home_assistant").records.mapValues { String(decoding: $0, as: UTF8.self) }
  }

  private func reopened() -> DiscoveryStore { DiscoveryStore(database().section("home_assistant")) }

  @Test func recordsAreStoredUnderTheseKeys() {
    let removal = Removal(object: "ble_000000000002", announced)
    let stored = stored { store in
      store[kitchen] = DiscoveryStore.Record(announced: announced)
      store[hall] = DiscoveryStore.Record(announced: announced, isDeleted: true)
      store.setGateway(announced)
      store.add(removal)
    }
    let text = #"{"prefix":"homeassistant","components":{"temperature":"sensor"}}"#
    #expect(
      stored == [
        "C5:A1:B2:C3:D4:E5": #"{"announced":\#(text)}"#,
        "00:00:00:00:00:01": #"{"announced":\#(text),"deleted":true}"#,
        "gateway": #"{"announced":\#(text)}"#,
        "removal/homeassistant/device/ble_000000000002/config": text,
      ])
    let store = reopened()
    #expect(store[kitchen] == DiscoveryStore.Record(announced: announced))
    #expect(store[hall] == DiscoveryStore.Record(announced: announced, isDeleted: true))
    #expect(store.announcedGateway == announced)
    #expect(store.removals == [removal.topic.string: removal])
  }

  @Test func emptyRecordsAreNotStored() {
    let removal = Removal(object: "ble_000000000002", announced)
    let stored = stored { store in
      store[kitchen] = DiscoveryStore.Record(announced: announced)
      store[kitchen] = DiscoveryStore.Record()
      store[hall].isDeleted = true
      store[hall].isDeleted = false
      store.setGateway(announced)
      store.setGateway(nil)
      store.add(removal)
      store.discardRemoval(removal.topic.string)
      store.discardRemoval("nothing")
    }
    #expect(stored == [:])
  }

  @Test func damagedRecordsAreSkipped() {
    let before = database()
    let section = before.section("home_assistant")
    for (key, text) in [
      ("C5:A1:B2:C3:D4:E5", #"{"announced":7,"deleted":1}"#), ("gateway", "[]"), ("nobody", "{}"),
      ("00:00:00:00:00:01", "{"), ("removal/a", #"{"prefix":"a","components":{}}"#), ("removal/b", "7"),
    ] { section.put(key, Array(text.utf8)) }
    before.close()
    let store = reopened()
    #expect(store[kitchen] == DiscoveryStore.Record() && store[hall] == DiscoveryStore.Record())
    #expect(store.announcedGateway == nil && store.removals == [:])
  }

  @Test func listsDevicesAnnouncedUnderAnotherPrefix() {
    let store = reopened()
    store[kitchen] = DiscoveryStore.Record(announced: announced)
    store[hall] = DiscoveryStore.Record(announced: Announced(prefix: "ha", components: []))
    #expect(store.announced(notUnder: "homeassistant") == [hall])
    #expect(store.announced(notUnder: "ha") == [kitchen])
    #expect(Set(store.announced(notUnder: nil)) == [kitchen, hall])
  }

  @Test func listsTheDevicesThatUsersDeleted() {
    let records = [
      "C5:A1:B2:C3:D4:E5": "{}", "00:00:00:00:00:01": #"{"deleted":true}"#, "gateway": #"{"deleted":true}"#,
      "00:00:00:00:00:02": "{", "00:00:00:00:00:03": #"{"deleted":1}"#,
    ]
    let deleted = HomeAssistantDiscovery.deletedDevices(records.mapValues { Array($0.utf8) })
    #expect(deleted == [hall])
  }

  @Test func numberOfRemovalsIsLimited() {
    let store = reopened()
    for number in 0..<2000 { store.add(Removal(object: "ble_\(number)", announced)) }
    #expect(store.removals.count == DiscoveryStore.mostRemovals)
    // A removal of the same topic is replaced.
    let other = Announced(
      prefix: "homeassistant", components: [Announced.Component(key: "period", platform: .number)])
    store.add(Removal(object: "ble_0", other))
    #expect(store.removals["homeassistant/device/ble_0/config"]?.announced == other)
  }
}
