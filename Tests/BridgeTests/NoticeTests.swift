import Configuration
import GATT
import JSON
import Log
import Testing

@testable import Bridge
@testable import Devices

/// The `info` of a device, which anybody may have written.
@Suite struct NoticeTests {
  private static func read(_ text: String, isRetained: Bool = false) -> OwnershipMachine.Notice? {
    OwnershipMachine.Notice(
      Array(text.utf8), of: DeviceID(BridgeUnderTest.address), isRetained: isRetained
    ) { _ in .microbit }
  }

  private static func notice(_ members: String) throws -> OwnershipMachine.Notice {
    try #require(read(#"{"owner":"attic",\#(members)}"#))
  }

  @Test func whatTopicsAreMadeOfIsChecked() throws {
    let long = String(repeating: "a", count: 65)
    let notice = try Self.notice(
      ##""properties":["temperature","+","a/#","","a/b","\u0000","values/a","values/+","\##(long)",7],"##
        + ##""values":{"+":{"name":"x"},"a/#":{"name":"x"},"\u0000":{"name":"x"},"":{"name":"x"},"##
        + ##""a":{"name":"A","type":"number"},"b":{"name":"\##(String(repeating: "x", count: 257))"},"c":{}}"##
    )
    #expect(Set(notice.properties.map(\.description)) == ["temperature", "values/a"])
    #expect(notice.handover.valueTable.keys.map(\.description) == ["a"])
    #expect(notice.handover.valueTable.values.first?.isNumber == true)
    let door = try Self.notice(#""values":{"door":{"name":"Door","type":"boolean"}}"#)
    #expect(door.handover.valueTable.values.first?.isBool == true)
  }

  @Test(
    arguments: [
      ("-61", -61), ("127", 127), ("-128", -128), ("128", nil), ("-129", nil), ("9223372036854775807", nil),
      ("-9223372036854775808", nil), ("1.5", nil), (#""-61""#, nil), ("1e400", nil),
    ] as [(String, Int8?)])
  func strengthIsOneByte(text: String, rssi: Int8?) throws {
    #expect(Self.read(#"{"owner":"attic","rssi":\#(text)}"#)?.rssi == rssi)
  }

  @Test func numbersAndTimesOutOfRangeAreLeftOut() throws {
    for revision in ["-1", "9223372036854775807", "1.5"] {
      #expect(try Self.notice(#""revision":\#(revision)"#).handover.revision == 0)
    }
    #expect(try Self.notice(#""revision":1764115321000"#).handover.revision == 1_764_115_321_000)
    let time = "2026-11-22T10:30:15.250Z"
    #expect(try Self.notice(#""last_connected":"\#(time)""#).liveSince?.description == time)
    for time in [
      "", "z", "2026-99-22T10:30:15.250Z", "2026-11-22T10:30:15Z", "2026-11-22T10:30:15.250Z0",
      "+026-11-22T10:30:15.250Z",
    ] {
      #expect(try Self.notice(#""last_connected":"\#(time)""#).liveSince == nil)
    }
    #expect(try Self.notice(#""area":"\#(String(repeating: "x", count: 257))""#).area == nil)
  }

  /// The clock of another gateway may be wrong by years: what arrives now was told now.
  @Test(arguments: ["2020-01-01T00:00:00.000Z", "2040-01-01T00:00:00.000Z"])
  func whenADeviceWasHeardIsToldByTheClockHere(time: String) throws {
    let (told, before) = (try #require(Timestamp(time)), Timestamp.now)
    let text = #"{"owner":"attic","last_heard":"\#(time)"}"#
    let (live, retained) = (try #require(Self.read(text)), Self.read(text, isRetained: true))
    #expect(live.lastHeard == told && retained?.lastHeard == told)
    #expect(try #require(live.heardSince) >= before)
    #expect(try #require(retained?.heardSince) <= Timestamp.now)
    #expect((retained?.heardSince == told) == (told < before))
    #expect(try Self.notice(#""rssi":-60"#).heardSince == nil)
  }

  @Test func numbersOfNamesAreBounded() throws {
    let names = (0..<2000).map { #""p\#($0)""# }.joined(separator: ",")
    let values = (0..<500).map { #""v\#($0)":{"name":"v\#($0)"}"# }.joined(separator: ",")
    let notice = try Self.notice(#""properties":[\#(names)],"values":{\#(values)}"#)
    #expect(notice.properties.count == Set<PropertyName>.most)
    #expect(notice.handover.valueTable.count == ValueTable.capacity)
    var known = notice.properties
    known.add(Set(names: (0..<100).map { "q\($0)" }))
    #expect(known == notice.properties, "no room")
  }

  @Test func unitsOfValuesAreThoseThatAProgramWrites() throws {
    let notice = try Self.notice(
      #""values":{"t":{"name":"t","unit":"°C"},"a":{"name":"a","unit":"x"},"b":{"name":"b","unit":7}}"#)
    let units = notice.handover.valueTable.map { "\($0.key) \($0.value.unit ?? "-")" }
    #expect(units.sorted() == ["a -", "b -", "t °C"])
  }

  @Test func longInfoIsNotRead() {
    let info = #"{"owner":"attic","area":"x"}"#
    let padding = String(repeating: " ", count: TopicMap.longestPayload - info.utf8.count)
    #expect(Self.read(info + padding) != nil)
    #expect(Self.read(info + padding + " ") == nil)
  }
}
