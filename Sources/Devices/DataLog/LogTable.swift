import GATT
import JSON

package struct LogRow: Sendable, Equatable {
  /// The number of the row in the log, from 1.
  package let row: Int
  /// The number of the program's run: it grows where the time goes back, and when the log was cleared.
  package let run: Int
  /// The program's own time; nil: the row has none.
  package let time: LogTime?
  package let headings: [String]
  /// The cells, which may be fewer than the headings, or more.
  package let cells: [String]

  /// The cells that are not empty by their headings, without the time; a cell without a heading has its number, from 1.
  package var values: JSONValue {
    var members: [JSONObject.Member] = []
    for (index, cell) in cells.enumerated() where !cell.isEmpty && index != time?.column {
      let name = index < headings.count ? headings[index] : "\(index + 1)"
      guard !members.contains(where: { $0.name == name }) else { continue }
      members.append(JSONObject.Member(name: name, value: LogTable.number(cell) ?? .string(cell)))
    }
    return .object(JSONObject(members))
  }
}

/// The time in a row, which begins at 0 with each run of the program.
package struct LogTime: Sendable, Equatable {
  package enum Unit: String, Sendable, CaseIterable {
    case milliseconds = "ms"
    case seconds = "s"
    case minutes = "min"
    case hours = "h"
    case days = "d"

    var milliseconds: Double {
      switch self {
      case .milliseconds: 1
      case .seconds: 1000
      case .minutes: 60_000
      case .hours: 3_600_000
      case .days: 86_400_000
      }
    }
    /// The smallest difference between two times, in ms: but for milliseconds, they have two decimals.
    var step: Double { self == .milliseconds ? 1 : milliseconds / 100 }
  }

  package let value: JSONValue
  package let unit: Unit
  let column: Int

  var milliseconds: Double { (value.double ?? 0) * unit.milliseconds }

  /// Whether the program has started again since `last`.
  func isBefore(_ last: LogTime) -> Bool {
    milliseconds + (unit == last.unit ? 0 : max(unit.step, last.unit.step)) < last.milliseconds
  }
}

/// Reads the rows of a data log, which arrives in parts of any size. Pure.
///
/// The log is CSV without quotation marks. Its first line has the headings. A later line that begins with all of them and has
/// more is a new heading; the rows before it have fewer cells. Invalid UTF-8 is replaced (U+FFFD).
package struct LogTable: Sendable {
  /// What is known up to the end of the last whole line.
  package private(set) var position: LogPosition
  /// The beginning of a line.
  private var rest: [UInt8] = []
  /// The maximum number of cells in a row; further ones are left out. A log may be nothing but commas, and the time for
  /// ``LogRow/values`` grows with the square of this number.
  private static let mostCells = 256

  package init(_ position: LogPosition = LogPosition()) { self.position = position }

  /// - Returns: the rows that are whole now.
  package mutating func take(_ bytes: [UInt8]) -> [LogRow] {
    rest += bytes
    var rows: [LogRow] = []
    var start = rest.startIndex
    while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = rest[start...end]
      position.passed(line)
      if let row = row(line.dropLast()) { rows.append(row) }
      start = end + 1
    }
    rest.removeFirst(start)
    return rows
  }

  /// The log was cleared: what follows begins a new one.
  package mutating func clear() {
    position = LogPosition(run: position.run)
    rest = []
  }

  private mutating func row(_ line: ArraySlice<UInt8>) -> LogRow? {
    let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    guard !text.isEmpty else { return nil }
    let cells = text.split(
      separator: UInt8(ascii: ","), maxSplits: Self.mostCells, omittingEmptySubsequences: false
    ).prefix(Self.mostCells).map { String(decoding: $0, as: UTF8.self).streamSafe }
    let headings = position.headings
    if headings.isEmpty || cells.count > headings.count && Array(cells.prefix(headings.count)) == headings {
      position.headings = cells
      return nil
    }
    let time = Self.time(in: cells, headings)
    if position.row == 0 || position.last.flatMap({ time?.isBefore($0) }) == true { position.nextRun() }
    position.row += 1
    position.last = time ?? position.last
    return LogRow(row: position.row, run: position.run, time: time, headings: headings, cells: cells)
  }

  private static func time(in cells: [String], _ headings: [String]) -> LogTime? {
    for (column, (heading, cell)) in zip(headings, cells).enumerated() {
      // `Time (seconds)`, for example: the units are called as MakeCode writes them.
      let unit = LogTime.Unit.allCases.first { heading == "Time (\($0))" }
      guard let unit, let value = number(cell) else { continue }
      let time = LogTime(value: value, unit: unit, column: column)
      if time.milliseconds.magnitude < 0x1p53 { return time }
    }
    return nil
  }

  /// A number as MakeCode prints it; nil: it is none, or not finite, or a word follows.
  static func number(_ cell: String) -> JSONValue? {
    switch ProgramValue.bareNumber(Array(cell.utf8)[...]) {
    case .integer(let number): return .integer(number)
    case .number(let number) where number.isFinite: return JSONValue(number: number)
    case _: return nil
    }
  }

  // MARK: As a whole

  /// A log as a table for spreadsheets: one line of headings, with the run in the first column. A row may have fewer cells than
  /// there are headings: filled up to 256 columns, a log of short rows would have 15 MB.
  package static func csv(_ log: [UInt8]) -> String {
    var table = LogTable()
    var rows = table.take(log)
    // The last line may lack its end.
    if !table.rest.isEmpty { rows += table.take([UInt8(ascii: "\n")]) }
    let lines = [["run"] + table.position.headings] + rows.map { ["\($0.run)"] + $0.cells }
    return lines.map { $0.map(CSV.cell).joined(separator: ",") + "\r\n" }.joined()
  }
}

