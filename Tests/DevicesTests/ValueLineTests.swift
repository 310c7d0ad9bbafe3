import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

@Suite struct ValueLineTests {
  @Test(
    arguments: [
      ("moisture:42", "moisture", "moisture", .integer(42)), ("t:-3.5", "t", "t", .number(-3.5)),
      ("Soil Moisture:7", "Soil Moisture", "soil_moisture", .integer(7)),
      (" temp_C : 21 ", "temp_C", "temp_c", .integer(21)),
      ("humidity_%:50", "humidity_%", "humidity", .integer(50)), ("+/#a:1", "+/#a", "a", .integer(1)),
      ("tiny:1e-7", "tiny", "tiny", .number(1e-7)), ("huge:1.5e+21", "huge", "huge", .number(1.5e21)),
      ("a:Infinity", "a", "a", .number(.infinity)), ("a:-Infinity", "a", "a", .number(-.infinity)),
      ("a:007", "a", "a", .integer(7)), ("door:open", "door", "door", .text("open")),
      ("a:0x1A", "a", "a", .text("0x1A")), ("a:1.", "a", "a", .text("1.")), ("a:.5", "a", "a", .text(".5")),
      ("a:inf", "a", "a", .text("inf")), ("a:1,5", "a", "a", .text("1,5")), ("a:--1", "a", "a", .text("--1")),
      ("größe:1", "größe", "gr_e", .integer(1)),
      // A V1 drops what is beyond 20 bytes, and the next line follows: once, twice, and in the middle of a name.
      ("soil_moisture_1:123.light:45", "light", "light", .integer(45)),
      ("soil_moisture_1:123.soil_moisture_1:124.light:45", "light", "light", .integer(45)),
    ] as [(String, String, String, Value)])
  func valueIsFound(text: String, name: String, key: String, value: Value) throws {
    let line = try #require(ValueLine(text))
    #expect(line.name == name && line.key.description == key && line.value == value)
  }

  @Test(arguments: [
    "", ":", "a", "hello", ":5", "a:", "  :5", "🌡🌡:5", "+/#:5", "time:12:30", "Note: all is well",
    "the answer:is no number", "http://example.org", "a:" + String(repeating: "x", count: 256),
    String(repeating: "n", count: 33) + ":1", String(repeating: "n", count: 300) + ":1",
  ])
  func otherLinesAreNoValues(text: String) {
    // An address is a text.
    #expect(ValueLine(text) == nil || text.hasPrefix("http"))
  }

  @Test func notANumberIsANumber() throws {
    guard case .number(let number) = try #require(ValueLine("a:NaN")).value else {
      throw Failure("no number")
    }
    #expect(number.isNaN)
  }

  @Test(
    arguments: [
      ("temp_C", "Temp", "°C", "temperature"), ("soil_moisture", "Soil moisture", nil, nil),
      ("pressure_hPa", "Pressure", "hPa", "pressure"), ("humidity_%", "Humidity", "%", "humidity"),
      ("water_%", "Water", "%", nil), ("temperature", "Temperature", "°C", "temperature"),
      ("Humidity", "Humidity", "%", "humidity"), ("light", "Light", nil, nil),
      ("sound_level", "Sound level", nil, nil),
      // Not the ampere, nor a unit alone.
      ("motor_A", "Motor A", nil, nil), ("C", "C", nil, nil), ("_C", "C", nil, nil),
      ("temperature_F", "Temperature", "°F", "temperature"),
    ] as [(String, String, String?, String?)])
  func meaningIsThatOfTheName(written: String, name: String, unit: String?, deviceClass: String?) {
    let meaning = ValueMeaning(written)
    #expect(meaning.name == name && meaning.unit == unit && meaning.deviceClass == deviceClass)
  }
}

@Suite struct ValueTableTests {
  private let start = Moment.now

  private func receive(
    _ table: inout ValueTable, _ line: String, after seconds: Int = 0, today: Int = 1
  ) throws -> ValueTable.Sighting {
    table.receive(try #require(ValueLine(line)), at: start + .seconds(seconds), today: today)
  }

  @Test func valueIsConfirmedWhenItIsReceivedAgain() throws {
    var table = ValueTable()
    #expect(try receive(&table, "a:1") == .accepted)
    #expect(table.entries["a"]?.isConfirmed == false && table.entries["a"]?.isNumber == true)
    #expect(try receive(&table, "a:2", today: 5) == .accepted)
    let entry = ValueTable.Entry(written: "a", isNumber: true, isConfirmed: true, lastSeen: 5)
    #expect(table.entries == ["a": entry])
    // It stays a number.
    #expect(try receive(&table, "a:text", today: 5) == .accepted)
    #expect(table.entries == ["a": entry])
    #expect(try receive(&table, "b:1") == .accepted && receive(&table, "b:text") == .accepted)
    #expect(table.entries["b"]?.isNumber == false)
  }

  @Test func ofTwoNamesWithOneKeyTheFirstCountsOnALink() throws {
    var table = ValueTable()
    #expect(try receive(&table, "a b:1") == .accepted)
    #expect(try receive(&table, "A_B:1") == .sameKey(as: "a b"))
    table.linkUp()
    #expect(try receive(&table, "A_B:1") == .accepted)
    #expect(table.entries["a_b"]?.written == "A_B")
  }

  @Test func everNewNamesDoNotGrowIt() throws {
    var table = ValueTable()
    #expect(try receive(&table, "known:1") == .accepted && receive(&table, "known:1") == .accepted)
    var accepted = 0
    for second in 0..<600 {
      for number in 0..<10 where try receive(&table, "n\(second)_\(number):1", after: second) == .accepted {
        accepted += 1
      }
    }
    #expect(accepted <= 11 * ValueTable.capacity)
    #expect(table.entries.count == ValueTable.capacity && table.entries["known"] != nil)
    // Those that are confirmed keep their places.
    for name in Array(table.entries.keys) { _ = try receive(&table, "\(name):1", after: 600) }
    #expect(try receive(&table, "other:1", after: 700) == .tooMany)
    #expect(table.remove("known") && !table.remove("known"))
    #expect(try receive(&table, "other:1", after: 700) == .accepted)
  }

  @Test func valueIsRemovedAfterThirtyDays() throws {
    var table = ValueTable()
    _ = try receive(&table, "a:1", today: 100)
    _ = try receive(&table, "b:1", today: 101)
    table.removeUnseen(today: 130)
    #expect(table.entries.count == 2)
    table.removeUnseen(today: 131)
    #expect(Array(table.entries.keys) == ["b"])
    // A clock that is late.
    table.removeUnseen(today: 0)
    #expect(table.entries.count == 1)
  }
}
