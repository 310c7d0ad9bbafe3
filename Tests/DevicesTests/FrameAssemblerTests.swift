import EventLoop
import Testing

@testable import Devices

@Suite struct FrameAssemblerTests {
  /// `|` is half a second without a notification, `~` a tenth of one before the next.
  private static func frames(_ pieces: [String], _ delimiter: String = "\n") -> [String] {
    var (assembler, now) = (FrameAssembler(delimiter: delimiter), Moment.now)
    var frames: [FrameAssembler.Frame] = []
    for piece in pieces {
      switch piece {
      case "|": now = now + .milliseconds(500)
      case "~": now = now + .milliseconds(100)
      default: frames += assembler.append(Array(piece.utf8), at: now)
      }
      while let deadline = assembler.deadline, deadline <= now { frames += assembler.end(at: deadline) }
    }
    return (frames + assembler.endAll()).map {
      String(decoding: $0.bytes, as: UTF8.self) + ($0.isCut ? "…" : "")
    }
  }

  @Test(.timeLimit(.minutes(10))) func emptyNotificationsTakeNoRoom() {
    var assembler = FrameAssembler(delimiter: "\n")
    for _ in 0..<300_000 { _ = assembler.append([], at: .now) }
    #expect(assembler.append([0x61], at: .now) == [] && assembler.endAll().map(\.bytes) == [[0x61]])
  }

  /// A program that greets with a line, and then sends numbers without one (uartWriteNumber), ten a second.
  @Test func programThatNoLongerEndsItsLinesIsNoticedAfterTwoSeconds() {
    let numbers = (100..<140).map(String.init)
    let frames = Self.frames(["CONNECTED\r\n"] + numbers.flatMap { [$0, "~"] } + ["bye\n", "a", "b\n"])
    #expect(frames == ["CONNECTED"] + numbers + ["bye", "ab"])
  }

  /// One that composes a line of several parts takes its time, and a long line has full notifications.
  @Test func lineMayTakeLong() {
    let slow = ["a\n"] + (0..<15).flatMap { ["\($0)", "~"] } + ["\n"]
    #expect(Self.frames(slow) == ["a", "01234567891011121314"])
    #expect(Self.frames(["a\n"] + Array(repeating: "|", count: 20) + ["b", "~", "c\n"]) == ["a", "bc"])
    let long = Array(repeating: Self.full, count: 30)
    #expect(Self.frames(["a\n"] + long.flatMap { [$0, "~"] } + ["\n"]) == ["a", long.joined()])
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
    let frames = assembler.append([UInt8](repeating: 65, count: 2500) + [10, 66, 10], at: .now)
    #expect(frames.map(\.bytes.count) == [1024, 1024, 452, 1])
    #expect(frames.map(\.isCut) == [true, true, true, false])
    #expect(frames.map(\.isTooLong) == [true, false, false, false], "each is counted once")
    #expect(assembler.deadline == nil)
  }
}
