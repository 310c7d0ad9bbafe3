import Testing

@testable import Devices

@Suite struct FrameAssemblerTests {
  private static func texts(_ frames: [[UInt8]]) -> [String] {
    frames.map { String(decoding: $0, as: UTF8.self) }
  }

  private static let cases: [(String, [String], [String], String)] = [
    ("\n", ["hello\n"], ["hello"], ""),
    ("\n", ["temp:2", "1\r\nlight", ":200\n"], ["temp:21", "light:200"], ""),
    ("\n", ["a\n\nb"], ["a", ""], "b"),
    ("\r\n", ["a\r", "\nb\n"], ["a"], "b\n"),
    ("END", ["1EN", "D2ENDX"], ["1", "2"], "X"),
    (";", ["21\r;"], ["21\r"], ""),
  ]

  @Test(arguments: cases)
  func framesEndAtTheDelimiter(delimiter: String, pieces: [String], frames: [String], rest: String) {
    var assembler = FrameAssembler(delimiter: delimiter)
    #expect(Self.texts(pieces.flatMap { assembler.append(Array($0.utf8)) }) == frames)
    #expect(assembler.isIncomplete == !rest.isEmpty)
    #expect(Self.texts([assembler.flush()]) == [rest])
    #expect(!assembler.isIncomplete)
  }

  @Test func frameWithoutDelimiterIsSplit() {
    var assembler = FrameAssembler(delimiter: "\n")
    let frames = assembler.append([UInt8](repeating: 65, count: 2500))
    #expect(frames.map(\.count) == [1024, 1024])
    #expect(assembler.flush().count == 452)
  }
}
