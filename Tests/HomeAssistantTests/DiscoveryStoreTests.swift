import EventLoop
import GATT
import Store
import TestSupport
import Testing

@testable import HomeAssistant

@LoopActor @Suite struct DiscoveryStoreTests {
  private let kitchen = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  private let hall = BluetoothAddress(truncating: 1)
  private let announced = Announced(
    prefix: "homeassistant", components: [Announced.Component(key: "temperature", platform: .sensor)])
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func database() -> StateDatabase {
    StateDatabase(
      path: folder.path + "/state.db")
  }

  /// What is stored after `body`, as text.
  private func stored(after body: (DiscoveryStore) -> Void) async -> [String: String] {
    let before = database()
    body(DiscoveryStore(before.section("home_assistant")))
    await before.close(within: patience)
    let after = database()
    await after.close(within: patience)
    return after.section("home_assistant").takeRecords().mapValues { String(decoding: $0, as: UTF8.self) }
  }

  private func reopened() -> DiscoveryStore { DiscoveryStore(database().section("home_assistant")) }

  @Test func recordsAreStoredUnderTheseKeys() async {
    let removal = Removal(object: "ble_000000000002", announced: announced)
    let stored = await stored { store in
      store[.device(kitchen)] = announced
      store[.gateway] = announced
      store.add(removal)
    }
    let text = #"{"prefix":"homeassistant","components":{"temperature":"sensor"}}"#
    #expect(
      stored == [
        "C5:A1:B2:C3:D4:E5": #"{"announced":\#(text)}"#,
        "gateway": #"{"announced":\#(text)}"#,
        "removal/homeassistant/device/ble_000000000002/config": text,
      ])
    let store = reopened()
    #expect(store[.device(kitchen)] == announced)
    #expect(store[.gateway] == announced)
    #expect(store.removals == [removal.topic.string: removal])
  }

  @Test func emptyRecordsAreNotStored() async {
    let removal = Removal(object: "ble_000000000002", announced: announced)
    let stored = await stored { store in
      store[.device(kitchen)] = announced
      store[.device(kitchen)] = nil
      store[.gateway] = announced
      store[.gateway] = nil
      store.add(removal)
      store.discardRemoval(removal.topic.string)
      store.discardRemoval("nothing")
    }
    #expect(stored == [:])
  }

  @Test func damagedRecordsAreSkipped() async {
    let before = database()
    let section = before.section("home_assistant")
    for (key, text) in [
      ("C5:A1:B2:C3:D4:E5", #"{"announced":7}"#), ("gateway", "[]"), ("nobody", "{}"),
      ("00:00:00:00:00:01", "{"), ("removal/a", #"{"prefix":"a","components":{}}"#), ("removal/b", "7"),
    ] { section.put(key, Array(text.utf8)) }
    await before.close(within: patience)
    let store = reopened()
    #expect(store[.device(kitchen)] == nil && store[.device(hall)] == nil)
    #expect(store[.gateway] == nil && store.removals == [:])
  }

  @Test func listsDevicesAnnouncedUnderAnotherPrefix() {
    let store = reopened()
    store[.device(kitchen)] = announced
    store[.device(hall)] = Announced(prefix: "ha", components: [])
    #expect(store.announced(notUnder: "homeassistant") == [.device(hall)])
    #expect(store.announced(notUnder: "ha") == [.device(kitchen)])
    #expect(Set(store.announced(notUnder: nil)) == [.device(kitchen), .device(hall)])
  }

  @Test func numberOfRemovalsIsLimited() {
    let store = reopened()
    let added = (0..<2000).map { store.add(Removal(object: "ble_\($0)", announced: announced)) }
    #expect(added.count { $0 } == DiscoveryStore.mostRemovals && added.last == false)
    #expect(store.removals.count == DiscoveryStore.mostRemovals)
    // A removal of the same topic is replaced.
    let other = Announced(
      prefix: "homeassistant", components: [Announced.Component(key: "period", platform: .number)])
    store.add(Removal(object: "ble_0", announced: other))
    #expect(store.removals["homeassistant/device/ble_0/config"]?.announced == other)
  }
}
