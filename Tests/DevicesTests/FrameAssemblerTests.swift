import Testing

@testable import Devices

@Suite struct FrameAssemblerTests {
  /// `|` is half a second without a notification.
  private static func frames(_ pieces: [String], _ delimiter: String = "\n") -> [String] {
    var assembler = FrameAssembler(delimiter: delimiter)
    let frames = (pieces + ["|"]).flatMap { $0 == "|" ? assembler.end() : assembler.append(Array($0.utf8)) }
    return (frames + assembler.end()).map {
      String(decoding: $0.bytes, as: UTF8.self) + ($0.isCut ? "…" : "")
    }
  }

  @Test(.timeLimit(.minutes(1))) func emptyNotificationsTakeNoRoom() {
    var assembler = FrameAssembler(delimiter: "\n")
    for _ in 0..<300_000 { _ = assembler.append([]) }
    #expect(assembler.append([0x61]) == [] && assembler.end().map(\.bytes) == [[0x61]])
  }

  private static let full = "0123456789abcdefghij"

  private static let cases: [(String, [String], [String])] = [
    ("\n", ["hello\n"], ["hello"]),
    ("\n", ["temp:2", "1\r\nlight", ":200\n"], ["temp:21", "light:200"]),
    ("\n", ["a\n\n\r\nb"], ["a", "b"]),
    ("\n", ["a\rb\r"], ["a", "b"]),
    ("\r\n", ["a\r", "\nb\n"], ["a", "b"]),
    ("\n", ["a\n\0\0\0", "b\n"], ["a", "b"]),
    // No line end in half a second: each notification is a frame, also later ones.
    ("\n", ["a", "b", "|", "c", "d"], ["a", "b", "c", "d"]),
    ("\n", ["a", "b\n", "c", "d\n"], ["ab", "cd"]),
    ("\n", ["a", "|", "b", "c\n", "d", "e\n"], ["a", "b", "c", "de"]),
    // A full notification goes on with the next.
    ("\n", [full, "b", "|", full, full, "c"], [full + "b", full + full + "c"]),
    ("\n", ["a\n", full, "|", "b\n"], ["a", full + "…", "b"]),
    ("\n", ["a", "|", full, "|", "b"], ["a", full + "…", "b"]),
    ("\n", ["a\n", "b", "|", "c\n"], ["a", "b", "c"]),
    ("END", ["1EN", "D2ENDX"], ["1", "2", "X"]), (";", ["21\r;"], ["21\r"]),
    ("\n", ["", "\0", "\n"], []),
  ]

  @Test(arguments: cases)
  func framesEndAtTheDelimiterOrInSilence(delimiter: String, pieces: [String], frames: [String]) {
    #expect(Self.frames(pieces, delimiter) == frames)
  }

  @Test func frameWithoutDelimiterIsSplit() {
    var assembler = FrameAssembler(delimiter: "\n")
    let frames = assembler.append([UInt8](repeating: 65, count: 2500) + [10, 66, 10])
    #expect(frames.map(\.bytes.count) == [1024, 1024, 452, 1])
    #expect(frames.map(\.isCut) == [true, true, true, false])
    #expect(frames.map(\.isTooLong) == [true, false, false, false], "each is counted once")
    #expect(!assembler.isIncomplete && !assembler.isUndecided)
  }
}
