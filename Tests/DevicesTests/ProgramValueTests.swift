import EventLoop
import GATT
import JSON
import TestSupport
import Testing

@testable import Configuration
@testable import Devices

@Suite struct ProgramValueTests {
  private static func values(_ text: String) -> [ProgramValue] {
    ProgramValue.values(in: Array(text.utf8)).values
  }

  private static func json(_ values: [ProgramValue]) -> [String: JSONValue] {
    Dictionary(values.map { ($0.name.key.description, Codec.utf8.json($0.value)) }) { $1 }
  }

  private static func members(_ text: String) throws -> [String: JSONValue] {
    guard case .object(let object) = try JSONParser.parse(Array(text.utf8)) else {
      throw Failure("no object")
    }
    return Dictionary(object.members.map { ($0.name, $0.value) }) { $1 }
  }

  @Test(arguments: FieldLine.all)
  func linesOfTheFieldHold(line: FieldLine) throws {
    var (assembler, now) = (FrameAssembler(delimiter: "\n"), Moment.now)
    let expected = try Self.members(line.values)
    for _ in 1...3 {
      var frames: [FrameAssembler.Frame] = []
      for (number, notification) in line.notifications.enumerated() {
        frames += assembler.append(notification, at: now)
        now = now + .milliseconds(number + 1 < line.notifications.count ? 100 : 1100)
        while let deadline = assembler.deadline, deadline <= now { frames += assembler.end(at: deadline) }
      }
      let texts = frames.filter { String(validating: $0.bytes, as: UTF8.self) != nil && !$0.isCut }
      #expect(Self.json(texts.flatMap { ProgramValue.values(in: $0.bytes).values }) == expected)
    }
  }

