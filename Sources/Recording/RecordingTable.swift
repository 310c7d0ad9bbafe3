import JSON
import Log

/// A recording as CSV (RFC 4180), made piece by piece. Making a piece blocks.
package struct RecordingTable: Sendable {
  package enum Layout: String, Sendable {
    /// A row for each reading: time, device, property, value, unit.
    case rows
    /// A column for each property of each device. A row ends after a second, or when a value comes for a cell that has one:
    /// each reading is in one cell.
    case wide
  }

  private static let rowLength = 1000

  private let layout: Layout
  private var reader: RecordingReader
  /// Reads the columns of a wide table: all are known at the end of the file.
  private var columnReader: RecordingReader
  private var hasBegun = false
  private var started = Timestamp(milliseconds: 0)
  /// The columns by their numbers, as far as their lines were read.
  private var columns: [Int: RecordedColumn] = [:]
  /// The titles of a wide table, and where those of each column begin.
  private var titles: [String] = []
  private var places: [RecordedColumn: Int] = [:]
  /// The row that is being filled, and its time in milliseconds since the start; nil: it has no value yet.
  private var cells: [String] = []
  private var rowOffset: Int?

  init(_ file: RecordingFile, _ layout: Layout) {
    self.layout = layout
    reader = RecordingReader(file, size: file.status.bytes)
    columnReader = reader
  }

  /// The next bytes; empty: none yet; nil: that is all. A call reads 256 KiB at most.
  package mutating func next() throws(RecordingFailure) -> [UInt8]? {
    var text = ""
    if hasBegun {
      guard try appendRows(&text) else { return nil }
    } else {
      if layout == .wide, try !hasReadColumns() { return [] }
      hasBegun = true
      appendHeader(&text)
    }
    return Array(text.utf8)
  }

  private mutating func hasReadColumns() throws(RecordingFailure) -> Bool {
    for _ in 0..<16 {
      guard let lines = try columnReader.next() else { return true }
      for line in lines where line.first != RecordingLine.reading {
        guard case .column(let column, _) = RecordingLine(line), places[column] == nil else { continue }
        places[column] = titles.count
        titles += column.titles
      }
    }
    return false
  }

  private mutating func appendHeader(_ text: inout String) {
    guard layout == .wide else {
      text = "time,device,property,value,unit\r\n"
      return
    }
    cells = titles.map { _ in "" }
    text = (["time"] + titles.map(CSV.cell)).joined(separator: ",") + "\r\n"
  }

  /// - Returns: whether there were lines, or a row that has ended with them.
  private mutating func appendRows(_ text: inout String) throws(RecordingFailure) -> Bool {
    guard let lines = try reader.next() else {
      endRow(&text)
      return !text.isEmpty
    }
    for line in lines {
      switch RecordingLine(line) {
      case .start(let time): started = time
      case .column(let column, let number): columns[number ?? columns.count] = column
      case .reading(let offset, let number, let value):
        guard let column = columns[number] else { continue }
        switch layout {
        case .rows: appendRow(offset, column, value, &text)
        case .wide: fill(offset, column, value, &text)
        }
      case .end, nil: break
      }
    }
    return true
  }

  private func time(_ offset: Int) -> String { (started + .milliseconds(offset)).description }

  private func appendRow(_ offset: Int, _ column: RecordedColumn, _ value: JSONValue, _ text: inout String) {
    let cells =
      [column.device, column.property].map(CSV.cell) + [Self.cell(value), column.unit.map(CSV.cell) ?? ""]
    text += time(offset) + "," + cells.joined(separator: ",") + "\r\n"
  }

  private mutating func fill(
    _ offset: Int, _ column: RecordedColumn, _ value: JSONValue, _ text: inout String
  ) {
    guard let place = places[column] else { return }
    let parts: [String] =
      column.fields.map { $0.map { value[$0].map(Self.cell) ?? "" } } ?? [Self.cell(value)]
    let isFull = parts.indices.contains { !cells[place + $0].isEmpty }
    if let row = rowOffset, isFull || offset < row || offset - row >= Self.rowLength { endRow(&text) }
    rowOffset = rowOffset ?? offset
    for (index, part) in parts.enumerated() { cells[place + index] = part }
  }

  private mutating func endRow(_ text: inout String) {
    guard let row = rowOffset else { return }
    text += ([time(row)] + cells).joined(separator: ",") + "\r\n"
    rowOffset = nil
    for index in cells.indices { cells[index] = "" }
  }

  private static func cell(_ value: JSONValue) -> String {
    value == .null ? "" : CSV.cell(value.plain)
  }
}
