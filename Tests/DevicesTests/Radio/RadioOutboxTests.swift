import Configuration
import EventLoop
import GATT
import Testing

@testable import Devices

/// Values that are sent by radio: repeated until they are sent back, and given up.
@Suite struct RadioOutboxTests {
  private static let start = Moment.now
  private static func at(_ milliseconds: Int) -> Moment { start + .milliseconds(milliseconds) }

  /// What the machine asks for, as texts: `1>servo:90`, or `1>servo:90 sent`.
  private final class Recorder {
    var outbox = RadioOutbox()
    var events: [String] = []
    /// Whether a receiver takes what is written.
    var isTaken = true

    func command(_ sender: UInt32, _ name: String, _ value: Int) throws -> RadioCommand {
      let key = try #require(ValueKey(name))
      return RadioCommand(
        target: .init(device: BluetoothAddress(.serial(sender)), value: key),
        line: Array("\(sender)>\(name):\(value)".utf8), reply: { _ in })
    }

    func send(_ sender: UInt32, _ name: String, _ value: Int, at time: Int) throws {
      let command = try command(sender, name, value)
      note(outbox.send(command, at: RadioOutboxTests.at(time)), time)
    }

    /// Lets the time pass.
    func run(until time: Int) {
      while let deadline = outbox.deadline, deadline <= RadioOutboxTests.at(time) {
        let passed = Int(RadioOutboxTests.start.duration(to: deadline) / .milliseconds(1))
        note(outbox.timer(at: deadline), passed)
      }
    }

    func note(_ actions: [RadioOutbox.Action], _ time: Int) {
      for action in actions {
        switch action {
        case .write(let command):
          events.append("\(time) \(String(decoding: command.line, as: UTF8.self))")
          if isTaken { outbox.wrote(command.target) }
        case .outcome(let command, let outcome):
          events.append("\(time) \(String(decoding: command.line, as: UTF8.self)) \(outcome.word)")
        }
      }
    }
  }

  @Test func withoutAnEchoItIsSentFourTimes() throws {
    let recorder = Recorder()
    try recorder.send(1, "servo", 90, at: 0)
    recorder.run(until: 60_000)
    let line = "1>servo:90"
    #expect(
      recorder.events == ["0 \(line)", "1000 \(line)", "3000 \(line)", "7000 \(line)", "9000 \(line) sent"])
    #expect(recorder.outbox.deadline == nil)
  }

  @Test func anEchoEndsIt() throws {
    let recorder = Recorder()
    try recorder.send(1, "servo", 90, at: 0)
    recorder.run(until: 1500)
    let target = try recorder.command(1, "servo", 90).target
    let isEcho = (recorder.outbox.echoed(target), recorder.outbox.echoed(target))
    #expect(isEcho == (true, false))
    recorder.run(until: 60_000)
    #expect(recorder.events == ["0 1>servo:90", "1000 1>servo:90"])
  }

  @Test func aNewerValueTakesThePlaceOfTheOlder() throws {
    let recorder = Recorder()
    try recorder.send(1, "servo", 10, at: 0)
    try recorder.send(1, "led", 1, at: 100)
    try recorder.send(1, "servo", 90, at: 500)
    recorder.run(until: 1200)
    #expect(
      recorder.events == [
        "0 1>servo:10", "100 1>led:1", "500 1>servo:10 superseded", "500 1>servo:90", "1100 1>led:1",
      ])
  }

  @Test func linesHaveAPauseBetweenThem() throws {
    let recorder = Recorder()
    for sender in 1...4 { try recorder.send(UInt32(sender), "led", 1, at: 0) }
    recorder.run(until: 100)
    #expect(recorder.events == ["0 1>led:1", "20 2>led:1", "40 3>led:1", "60 4>led:1"])
  }

  @Test func oneThatNoReceiverHasTakenFails() throws {
    let recorder = Recorder()
    recorder.isTaken = false
    try recorder.send(1, "led", 1, at: 0)
    recorder.run(until: 60_000)
    #expect(recorder.events.last == "9000 1>led:1 failed" && recorder.events.count == 5)
  }

  @Test func thereIsAMostAndEveryCommandEnds() throws {
    let recorder = Recorder()
    for sender in 1...65 { try recorder.send(UInt32(sender), "led", 1, at: 0) }
    #expect(recorder.events.last == "0 65>led:1 rejected")
    recorder.note(recorder.outbox.abandon(BluetoothAddress(.serial(1))), 5)
    #expect(recorder.events.last == "5 1>led:1 sent")
    recorder.run(until: 60_000)
    let ends = recorder.events.filter { $0.hasSuffix(" sent") || $0.hasSuffix(" rejected") }
    #expect(ends.count == 65)
    #expect(recorder.outbox.deadline == nil)
    recorder.note(recorder.outbox.abandon(nil), 60_000)
    #expect(recorder.events.filter { $0.hasSuffix(" sent") }.count == 64)
  }
}