  /// Escaped in JSON, they are none of the message.
  @Test(arguments: [#"\u001b[2J"#, #"\u009b2J"#, #"a\nb"#])
  func aTextWithControlCharactersIsNoValue(text: String) {
    let message = ProgramValue.values(in: Array(#"{"a":"\#(text)","b":1}"#.utf8))
    #expect(message.values.map(\.name.written) == ["b"] && !message.isWhole)
  }

  @Test func linesOfTheFieldAreRead() { #expect(FieldLine.all.count > 50) }

  @Test(
    arguments: [
      ("moisture:42", "moisture", .integer(42), nil), ("t:-3.5", "t", .number(-3.5), nil),
      ("Soil Moisture:7", "soil_moisture", .integer(7), nil), (" temp_C : 21 ", "temp", .integer(21), nil),
      ("humidity_%:50", "humidity", .integer(50), nil), ("tiny:1e-7", "tiny", .number(1e-7), nil),
      ("huge:1.5e+21", "huge", .number(1.5e21), nil), ("a:Infinity", "a", .number(.infinity), nil),
      ("a:-Infinity", "a", .number(-.infinity), nil), ("a:007", "a", .integer(7), nil),
      ("a:+5", "a", .integer(5), nil), ("a:5.", "a", .number(5), nil), ("a:-.5", "a", .number(-0.5), nil),
      ("door:open", "door", .text("open"), nil), ("a:0x1A", "a", .text("0x1A"), nil),
      ("a:.", "a", .text("."), nil), ("a:inf", "a", .text("inf"), nil), ("a:--1", "a", .text("--1"), nil),
      ("a:1,5", "a", .text("1,5"), nil), ("größe:1", "groesse", .integer(1), nil),
      ("note:two words", "note", .text("two words"), nil), ("t:21C", "t", .integer(21), "°C"),
      ("t:70 °F", "t", .integer(70), "°F"), ("온도:21.5℃", "온도", .number(21.5), "°C"),
      ("d:12cm", "d", .integer(12), "cm"), ("d:12 miles", "d", .integer(12), nil),
      ("Pressure: 101325 Pa", "pressure", .integer(101325), "Pa"),
      ("light:120 lux", "light", .integer(120), "lx"),
      ("Temp: 21.5 *C", "temp", .number(21.5), "°C"), ("wind:3.4 m/s", "wind", .number(3.4), "m/s"),
      ("Wind speed: 5 mph", "wind_speed", .integer(5), nil), ("rssi:-70dBm", "rssi", .integer(-70), "dBm"),
      ("room:5a", "room", .text("5a"), nil), ("class:5A", "class", .text("5A"), nil),
      ("uid:93E51202", "uid", .text("93E51202"), nil), ("uid:04e30512", "uid", .text("04e30512"), nil),
      ("tiny:1e-7", "tiny", .number(1e-7), nil), ("huge:1.5e+21", "huge", .number(1.5e21), nil),
      ("i:5 A", "i", .integer(5), "A"), ("room:5 North wing", "room", .text("5 North wing"), nil),
      ("pin 0:512", "pin_0", .integer(512), nil), ("Temp 1:23.5", "temp_1", .number(23.5), nil),
      ("plant 1:3", "plant_1", .integer(3), nil), ("Lab 2: 25", "lab_2", .integer(25), nil),
      ("Lab 2=25", "lab_2", .integer(25), nil), ("Lab 2:25 C", "lab_2", .integer(25), "°C"),
      ("pot 25:30", "pot_25", .integer(30), nil), ("Lab 2:60", "lab_2", .integer(60), nil),
      ("Soil Moisture::512", "soil_moisture", .integer(512), nil), ("t: :21", "t", .integer(21), nil),
      ("t=:21", "t", .integer(21), nil), ("Temp = :21", "temp", .integer(21), nil),
      ("temp:21c", "temp", .integer(21), "°C"), ("Temp: -5c", "temp", .integer(-5), "°C"),
      ("Temp: 70.5f", "temp", .number(70.5), "°F"), ("Temp: 5 c", "temp", .integer(5), "°C"),
      ("Temp: 21° C", "temp", .integer(21), "°C"), ("Temp: 21 ° F", "temp", .integer(21), "°F"),
      ("Heading: 90°", "heading", .integer(90), "°"), ("class:5c", "class", .text("5c"), nil),
      ("room:12c", "room", .text("12c"), nil), ("color:00f", "color", .text("00f"), nil),
      ("temp:9c", "temp", .integer(9), "°C"), ("t:5f", "t", .integer(5), "°F"),
      ("class: 5 c", "class", .integer(5), nil), ("Temp: 21°c", "temp", .integer(21), "°C"),
      ("temp:=21", "temp", .integer(21), nil),
      ("Lab 2:25", "lab_2", .integer(25), nil), ("soil 1:45", "soil_1", .integer(45), nil),

      ("Ｔｅｍｐ:1", "temp", .integer(1), nil), ("العربية:3", "العربية", .integer(3), nil),
      ("อุณหภูมิ:3", "อุณหภูมิ", .integer(3), nil), ("đường:1", "duong", .integer(1), nil),
    ] as [(String, String, Value, String?)])
  func valueIsFound(text: String, key: String, value: Value, unit: String?) throws {
    let values = Self.values(text)
    #expect(values.count == 1)
    let found = try #require(values.first)
    #expect(found.name.key.description == key && found.value == value && found.unit == unit)
    #expect(ProgramValue.values(in: Array(text.utf8)).isOnlyValues)
  }

  @Test(
    arguments: [
      ("t: 24, h: 55", #"{"t":24,"h":55}"#), ("t=24|h=55", #"{"t":24,"h":55}"#),
      ("t:24\th:55;", #"{"t":24,"h":55}"#), ("t:24 C;h:55%", #"{"t":24,"h":55}"#),
      ("t:1  h:2", #"{"t":1,"h":2}"#), ("t: 24 h: 55", #"{"t":24,"h":55}"#),
      ("x: 1 y: -2 z= 3", #"{"x":1,"y":-2,"z":3}"#),
      ("Temp: 23 C Hum: 45 %", #"{"temp":23,"hum":45}"#), ("a: 1 ° C b: 2", #"{"a":1,"b":2}"#),
      ("T 1:21, T 2:9", #"{"t_1":21,"t_2":9}"#),
      ("temp:9c hum:45%", #"{"temp":9,"hum":45}"#),
      ("x::1 y::2", #"{"x":1,"y":2}"#), (#"{"player 2":25}"#, #"{"player_2":25}"#),
      ("T:21C;L:120 lux", #"{"t":21,"l":120}"#), ("T:21C;L:120 candles", #"{"t":21,"l":120}"#),
      (#"{"a":{"b":{"c":1}},"t":"x"}"#, #"{"a_b_c":1,"t":"x"}"#), (#"{"온도":21}"#, #"{"온도":21}"#),
    ])
  func severalValuesAreFound(text: String, values: String) throws {
    #expect(try Self.json(Self.values(text)) == Self.members(values))
  }

  @Test(arguments: [
    "", " ", ":", "a", "hello", ":5", "a:", "  :5", "🌡🌡:5", "+/#:5", "+/#a:1", "_a:1", "time:12:30",
    "Note: all is well",
    "the answer:is no number", "a:" + String(repeating: "x", count: 256), "at 12:30", "Lab 12:25",
    String(repeating: "n", count: 33) + ":1", String(repeating: "n", count: 300) + ":1", "a:1;;b:2",
    "a:1;b:x",
    "at 12:30 PM", "time=12:30", "Mon 08:30, Tue 09:15", "1:20", "a::b", "x: 5 mph y: 2", "x: 1 f y: 2",
    "time,12:30", "time=9:05", "T=21 H=45 clock=9:05",
    "R=-3:12", "LM=100:RM=200",
    "log;12:30", "Outdoor: t=5, h=80",
    "a:b=c:1", "Error: 404 not found", "x: 1 left y: 2", "[1,2]", #"{"a":1}{"b":2}"#, #"{"a":[1]}"#,
    #"{"1":2}"#, #"{"a":null}"#,
    "{a:1}",
    // A V1 drops what is beyond 20 bytes, and the next line follows.
    "soil_moisture_1:123.light:45", "soil_moisture_1:123.soil_moisture_1:124.light:45",
  ])
  func otherMessagesHaveNoValues(text: String) { #expect(Self.values(text) == []) }

  @Test(arguments: ["Lab 12:25", "Lab 10:09"]) func whatIsKnownAsANumberIsNoTime(text: String) {
    let message = ProgramValue.values(in: Array(text.utf8)) { _ in true }
    #expect(message.values.map(\.isNumber) == [true])
  }

  @Test(
    arguments: [
      ("player 2:25", "player 2", "player_2"), ("1:20", "1", "1"), ("10:20", "10", "10"),
      ("t::21", "t:", "t"), (":=:1", ":=", nil), ("a:b", "a", "a"), ("note b:c", "note b", nil),
    ] as [(String, String, String?)])
  func nameThatIsApartIsThatOfAnyNumber(text: String, name: String, key: String?) {
    let message = ProgramValue.values(in: Array(text.utf8), name: Array(name.utf8))
    #expect(message.values.first?.name.key.description == key)
  }

  @Test func messageThatHasMoreThanValuesIsNotWhole() {
    let message = ProgramValue.values(in: Array(#"{"a":1,"b":[1]}"#.utf8))
    #expect(message.values.count == 1 && !message.isOnlyValues)
  }

  @Test(
    arguments: [
      ("7,42,21.5,120", #"{"seq":7,"moisture":42,"light":120}"#),
      ("7 42 x 120", #"{"seq":7,"moisture":42,"light":120}"#),
      ("7;42 %;;120;", #"{"seq":7,"moisture":42,"light":120}"#), ("7,42,21.5", "{}"),
      ("7,42,21.5,120,1", "{}"), ("7 42", "{}"), ("7,,42;", "{}"), ("a:1,2,3,4", #"{"a":"1,2,3,4"}"#),
      // A header, a sentence, a number alone, and what is empty.
      ("seq,moisture,light", "{}"), ("hello, world", "{}"), ("7", "{}"), (",", "{}"), ("a:1", #"{"a":1}"#),
      ("a,b,c,d", "{}"), ("a:-16,4,-1020", #"{"a_x":-16,"a_y":4,"a_z":-1020}"#), ("a:1,2", #"{"a":"1,2"}"#),
      ("a: -16, 4, -1020", #"{"a_x":-16,"a_y":4,"a_z":-1020}"#), ("b: 1, 2, 3", "{}"),
      ("(7, 42, 21.5, 120)", #"{"seq":7,"moisture":42,"light":120}"#),
      ("[7, 42, 21.5, 120]", #"{"seq":7,"moisture":42,"light":120}"#),
      ("a:[-16,4,-1020]", #"{"a_x":-16,"a_y":4,"a_z":-1020}"#),
      ("b:1,2,3", #"{"b":"1,2,3"}"#), ("t:1;u:2;v:3;w:4", #"{"t":1,"u":2,"v":3,"w":4}"#),
    ])
  func columnsNameNumbers(text: String, values: String) throws {
    func names(_ names: String?...) -> [ValueName?] { names.map { $0.flatMap { ValueName($0) } } }
    let columns = ProgramValue.Columns(
      ofMessage: names("seq", "moisture_%", nil, "light"),
      ofName: ["a": names("x", "y", "z")])
    let message = ProgramValue.values(in: Array(text.utf8), columns)
    #expect(try Self.json(message.values) == Self.members(values))
    let others = ["7,42,21.5", "7,42,21.5,120,1", "7 42", "7,,42;", "a:1,2", "a:1,2,3,4"]
    #expect(message.hasOtherColumns == others.contains(text))
  }

  @Test func notANumberIsANumber() throws {
    guard case .number(let number) = try #require(Self.values("a:NaN").first).value else {
      throw Failure("no number")
    }
    #expect(number.isNaN)
  }

  @Test(
    arguments: [
      ("temp_C", nil, "Temp", "°C", "temperature"), ("soil_moisture", nil, "Soil moisture", nil, nil),
      ("pressure_hPa", nil, "Pressure", "hPa", "pressure"), ("humidity_%", nil, "Humidity", "%", "humidity"),
      ("water_%", nil, "Water", "%", nil), ("temperature", nil, "Temperature", "°C", "temperature"),
      ("Humidity", nil, "Humidity", "%", "humidity"), ("light", nil, "Light", nil, nil),
      ("sound_level", nil, "Sound level", nil, nil), ("moisture_%", nil, "Moisture", "%", "moisture"),
      ("soil 1", "%", "Soil 1", "%", "moisture"), ("bat", "%", "Bat", "%", "battery"),
      ("CO2", "ppm", "CO2", "ppm", "carbon_dioxide"), ("dust", "ppm", "Dust", "ppm", nil),
      ("distance_cm", nil, "Distance", "cm", nil), ("light_lx", nil, "Light", "lx", "illuminance"),
      ("Heading", "°", "Heading", "°", nil), ("temperature", "°", "Temperature", "°C", "temperature"),
      // That of the name counts more.
      ("t_F", "°C", "T", "°F", "temperature"), ("temperature", "°F", "Temperature", "°F", "temperature"),
      // Not the ampere, nor a unit alone.
      ("motor_A", nil, "Motor A", nil, nil), ("C", nil, "C", nil, nil),
    ] as [(String, String?, String, String?, String?)])
  func meaningIsThatOfTheNameAndTheUnit(
    written: String, behind: String?, name: String, unit: String?, deviceClass: String?
  ) throws {
    let key = try #require(ValueName(written)?.key ?? ValueKey(name: written))
    let meaning = ValueMeaning(key, written, unit: behind)
    #expect(meaning.name == name && meaning.unit == unit && meaning.deviceClass == deviceClass)
  }
}

@Suite struct ValueTableTests {
  private let start = Moment.now

  private func receive(
    _ table: inout ValueTable, _ line: String, after seconds: Int = 0, today: Int = 1
  ) throws -> ValueTable.Sighting {
    table.receive(
      try #require(ProgramValue.values(in: Array(line.utf8)).values.first), at: start + .seconds(seconds),
      today: today)
  }

  @Test func valueIsConfirmedWhenItIsReceivedAgain() throws {
    var table = ValueTable()
    #expect(try receive(&table, "a:1") == .accepted)
    #expect(table.entries["a"]?.isConfirmed == false && table.entries["a"]?.isNumber == true)
    #expect(try receive(&table, "a:2", today: 5) == .accepted)
    let entry = ValueTable.Entry(written: "a", isNumber: true, isConfirmed: true, lastSeen: 5)
    #expect(table.entries == ["a": entry])
    // It stays a number.
    #expect(try receive(&table, "a:text", today: 5) == .noNumber)
    #expect(table.entries == ["a": entry])
    #expect(try receive(&table, "b:1") == .accepted && receive(&table, "b:text") == .accepted)
    #expect(table.entries["b"]?.isNumber == false)
    #expect(try receive(&table, #"{"on":true}"#) == .accepted && table.entries["on"]?.isBool == true)
    #expect(try receive(&table, "on:text") == .accepted && receive(&table, #"{"on":true}"#) == .accepted)
    #expect(table.entries["on"]?.isBool == false)
  }

  @Test func textBecomesANumberAfterTwoNumbersInARow() throws {
    var table = ValueTable()
    for (line, isNumber) in [
      ("t:--", false), ("t:--", false), ("t:1", false), ("t:--", false), ("t:1", false), ("t:2 C", true),
    ] {
      #expect(try receive(&table, line) == .accepted)
      #expect(table.entries["t"]?.isNumber == isNumber, "\(line)")
    }
    #expect(table.entries["t"]?.unit == "°C")
    #expect(try receive(&table, "t:--") == .noNumber && receive(&table, "t:3") == .accepted)
    // A new program has another unit.
    table.linkUp()
    #expect(try receive(&table, "t:70 F") == .accepted && table.entries["t"]?.unit == "°F")
    // The configuration says that it is a number.
    #expect(
      table.receive(
        try #require(ProgramValue.values(in: Array("x:--".utf8)).values.first), isNumber: true, at: start,
        today: 1) == .noNumber)
    #expect(table.entries["x"] == nil)
  }

  /// DFRobot's example prints `Temp: 21.5 C` and `Temp: 70.7 F` in turns; of other programs a button changes the unit.
  @Test func numberInAnotherUnitIsNotOneOfTheFirstUnit() throws {
    var table = ValueTable()
    for line in ["t:21 C", "t:21 C", "t:22"] { #expect(try receive(&table, line) == .accepted) }
    for _ in 1...3 {
      #expect(try receive(&table, "t:70.7 F") == .otherUnit && receive(&table, "t:21 C") == .accepted)
    }
    #expect(table.entries["t"]?.unit == "°C")
    #expect(try receive(&table, "t:70.7 F") == .otherUnit && receive(&table, "t:70.9 F") == .accepted)
    #expect(table.entries["t"]?.unit == "°F")
  }

  @Test func valueThatWasNotSentForADayGivesItsPlaceAway() throws {
    var table = ValueTable()
    for _ in 1...2 { for number in 0..<32 { _ = try receive(&table, "n\(number)x:1") } }
    #expect(try receive(&table, "new:1", after: 86_000) == .tooMany)
    for number in 1..<32 { _ = try receive(&table, "n\(number)x:1", after: 80_000) }
    #expect(try receive(&table, "new:1", after: 86_400) == .accepted)
    #expect(table.entries["n0x"] == nil && table.entries.count == 32)
    // After a restart the day counts.
    var stored = ValueTable(
      table.entries.mapValues {
        ValueTable.Entry(written: $0.written, isNumber: true, isConfirmed: true, lastSeen: 10)
      })
    #expect(try receive(&stored, "other:1", today: 11) == .tooMany)
    #expect(try receive(&stored, "other:1", today: 12) == .accepted)
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
    // The gateway was off for 100 days, of 30 without the value.
    table.removeUnseen(today: 231, uncounted: 100)
    #expect(table.entries.count == 1)
    table.removeUnseen(today: 232)
    #expect(table.entries.isEmpty)
  }
}
