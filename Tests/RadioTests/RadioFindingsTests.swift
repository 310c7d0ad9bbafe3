import Findings
import Glibc
import Log
import TestSupport
import Testing

@testable import Radio

/// What is said of a receiver, and what to do about it.
@Suite struct RadioFindingsTests {
  private let now = Timestamp(milliseconds: 1_800_000_000_000)

  private func finding(_ change: (inout RadioReceivers.Status) -> Void) -> Finding {
    var status = RadioReceivers.Status(port: "/dev/port", board: "9904")
    change(&status)
    status.lastBytes = status.lastBytes ?? status.last
    return status.finding(at: now)
  }

  @Test func aReceiverThatPrintsIsFine() {
    let found = finding { ($0.packets, $0.malformed, $0.last) = (100, 10, now) }
    #expect(found == .ok(.radio, "the receiver has printed 100 lines (/dev/port)"))
  }

  @Test func oneThatPrintsNothingIsNamed() {
    #expect(finding { _ in }.text.contains("nothing yet"))
    let minute = Timestamp(milliseconds: now.milliseconds - 60_001)
    let found = finding { $0.last = minute }
    #expect(found.level == .warning && found.text.contains("nothing for a minute"))
    #expect(found.remedy?.contains("docs/radio.md") == true)
  }

  @Test func oneWhoseLinesCannotBeReadIsNamed() {
    let minute = Timestamp(milliseconds: now.milliseconds - 60_001)
    for last in [nil, minute] {
      let found = finding { ($0.last, $0.lastBytes) = (last, now) }
      #expect(found.level == .warning && found.text.contains("no line that can be read"))
    }
  }

  @Test func badLinesOfLongAgoAreForgotten() {
    let found = finding { status in
      (status.packets, status.malformed, status.last) = (10_000, 9000, now)
      status.recent.add(100, 300)
      for _ in 0..<100 { status.recent.add(30, 0) }
    }
    #expect(found.level == .ok)
  }

  @Test func manyBadLinesAreNamed() {
    let found = finding { status in
      status.last = now
      status.recent.add(100, 11)
    }
    #expect(found.level == .warning && found.remedy?.contains("browser") == true)
  }

  @Test func aProgramThatDoesNotForwardIsNamed() {
    let found = finding { ($0.packets, $0.last, $0.sends) = (100, now, false) }
    #expect(found.level == .warning && found.remedy?.contains("docs/radio.md") == true)
    #expect(finding { ($0.packets, $0.last, $0.sends) = (100, now, true) }.level == .ok)
  }

  @Test(arguments: [
    (SerialPort.Obstacle.denied, "usermod"), (.busy, "Thonny"), (.absent, "plug"), (.notSerial, "auto"),
    (.other("I/O error"), "unplug"),
  ])
  func eachObstacleHasItsRemedy(_ obstacle: SerialPort.Obstacle, _ remedy: String) {
    let found = finding { $0.obstacle = obstacle }
    #expect(found.level == .fault && found.remedy?.contains(remedy) == true)
    #expect(found.text == "the receiver cannot be read: \(obstacle) (/dev/port)")
  }

  @Test func aLookAtThePortTellsWhyItCannotBeRead() throws {
    let terminal = try PseudoTerminal()
    #expect(SerialPort.Obstacle(at: "/nonexistent") == .absent)
    #expect(SerialPort.Obstacle(at: terminal.path) == nil)
    let other = open(terminal.path, O_RDONLY | O_NOCTTY | O_CLOEXEC)
    defer { close(other) }
    #expect(flock(other, LOCK_EX) == 0)
    #expect(SerialPort.Obstacle(at: terminal.path) == .busy)
  }
}