/// How far a log was read, so that reading goes on there.
package struct LogPosition: Sendable, Equatable {
  /// The bytes of the whole lines.
  package fileprivate(set) var offset = 0
  /// The last bytes before the offset, which show whether it is still the same log.
  private(set) var tail: [UInt8] = []
  package fileprivate(set) var row = 0
  package fileprivate(set) var run: Int
  fileprivate var headings: [String] = []
  /// The last time in a row.
  fileprivate var last: LogTime?

  package init(run: Int = 0) { self.run = run }

  fileprivate mutating func passed(_ line: ArraySlice<UInt8>) {
    offset += line.count
    tail = (tail + line.suffix(LogMachine.tailSize)).suffix(LogMachine.tailSize)
  }

  /// The numbers of runs: a greater one is none that a gateway has counted.
  private static let runs = 0...(1 << 53)

  fileprivate mutating func nextRun() { run = min(run + 1, Self.runs.upperBound) }

  /// Whether it is further than another one: at a later row, or in a later run.
  func isAhead(of other: LogPosition?) -> Bool {
    row > 0 && (run, row) > (other?.run ?? 0, other?.row ?? 0)
  }

  // MARK: As it is stored

  /// The longest position that is handed over, in bytes: headings may be long.
  private static let longestHandover = 2048

  /// The position for the gateway that has the device next. It is empty if headings are too long: that gateway then begins
  /// with the first row.
  package var handedOver: JSONValue {
    let json = json
    return json.bytes.count <= Self.longestHandover ? json : [:]
  }

  var json: JSONValue {
    [
      "offset": .integer(offset), "tail": .string(Hexadecimal.text(tail)), "row": .integer(row),
      "run": .integer(run), "headings": .array(headings.map(JSONValue.string)),
      "last": last.map {
        ["value": $0.value, "unit": .string($0.unit.rawValue), "column": .integer($0.column)]
      },
    ]
  }

  package init?(_ json: JSONValue) {
    guard let offset = json["offset"]?.integer, (0...LogMachine.capacity).contains(offset),
      let tail = json["tail"]?.text.flatMap({ Hexadecimal.bytes($0) }),
      tail.count == min(offset, LogMachine.tailSize),
      let row = json["row"]?.integer, let run = json["run"]?.integer,
      (0...offset).contains(row), Self.runs.contains(run)
    else { return nil }
    (self.offset, self.tail, self.row, self.run) = (offset, tail, row, run)
    headings = json["headings"]?.elements.compactMap(\.text) ?? []
    if let last = json["last"], let value = last["value"], value.double != nil,
      let unit = last["unit"]?.text.flatMap({ LogTime.Unit(rawValue: $0) }),
      let column = last["column"]?.integer
    {
      self.last = LogTime(value: value, unit: unit, column: column)
    }
  }
}
