import Configuration
import GATT
import Testing

@testable import Gateway

@Suite struct DeviceRecordTests {
  let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  func read(_ text: String) -> DeviceRecord? {
    DeviceRecord(identifier: address, bytes: Array(text.utf8))
  }

  func full() throws -> DeviceRecord {
    var record = DeviceRecord(identifier: address)
    record.id = try DeviceID("kitchen")
    record.name = "BBC micro:bit [zugev]\u{1B}\n"
    record.offered = ["temperature", "period"]
    record.model = "BBC micro:bit V2"
    record.firmware = "2.0"
    record.serial = "88\u{7}17"
    record.changes = DeviceOptions(
      id: try DeviceID("kitchen"), name: "Küche", area: "Home", period: 5000, isEnabled: false,
      gateway: GatewayID("attic"))
    record.isAdded = true
    record.isRemoved = true
    record.isForgotten = true
    record.wanted = ["period": 5000, "another": -1]
    record.take(Array("{\"value\":5000}\n".utf8), for: "period")
    record.announced = Announced(
      prefix: "homeassistant", components: [Announced.Component(key: "temperature", platform: .sensor)])
    return record
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    let empty = DeviceRecord(identifier: address)
    #expect(String(decoding: empty.bytes, as: UTF8.self) == "{}")
    #expect(DeviceRecord(identifier: address, bytes: empty.bytes) == empty)
    let record = try full()
    #expect(DeviceRecord(identifier: address, bytes: record.bytes) == record)
  }

  @Test func isStoredUnderTheseKeys() throws {
    var record = try full()
    record.name = "BBC"
    record.serial = nil
    record.take(Array("6000".utf8), for: "period")
    #expect(
      String(decoding: record.bytes, as: UTF8.self)
        == #"{"id":"kitchen","name":"BBC","offered":["period","temperature"],"model":"BBC micro:bit V2","#
        + #""firmware":"2.0","changes":{"id":"kitchen","name":"Küche","area":"Home","period":5000,"#
        + #""enabled":false,"gateway":"attic"},"added":true,"removed":true,"forgotten":true,"#
        + #""wanted":{"another":-1,"period":5000},"taken":{"period":[4396170612239258211,-5943944559041650797]},"#
        + #""announced":{"prefix":"homeassistant","components":{"temperature":"sensor"}}}"#)
  }

  @Test func theLastCommandsAreRememberedAndNoMore() throws {
    var record = DeviceRecord(identifier: address)
    for number in 1...100 { record.take(Array("\(number)".utf8), for: "period") }
    record.take(Array("13".utf8), for: "period")
    #expect(
      record.taken == ["period": ((38...100) + [13]).map { DeviceRecord.digest(Array("\($0)".utf8)) }])
    #expect(record.hasTaken(Array("13".utf8), for: "period"))
    #expect(!record.hasTaken(Array("12".utf8), for: "period"))
    #expect(!record.hasTaken(Array("13".utf8), for: "another"))
    #expect(!record.hasTaken([0xFF], for: "period"))
  }

  @Test func keysOfOtherVersionsArePassedOver() {
    let record = read(#"{"later":[{}],"added":true,"changes":{"colour":"red","period":7}}"#)
    #expect(record?.isAdded == true)
    #expect(record?.changes == DeviceOptions(period: 7))
  }

  /// The period's range has begun at 1 ms once.
  @Test(arguments: [1, 19])
  func whatCannotBeSetAnyMoreIsDropped(period: Int) throws {
    let text =
      #"{"name":"BBC","changes":{"name":"N","period":\#(period)},"wanted":{"another":-1,"period":7}}"#
    let address = address
    var record = try #require(read(text))
    #expect(record.dropUnsettable().keys.sorted() == ["period"])
    #expect(record.changes == DeviceOptions(name: "N"))
    #expect(record.wanted == ["another": -1])
    #expect(record.dropUnsettable() == [:])
    let stored = [address.description: Array(text.utf8)]
    #expect(Memory.records(stored) == [address: record])
  }

  @Test(arguments: [
    "", "{", "[]", "null", "7", #"{"id":7}"#, #"{"id":"a/b"}"#, #"{"id":"bridge"}"#, #"{"name":null}"#,
    #"{"changes":[]}"#, #"{"changes":{"period":0}}"#, #"{"changes":{"enabled":1}}"#,
    #"{"changes":{"gateway":""}}"#, #"{"changes":{"name":""}}"#, #"{"added":1}"#, #"{"wanted":5}"#,
    #"{"wanted":{"period":"5"}}"#, #"{"wanted":{"period":1.5}}"#, #"{"taken":{"period":5}}"#,
    #"{"taken":{"period":["1",5]}}"#, #"{"offered":"period"}"#, #"{"offered":["period",1]}"#, #"{"model":2}"#,
  ])
  func whatIsBrokenIsNoRecord(text: String) {
    #expect(read(text) == nil)
  }
}
