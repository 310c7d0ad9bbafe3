import EventLoop
import JSON
import Log
import TestSupport
import Testing

@testable import Devices

@Suite struct LogTableTests {
  /// Rows as `row/run time unit values`.
  private static func rows(_ log: [UInt8], _ table: inout LogTable, parts: Int = .max) -> [String] {
    stride(from: 0, to: log.count, by: min(parts, max(1, log.count))).flatMap { start in
      table.take(Array(log[start..<min(start + min(parts, log.count), log.count)]))
    }.map(shown)
  }

  private static func shown(_ row: LogRow) -> String {
    let time =
      row.time.map { "\(String(decoding: $0.value.bytes, as: UTF8.self)) \($0.unit.rawValue) " } ?? ""
    return "\(row.row)/\(row.run) \(time)\(String(decoding: row.values.bytes, as: UTF8.self))"
  }

  private static let cases: [(String, [String])] = [
    ("", []), ("temp", []), ("temp\n", []), ("temp\n\n21\n", [#"1/1 {"temp":21}"#]),
    (
      "Time (seconds),temp,name\n0.5,21,a b\n1.50,,\n",
      [
        #"1/1 0.5 s {"temp":21,"name":"a b"}"#, #"2/1 1.5 s {}"#,
      ]
    ),
    // A new column, and another unit, in mid-file.
    (
      "Time (seconds),a\n1,2\nTime (seconds),a,b\n2,3,4\n",
      [#"1/1 1 s {"a":2}"#, #"2/1 2 s {"a":3,"b":4}"#]
    ),
    (
      "Time (milliseconds),X\n500,1\nTime (milliseconds),X,Time (seconds)\n,2,0.6\n",
      [#"1/1 500 ms {"X":1}"#, #"2/1 0.6 s {"X":2}"#]
    ),
    // The program starts again.
    (
      "Time (seconds),a\n5,1\n9,2\n1,3\n1,4\n0.5,5\n",
      [
        #"1/1 5 s {"a":1}"#, #"2/1 9 s {"a":2}"#, #"3/2 1 s {"a":3}"#, #"4/2 1 s {"a":4}"#,
        #"5/3 0.5 s {"a":5}"#,
      ]
    ),
    // Hours have steps of 36 s: no step back.
    (
      "Time (seconds),a\n40,1\nTime (seconds),a,Time (hours)\n,2,0.01\n",
      [#"1/1 40 s {"a":1}"#, #"2/1 0.01 h {"a":2}"#]
    ),
    // Free text, too many cells, no number where the time should be, and what is none.
    (
      "Time (seconds),a\nhello\n1,2,3,x\n2,NaN\n3,0x10\n4,+5\n5,21C\r\n",
      [
        #"1/1 {"Time (seconds)":"hello"}"#, #"2/1 1 s {"a":2,"3":3,"4":"x"}"#, #"3/1 2 s {"a":"NaN"}"#,
        #"4/1 3 s {"a":"0x10"}"#, #"5/1 4 s {"a":5}"#, #"6/1 5 s {"a":"21C"}"#,
      ]
    ),
    ("a,a\n1,2\n", [#"1/1 {"a":1}"#]),
    ("Time (seconds),a\n3.5,2 left\n", [#"1/1 3.5 s {"a":"2 left"}"#]),
    // No time of a micro:bit.
    ("Time (days),a\n1e+308,1\n2,2\n", [#"1/1 {"Time (days)":1e+308,"a":1}"#, #"2/1 2 d {"a":2}"#]),
  ]

  @Test(arguments: cases)
  func rowsAreReadInPartsOfAnySize(log: String, rows: [String]) {
    for parts in [1, 7, .max] {
      var table = LogTable()
      #expect(Self.rows(Array(log.utf8), &table, parts: parts) == rows)
    }
  }

  @Test func invalidUTF8IsReplaced() {
    var table = LogTable()
    let log = Array("näme\n".utf8) + [0xFF, 0x41, 0x0A, 0x00, 0x0A]
    #expect(Self.rows(log, &table) == [#"1/1 {"näme":"\#u{FFFD}A"}"#, #"2/1 {"näme":"\u0000"}"#])
  }

  /// To compare a heading of 60,000 combining characters with another takes seconds.
  @Test func combiningCharactersOfACellAreParted() {
    var table = LogTable()
    let rows = table.take(Array("a\(String(repeating: "\u{345}\u{323}", count: 1000)),b\n1,e\u{301}\n".utf8))
    #expect(rows.first?.headings.allSatisfy(\.isStreamSafe) == true)
    #expect(rows.first?.cells == ["1", "e\u{301}"])
  }

  @Test func positionIsStoredAndGoneOnFrom() throws {
    let log = Array("Time (seconds),a\n5,1\nTime (seconds),a,b\n9,2,1\n1,3,2\n".utf8)
    var whole = LogTable()
    let rows = Self.rows(log, &whole)
    for cut in 0...log.count {
      var first = LogTable()
      var all = Self.rows(Array(log[..<cut]), &first)
      let stored = try JSONParser.parse(first.position.json.bytes)
      var second = LogTable(try #require(LogPosition(stored)))
      #expect(second.position == first.position)
      // What is behind the last whole line is read again.
      all += Self.rows(Array(log[second.position.offset...]), &second)
      #expect(all == rows && second.position == whole.position)
    }
  }

  @Test func clearedLogBeginsWithRowOneOfAnotherRun() {
    var table = LogTable()
    _ = table.take(Array("a\n1\n2\n3".utf8))
    table.clear()
    #expect(Self.rows(Array("b\n4\n".utf8), &table) == [#"1/2 {"b":4}"#])
    #expect(table.position.offset == 4)
  }

  @Test(arguments: [
    "{}", #"{"offset":4,"tail":"00","row":0,"run":0}"#, #"{"offset":1,"tail":"00","row":2,"run":0}"#,
    #"{"offset":0,"tail":"","row":0,"run":9223372036854775806}"#,
    #"{"offset":0,"tail":"","row":0,"run":9007199254740993}"#,
    #"{"offset":9999999,"tail":"","row":0,"run":0}"#, #"{"offset":0,"tail":"","row":-1,"run":0}"#,
  ])
  func damagedPositionIsNotUsed(json: String) throws {
    #expect(LogPosition(try JSONParser.parse(Array(json.utf8))) == nil)
  }

  @Test func theGreatestRunIsTheLast() throws {
    let json = #"{"offset":0,"tail":"","row":0,"run":9007199254740992}"#
    let stored = try JSONParser.parse(Array(json.utf8))
    var table = LogTable(try #require(LogPosition(stored)))
    #expect(Self.rows(Array("a\n1\n".utf8), &table) == [#"1/9007199254740992 {"a":1}"#])
    #expect(LogPosition(table.position.json) == table.position)
  }

  @Test func aPositionIsAheadByItsRowOrALaterRun() {
    func position(_ log: String, after run: Int = 0) -> LogPosition {
      var table = LogTable(LogPosition(run: run))
      _ = table.take(Array(log.utf8))
      return table.position
    }
    let (first, second) = (position("a\n1\n"), position("a\n1\n2\n"))
    #expect(second.isAhead(of: first) && !first.isAhead(of: second) && !first.isAhead(of: first))
    #expect(position("b\n1\n", after: 1).isAhead(of: second))
    #expect(first.isAhead(of: nil) && !LogPosition(run: 5).isAhead(of: second))
  }

  @Test func tableHasOneLineOfHeadings() {
    let log = "Time (seconds),a\n1,=2+3\nTime (seconds),a,b\n2,\"x\",4\n0,1"
    #expect(
      LogTable.csv(Array(log.utf8))
        == "run,Time (seconds),a,b\r\n1,1,'=2+3\r\n1,2,\"\"\"x\"\"\",4\r\n2,0,1\r\n")
    #expect(LogTable.csv([]) == "run\r\n")
  }

  @Test func aRowHasNoMoreThan256Cells() {
    let headings = Array(String(repeating: ",", count: 2000).utf8)
    let log = headings + Array(String(repeating: "\n1", count: 1000).utf8)
    #expect(LogTable.csv(log).utf8.count < 10_000)
    var table = LogTable()
    let rows = table.take(Array("a\n".utf8) + headings + Array("\n1,2\n".utf8))
    #expect(rows.map(\.cells.count) == [256, 2])
  }
}

@Suite struct LogClockTests {
  private static func rows(_ log: String) -> [LogRow] {
    var table = LogTable()
    return table.take(Array("Time (seconds),a\n\(log)".utf8))
  }

  private static func at(_ seconds: Int) -> Timestamp { Timestamp(milliseconds: Int64(seconds) * 1000) }

  private static let start = Moment.now

  /// - Parameter set: by how much the clock was set before, in seconds.
  private static func answer(_ clock: inout LogClock, at seconds: Int, set: Int = 0, isWhole: Bool = true) {
    clock.answered(at: at(seconds + set), start + .seconds(seconds), isWhole: isWhole)
  }

  @Test func onlyRowsBetweenTwoAnswersHaveATime() {
    var clock = LogClock()
    let rows = Self.rows("5,1\n12,2\n13,3\n22,4\n1,5\n")
    Self.answer(&clock, at: 1000, isWhole: false)
    #expect(clock.measured(rows[0]) == nil, "written at any time before")
    Self.answer(&clock, at: 1010)
    #expect(clock.measured(rows[1]) == Self.at(1010))
    #expect(clock.measured(rows[2]) == Self.at(1010), "the program's 0 is at 997 at the latest")
    Self.answer(&clock, at: 1020)
    #expect(clock.measured(rows[3]) == Self.at(1019))
    Self.answer(&clock, at: 1030)
    #expect(clock.measured(rows[4]) == Self.at(1030), "another run")
    Self.answer(&clock, at: 1040, isWhole: false)
    #expect(clock.measured(rows[4]) == nil, "not all was read before")
  }

  @Test func afterTheClockWasSetEarlierTimesDoNotCount() {
    var clock = LogClock()
    let rows = Self.rows("12,1\n25,2\n33,3\n")
    Self.answer(&clock, at: 1000)
    Self.answer(&clock, at: 1010)
    #expect(clock.measured(rows[0]) == Self.at(1010))
    Self.answer(&clock, at: 1020, set: 5000)
    #expect(clock.measured(rows[1]) == nil, "one of its two answers has another clock")
    Self.answer(&clock, at: 1030, set: 5000)
    #expect(clock.measured(rows[2]) == Self.at(6030))
  }

  @Test func rowWithoutATimeHasNone() {
    var clock = LogClock()
    Self.answer(&clock, at: 1000, isWhole: false)
    Self.answer(&clock, at: 1010)
    #expect(clock.measured(Self.rows(",1\n")[0]) == nil)
  }
}
