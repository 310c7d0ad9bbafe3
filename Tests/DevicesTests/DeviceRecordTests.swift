import Configuration
import GATT
import JSON
import Testing

@testable import Devices

@Suite struct DeviceRecordTests {
  let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  func read(_ text: String) -> DeviceRecord? {
    DeviceRecord(address: address, bytes: Array(text.utf8))
  }

  func full() throws -> DeviceRecord {
    var record = DeviceRecord(address: address)
    record.id = try DeviceID("kitchen")
    record.name = "BBC micro:bit [zugev]\u{1B}\n"
    record.offered = ["temperature", "period"]
    record.model = "BBC micro:bit V2"
    record.firmware = "2.0"
    record.serial = "88\u{7}17"
    record.requested.changes.id = try DeviceID("kitchen")
    record.requested.changes.name = "Küche"
    record.requested.changes.area = "Home"
    record.requested.changes.profile = "sensortag"
    record.requested.changes.properties = ["keys"]
    record.requested.changes.isEnabled = false
    record.requested.changes.gateway = GatewayID("attic")
    record.requested.changes.connect = .onDemand
    record.requested.changes.every = 900
    record.requested.isAdded = true
    record.requested.isRemoved = true
    record.requested.desired = [
      "period": DeviceRecord.Desired(value: 5000, source: .command),
      "another": DeviceRecord.Desired(value: ["x": -1, "y": .null], source: .request),
      "text": DeviceRecord.Desired(value: "off\u{1B}", source: .command),
    ]
    record.requested.waiting = [
      "period": DeviceRecord.Desired(value: 700, sender: ["transaction": "t"])
    ]
    (record.requested.isDeleted, record.revision, record.isPending) = (true, 7, true)
    record.bond = "02:00:5E:00:53:01"
    return record
  }

  @Test func writtenRecordIsReadBackUnchanged() throws {
    let empty = DeviceRecord(address: address)
    #expect(String(decoding: empty.bytes, as: UTF8.self) == "{}")
    #expect(DeviceRecord(address: address, bytes: empty.bytes) == empty)
    var record = try full()
    (record.hasPublicAddress, record.isTriggerOnly) = (true, false)
    #expect(DeviceRecord(address: address, bytes: record.bytes) == record)
  }

  @Test func recordIsStoredUnderTheseKeys() throws {
    var record = try full()
    record.name = "BBC"
    record.serial = nil
    record.requested.desired["text"] = nil
    let entry = ValueTable.Entry(
      written: "a b", isNumber: true, isConfirmed: false, unit: "°C", lastSeen: 3)
    record.valueTable = ["a_b": entry]
    #expect(
      String(decoding: record.bytes, as: UTF8.self)
        == #"{"id":"kitchen","name":"BBC","offered":["period","temperature"],"model":"BBC micro:bit V2","#
        + #""firmware":"2.0","changes":{"id":"kitchen","name":"Küche","area":"Home","profile":"sensortag","#
        + #""properties":"keys","enabled":false,"gateway":"attic","connect":"on_demand","every":900},"#
        + #""added":true,"removed":true,"#
        + #""desired":{"another":{"value":{"x":-1,"y":null},"source":"request"},"#
        + #""period":{"value":5000}},"waiting":{"period":{"value":700,"sender":{"transaction":"t"}}},"#
        + #""values":{"a_b":{"name":"a b","number":true,"confirmed":false,"unit":"°C","last_seen":3}},"#
        + #""bond":"02:00:5E:00:53:01","deleted":true,"revision":7,"pending":true}"#)
    #expect(DeviceRecord(address: address, bytes: record.bytes) == record)
  }

  /// Another gateway's `info`, or a broken disk, may have brought them there.
  @Test func valuesOutOfRangeAreLeftOut() {
    let entry = #"{"name":"x","last_seen":3}"#
    let record = read(
      #"{"values":{"+":\#(entry),"a/#":\#(entry),"a\u0000":\#(entry),"\#(String(repeating: "a", count: 33))":\#(entry),"#
        + #""a":{"name":"x","last_seen":-9223372036854775808},"b":{"name":"x","last_seen":9223372036854775807},"#
        + #""c":{"name":"\#(String(repeating: "x", count: 257))","last_seen":3},"ok":\#(entry)}}"#)
    #expect(record?.valueTable.keys.map(\.description) == ["ok"])
  }

  @Test func keysOfOtherVersionsAreIgnored() {
    let record = read(
      #"{"later":[{}],"added":true,"changes":{"colour":"red","name":"N"},"taken":{"period":[1]}}"#)
    #expect(record?.requested.isAdded == true)
    var changes = DeviceOptions()
    changes.name = "N"
    #expect(record?.requested.changes == changes)
  }

  /// Whether a value fits its property is checked later, when the device's profile is known.
  @Test func recordAcceptsAnyDesiredValue() throws {
    let text = #"{"name":"BBC","desired":{"another":{"value":-1},"period":{"value":7}}}"#
    let record = try #require(read(text))
    #expect(record.requested.desired["another"] == DeviceRecord.Desired(value: -1, source: .command))
    #expect(record.requested.desired["period"] == DeviceRecord.Desired(value: 7, source: .command))
    let address = address
    let stored = [address.description: Array(text.utf8), "C5": Array(text.utf8), "C5:A1:B2:C3:D4:E6": []]
    #expect(DeviceStore.records(stored) == [address: record])
  }

  @Test func deviceIsNamedByUserOrLink() throws {
    #expect(!DeviceRecord(address: address).isKnownByAddress)
    let command = read(#"{"desired":{"period":{"value":7}}}"#)
    #expect(command?.isKnownByAddress == false, "commands for groups are for all")
    for text in [#"{"id":"kitchen"}"#, #"{"added":true}"#, #"{"changes":{"name":"N"}}"#] {
      #expect(read(text)?.isKnownByAddress == true)
    }
  }

  @Test(arguments: [
    "", "{", "[]", "null", "7", #"{"id":7}"#, #"{"id":"a/b"}"#, #"{"id":"bridge"}"#, #"{"name":null}"#,
    #"{"changes":[]}"#, #"{"changes":{"connect":"often"}}"#, #"{"changes":{"every":0}}"#,
    #"{"changes":{"area":1}}"#, #"{"changes":{"enabled":1}}"#,
    #"{"changes":{"gateway":""}}"#, #"{"changes":{"name":""}}"#, #"{"added":1}"#, #"{"desired":5}"#,
    #"{"desired":{"period":"5"}}"#, #"{"desired":{"period":{"source":"request"}}}"#, #"{"removed":"yes"}"#,
    #"{"offered":"period"}"#, #"{"offered":["period",1]}"#, #"{"model":2}"#,
  ])
  func damagedRecordIsIgnored(text: String) {
    #expect(read(text) == nil)
  }
}
