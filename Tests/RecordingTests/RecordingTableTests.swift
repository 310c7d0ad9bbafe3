import JSON
import Log
import TestSupport
import Testing

@testable import Recording

@Suite struct RecordingTableTests {
  private let folder: TemporaryFolder
  private static let start = Timestamp(milliseconds: 1_764_217_696_000)

  init() throws { folder = try TemporaryFolder() }

  /// A recording that has ended, as a table.
  private func table(_ lines: [RecordingLine], _ layout: RecordingTable.Layout) throws -> [String] {
    let bytes = ([.start(Self.start)] + lines).flatMap(\.bytes)
    try folder.write(bytes, to: "lesson.rec")
    return try rows("lesson", layout)
  }

  private func rows(_ name: String, _ layout: RecordingTable.Layout) throws -> [String] {
    var table = try RecordingFolder(path: folder.path).table(name, layout)
    var text: [UInt8] = []
    while let piece = try table.next() { text += piece }
    return String(decoding: text, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
      .dropLast().map(String.init)
  }

  private static let lines: [RecordingLine] = [
    .column(RecordedColumn(device: "table-1", property: "temperature", unit: "°C", fields: nil)),
    .reading(offset: 0, column: 0, value: 21),
    .column(RecordedColumn(device: "table-2", property: "accelerometer", unit: "mg", fields: ["x", "y"])),
    .reading(offset: 400, column: 1, value: ["x": 1, "y": -2]),
    .reading(offset: 900, column: 1, value: ["x": 3]),
    .reading(offset: 1000, column: 0, value: 22),
    .reading(offset: 2000, column: 0, value: .number(22.5)),
  ]

  @Test func eachReadingHasARow() throws {
    #expect(
      try table(Self.lines, .rows) == [
        "time,device,property,value,unit",
        "2025-11-27T04:28:16.000Z,table-1,temperature,21,°C",
        #"2025-11-27T04:28:16.400Z,table-2,accelerometer,"{""x"":1,""y"":-2}",mg"#,
        #"2025-11-27T04:28:16.900Z,table-2,accelerometer,"{""x"":3}",mg"#,
        "2025-11-27T04:28:17.000Z,table-1,temperature,22,°C",
        "2025-11-27T04:28:18.000Z,table-1,temperature,22.5,°C",
      ])
  }

  @Test func eachReadingHasACell() throws {
    #expect(
      try table(Self.lines, .wide) == [
        "time,table-1 temperature (°C),table-2 accelerometer.x (mg),table-2 accelerometer.y (mg)",
        "2025-11-27T04:28:16.000Z,21,1,-2",
        "2025-11-27T04:28:16.900Z,22,3,",
        "2025-11-27T04:28:18.000Z,22.5,,",
      ])
  }

  @Test(
    "A reading is of the last column of its number before it", arguments: [RecordingTable.Layout.rows, .wide])
  func damagedColumns(_ layout: RecordingTable.Layout) throws {
    func column(_ device: String, _ number: Int, _ fields: [String]? = nil) -> RecordingLine {
      .column(RecordedColumn(device: device, property: "p", unit: nil, fields: fields), number: number)
    }
    let lines: [RecordingLine] = [
      column("b", 1), .reading(offset: 0, column: 0, value: 1), .reading(offset: 1, column: 1, value: 2),
      column("c", 0, ["x", "y"]), .reading(offset: 2, column: 0, value: ["x": 3]), column("c", 999),
    ]
    let rows = try table(lines, layout).map { $0.split(separator: "Z").last ?? "" }
    #expect(
      rows
        == (layout == .rows
          ? ["time,device,property,value,unit", ",b,p,2,", #",c,p,"{""x"":3}","#]
          : ["time,b p,c p.x,c p.y,c p", ",2,3,,"]))
    #expect(RecordingLine(#"{"column":1000,"device":"a","property":"p"}"#.utf8) == nil)
  }

  @Test func aFieldMayHaveAUnitOfItsOwn() throws {
    let column = RecordedColumn(
      device: "a", property: "climate", unit: "°C", fields: ["temperature", "humidity"],
      units: ["humidity": "%"])
    let rows = try table([.column(column), .reading(offset: 0, column: 0, value: ["humidity": 55])], .wide)
    #expect(rows[0] == "time,a climate.temperature (°C),a climate.humidity (%)")
  }

  @Test(
    "What a program sends is no formula, and ends no row", arguments: [RecordingTable.Layout.rows, .wide])
  func hostileTexts(_ layout: RecordingTable.Layout) throws {
    let texts = [
      "=1+1", "+49 30", "-x", "@SUM(A1)", "a,\"b\"", "line\nline\r\n", "\u{202E}x", "-5",
      "x;=1+cmd|'/C calc'!A0;", "x; \"@A1", "1;-2;+3", "＝1+1",
    ]
    let expected = [
      "'=1+1", "'+49 30", "'-x", "'@SUM(A1)", "\"a,\"\"b\"\"\"", "line·line··", "·x", "-5",
      "x;'=1+cmd|'/C calc'!A0;", "\"x;' \"\"@A1\"", "1;-2;+3", "'＝1+1",
    ]
    let column = RecordedColumn(device: "-a", property: "values/x", unit: "=cmd", fields: nil)
    let rows = try table(
      [.column(column)]
        + texts.enumerated().map { .reading(offset: $0 * 2000, column: 0, value: .string($1)) }, layout)
    #expect(rows.count == texts.count + 1)
    for (row, cell) in zip(rows.dropFirst(), expected) {
      #expect(
        layout == .rows ? row.hasSuffix(",'-a,values/x,\(cell),'=cmd") : row.hasSuffix("Z,\(cell)"), "\(row)")
    }
    #expect(layout == .rows || rows[0] == "time,'-a values/x (=cmd)")
  }

  @Test func aLongFileIsReadInPiecesAndLinesThatAreDamagedAreLeftOut() throws {
    let column = RecordedColumn(device: "a", property: "b", unit: nil, fields: nil)
    var bytes = RecordingLine.start(Self.start).bytes + RecordingLine.column(column).bytes
    let count = 30_000
    for number in 0..<count {
      bytes += RecordingLine.reading(offset: number, column: 0, value: .integer(number)).bytes
      if number % 1000 == 0 { bytes += "[1,\u{0}\n[1,7,1]\nx\n".utf8 }
    }
    try folder.write(bytes, to: "lesson.part")
    var wide = try RecordingFolder(path: folder.path).table("lesson", .wide)
    #expect(try wide.next() == [], "the columns of a long file are not read at once")
    let rows = try rows("lesson", .rows)
    #expect(rows.count == count + 1 && rows.last?.hasSuffix(",a,b,\(count - 1),") == true)
    #expect(rows.dropFirst().enumerated().allSatisfy { $1.hasSuffix(",a,b,\($0),") })
  }

  /// As in a file that somebody else has written: a sum of times may not overflow.
  @Test(arguments: [
    #"{"started":9223372036854775807}"#, #"{"started":-1}"#, #"{"ended":9223372036854775807,"end":"stop"}"#,
    "[9223372036854775807,0,1]", "[-9223372036854775808,0,1]",
  ])
  func aTimeThatCannotBeIsNone(line: String) {
    #expect(RecordingLine(line.utf8) == nil)
  }

  @Test func aNameIsNoPath() throws {
    try folder.write("{\"started\":0}\n", to: "x.rec")
    for name in ["../x", "", "a/b", "x\u{0}", "y"] {
      #expect(throws: RecordingFailure.self) { _ = try rows(name, .rows) }
    }
  }
}
