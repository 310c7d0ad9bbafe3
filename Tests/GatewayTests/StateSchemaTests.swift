import Configuration
import EventLoop
import Store
import TestSupport
import Testing

@testable import Gateway

@Suite struct StateSchemaTests {
  private static let address = "C5:A1:B2:C3:D4:E5"

  private func migrated(_ old: [String: String]) -> (records: [String: String], dropped: Int) {
    let (records, dropped) = StateSchema0.migrated(old.mapValues { Array($0.utf8) })
    return (records.mapValues { String(decoding: $0, as: UTF8.self) }, dropped)
  }

  /// The records that one device's old record is migrated to.
  private func device(_ old: String) -> [String: String] { migrated([Self.address: old]).records }

  @Test func fullRecordIsSplitBySection() {
    let old =
      #"{"id":"kitchen","name":"BBC \u001b","offered":["period","temperature"],"model":"BBC micro:bit V2","#
      + #""firmware":"2.0","serial":"8817","changes":{"id":"kitchen","name":"Küche","area":"Home","period":5000,"#
      + #""enabled":false,"gateway":"attic"},"added":true,"removed":true,"forgotten":true,"#
      + #""wanted":{"another":-1,"period":5000},"taken":{"period":[4396170612239258211]},"#
      + #""announced":{"prefix":"homeassistant","components":{"temperature":"sensor"}}}"#
    #expect(
      device(old) == [
        "devices/C5:A1:B2:C3:D4:E5":
          #"{"id":"kitchen","name":"BBC \u001b","offered":["period","temperature"],"model":"BBC micro:bit V2","#
          + #""firmware":"2.0","serial":"8817","changes":{"id":"kitchen","name":"Küche","area":"Home","#
          + #""enabled":false,"gateway":"attic"},"added":true,"removed":true,"#
          + #""desired":{"another":{"value":-1},"period":{"value":5000,"source":"request"}}}"#,
        "home_assistant/C5:A1:B2:C3:D4:E5":
          #"{"announced":{"prefix":"homeassistant","components":{"temperature":"sensor"}},"forgotten":true}"#,
      ])
  }

  /// `changes` and `wanted` of an old record, and `desired` of the new one.
  @Test(arguments: [
    (
      #"{"changes":{"period":70},"wanted":{"period":70}}"#,
      #"{"desired":{"period":{"value":70,"source":"request"}}}"#
    ),
    (#"{"changes":{"period":70}}"#, #"{"desired":{"period":{"value":70,"source":"request"}}}"#),
    (#"{"changes":{"period":70},"wanted":{"period":80}}"#, #"{"desired":{"period":{"value":80}}}"#),
    (#"{"wanted":{"period":80}}"#, #"{"desired":{"period":{"value":80}}}"#),
    (
      #"{"changes":{"period":70},"wanted":{"other":70}}"#,
      #"{"desired":{"other":{"value":70},"period":{"value":70,"source":"request"}}}"#
    ),
    (#"{"name":"BBC","changes":{},"wanted":{}}"#, #"{"name":"BBC"}"#),
    (#"{"changes":{"name":"N"}}"#, #"{"changes":{"name":"N"}}"#),
  ])
  func desiredValueGetsItsSource(old: String, new: String) {
    #expect(device(old) == ["devices/C5:A1:B2:C3:D4:E5": new])
  }

  @Test func emptyRecordsAreNotMigrated() {
    #expect(device("{}").isEmpty)
    #expect(device(#"{"taken":{"period":[1]},"forgotten":false}"#).isEmpty)
    #expect(device(#"{"forgotten":true}"#) == ["home_assistant/C5:A1:B2:C3:D4:E5": #"{"forgotten":true}"#])
    #expect(migrated([Self.address: "{}"]).dropped == 0)
  }

  @Test func gatewayAndRemovalRecordsAreMoved() {
    let announced = #"{"prefix":"homeassistant","components":{"temperature":"sensor"}}"#
    let topic = "homeassistant/device/microbit_gateway_kitchen/config"
    let (records, dropped) = migrated(["gateway": announced, topic: announced])
    #expect(
      records == [
        "home_assistant/gateway": #"{"announced":\#(announced)}"#,
        "home_assistant/removal/\(topic)": announced,
      ])
    #expect(dropped == 0)
  }

  @Test(arguments: [
    (address, ""), (address, "["), (address, "[]"), (address, "7"), (address, #"{"changes":[]}"#),
    (address, #"{"wanted":5}"#), (address, #"{"wanted":{"period":"5"}}"#),
    (address, #"{"wanted":{"period":1.5}}"#), (address, #"{"changes":{"period":null}}"#), ("gateway", "null"),
    ("unknown", "{}"),
    ("homeassistant/device/x/config", #"{"prefix":"other"}"#),
    ("homeassistant/device/x", #"{"prefix":"homeassistant"}"#),
  ])
  func unreadableRecordsAreDroppedAndCounted(key: String, value: String) {
    let (records, dropped) = migrated([key: value, "D0:5A:00:00:C0:DE": #"{"name":"BBC"}"#])
    #expect(records == ["devices/D0:5A:00:00:C0:DE": #"{"name":"BBC"}"#])
    #expect(dropped == 1)
  }

  @Test func announcementsUnderOldNamesAreRemoved() throws {
    let announced = #"{"prefix":"ha","components":{"temperature":"sensor"}}"#
    let old = [
      "devices/C5:A1:B2:C3:D4:E5": #"{"forgotten":true}"#,
      "home_assistant/C5:A1:B2:C3:D4:E5": #"{"announced":\#(announced)}"#,
      "home_assistant/D0:5A:00:00:C0:DE": #"{"forgotten":true}"#,
      "home_assistant/gateway": #"{"announced":\#(announced)}"#,
      "home_assistant/removal/ha/device/microbit_000000000001/config": announced,
      "home_assistant/00:00:00:00:00:02": "unreadable",
    ]
    let gateway = try #require(GatewayID("attic"))
    let new = StateSchema1.migrated(old.mapValues { Array($0.utf8) }, gateway: gateway)
    #expect(
      new.mapValues { String(decoding: $0, as: UTF8.self) } == [
        "devices/C5:A1:B2:C3:D4:E5": #"{"forgotten":true}"#,
        "home_assistant/D0:5A:00:00:C0:DE": #"{"deleted":true}"#,
        "home_assistant/removal/ha/device/microbit_000000000001/config": announced,
        "home_assistant/removal/ha/device/microbit_c5a1b2c3d4e5/config": announced,
        "home_assistant/removal/ha/device/microbit_gateway_attic/config": announced,
      ])
  }

  @Test func aWholeDatabaseIsMigrated() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let topic = "homeassistant/device/microbit_gateway_kitchen/config"
    let announced = #"{"prefix":"homeassistant","components":{"temperature":"sensor"}}"#
    let old = [
      Self.address:
        #"{"name":"BBC","changes":{"period":5000},"wanted":{"period":5000},"taken":{"period":[1]}}"#,
      "gateway": announced, topic: announced, "unreadable": "",
    ]
    let store = StateStore.open(path: path).store
    for (key, value) in old { store.put(key, Array(value.utf8)) }
    #expect(store.close(within: patience) == 0)

    let gateway = try #require(GatewayID("attic"))
    let database = StateDatabase(path: path, schema: .gateway(gateway), loop: EventLoop())
    #expect(database.trouble == nil)
    #expect(
      texts(database.section("devices")) == [
        Self.address: #"{"name":"BBC","desired":{"period":{"value":5000,"source":"request"}}}"#
      ])
    #expect(
      texts(database.section("home_assistant")) == [
        "removal/homeassistant/device/microbit_gateway_attic/config": announced,
        "removal/\(topic)": announced,
      ])
    #expect(texts(database.section("commands")) == [:])
    database.close()
    let copy = try StateStore.records(path: path + ".schema-0")
    #expect(copy.mapValues { String(decoding: $0, as: UTF8.self) } == old)
  }

  private func texts(_ section: StateSection) -> [String: String] {
    section.records.mapValues { String(decoding: $0, as: UTF8.self) }
  }
}
