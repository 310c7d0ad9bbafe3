import Configuration
import EventLoop
import GATT
import Glibc
import TestSupport
import Testing

@testable import Radio

/// Pseudo-terminals in the place of micro:bits, with names as udev gives them.
@Suite struct SerialPortTests {
  @LoopActor private final class Recorder {
    var packets: [String] = []
    var changes = 0
    var receivers: RadioReceivers?

    nonisolated init() {}

    func start(
      _ ports: Configuration.Radio.Ports, sends: Bool = false, in folder: String,
      times: (Duration, Duration, Duration) = RadioReceivers.times
    ) {
      receivers = RadioReceivers(
        ports, mayWrite: sends, in: folder, times: times,
        received: { packets, _ in self.packets += packets.map { String(decoding: $0.message, as: UTF8.self) }
        },
        changed: { self.changes += 1 })
    }

    var shown = ""

    /// All that the terminal has got.
    func receive(_ terminal: PseudoTerminal) -> String {
      shown += terminal.shown()
      return shown
    }

    /// Why nothing can be sent.
    var problem: String? { receivers?.sendProblem() }
    /// Whether the first receiver forwards values.
    var sends: Bool? { receivers?.statuses.first?.sends }
    var open: Int { receivers?.statuses.count { $0.obstacle == nil } ?? 0 }
    var obstacles: [SerialPort.Obstacle?] { receivers?.statuses.map(\.obstacle) ?? [] }
  }

  private static func name(_ digit: Character) -> String {
    "usb-Arm_BBC_micro:bit_CMSIS-DAP_9904\(String(repeating: digit, count: 44))-if01"
  }

  private static func link(_ path: String, _ name: String, in folder: String) throws {
    guard symlink(path, "\(folder)/\(name)") == 0 else { throw Failure("symlink: errno \(errno)") }
  }

  @Test func namesOfPorts() throws {
    let port = try #require(MicrobitPort(Self.name("a"), in: "/x"))
    #expect(port.path == "/x/" + Self.name("a"))
    #expect(port.board == "9904")
    let old = "usb-ARM__BBC_micro:bit_CMSIS-DAP__9900\(String(repeating: "0", count: 44))-if01"
    #expect(MicrobitPort(old, in: "/x")?.board == "9900")
    for other in [
      "usb-Arduino_Uno_9904-if01", Self.name("g"), Self.name("a") + "2", Self.name("a").dropLast() + "2",
      "usb-Arm_BBC_micro:bit_CMSIS-DAP_9904-if01", "x" + Self.name("a"),
    ] { #expect(MicrobitPort(String(other), in: "/x") == nil, "\(other)") }
  }

  /// The folder does not exist at first; the micro:bit is plugged in and out, and again.
  @Test func pluggedInAndOut() async throws {
    let root = try TemporaryFolder()
    let folder = root.path + "/serial/by-id"
    let recorder = Recorder()
    await recorder.start(.auto, in: folder)
    for round in 1...3 {
      let terminal = try PseudoTerminal()
      mkdir(root.path + "/serial", 0o755)
      mkdir(folder, 0o755)
      try Self.link(terminal.path, Self.name("a"), in: folder)
      try Self.link("/dev/null", "usb-other-if00", in: folder)
      try await eventually("the port is open") { await recorder.open == 1 }
      terminal.type("half\r\nround:\(round)\r\n")
      try await eventually("the line") { await recorder.packets.last == "round:\(round)" }
      unlink(folder + "/" + Self.name("a"))
      unlink(folder + "/usb-other-if00")
      rmdir(folder)
      rmdir(root.path + "/serial")
      try await eventually("it is gone") { await recorder.receivers?.statuses.isEmpty == true }
    }
    #expect(await recorder.packets == ["round:1", "round:2", "round:3"])
    await recorder.receivers?.stop()
  }

  /// The terminal of a port goes, while its name stays.
  @Test func hangUp() async throws {
    let root = try TemporaryFolder()
    let recorder = Recorder()
    var terminal: PseudoTerminal? = try PseudoTerminal()
    let link = root.path + "/port"
    try Self.link(try #require(terminal).path, "port", in: root.path)
    await recorder.start(.paths([link]), in: root.path)
    try await eventually("the port is open") { await recorder.open == 1 }
    terminal?.type("half\ntemp:21\nhu")
    try await eventually("the line") { await recorder.packets == ["temp:21"] }
    terminal = nil
    try await eventually("it is gone") { await recorder.obstacles == [.absent] }
    let next = try PseudoTerminal()
    unlink(link)
    try Self.link(next.path, "port", in: root.path)
    try await eventually("it is open again") { await recorder.open == 1 }
    next.type("m:1\nhum:2\n")
    try await eventually("the line") { await recorder.packets == ["temp:21", "hum:2"] }
    let status = try #require(await recorder.receivers?.statuses.first)
    #expect(status.packets == 2)
    #expect(status.malformed == 0)
    #expect(status.last != nil)
    await recorder.receivers?.stop()
  }

  /// A line that the port takes in part only does not run into the next one.
  @Test func linesThatAreTakenInPart() async throws {
    let terminal = try PseudoTerminal()
    let line = String(repeating: "x", count: 100)
    let port = await SerialPort(terminal.path, isWritten: true) { _ in }
    try await eventually("the port is open") { await port.isOpen }
    // A pseudo terminal takes what fits, and its size is the kernel's.
    var count = 0
    while await port.write(line: Array(line.utf8)) {
      count += 1
      try #require(count < 100_000)
    }
    let recorder = Recorder()
    try await eventually("there is room") {
      _ = await recorder.receive(terminal)
      return await port.write(line: Array("servo:90".utf8))
    }
    try await eventually("the last line") { await recorder.receive(terminal).hasSuffix("\nservo:90\n") }
    let other = await recorder.shown.split(separator: "\n").filter { $0 != line && $0 != "servo:90" }
    #expect(other.count <= 1 && other.allSatisfy(line.hasPrefix))
    await port.stop()
  }

  @Test func obstacles() async throws {
    let root = try TemporaryFolder()
    let file = try root.write("temp:21\n", to: "file")
    let terminal = try PseudoTerminal()
    let other = open(terminal.path, O_RDWR | O_NOCTTY)
    #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
    let recorder = Recorder()
    await recorder.start(.paths([file, terminal.path, root.path + "/none"]), in: root.path)
    try await eventually("what is wrong") { await recorder.obstacles == [.notSerial, .busy, .absent] }
    #expect(await recorder.problem?.hasPrefix("no receiver forwards values: set") == true)
    close(other)
    try await eventually("it is free") { await recorder.open == 1 }
    await recorder.receivers?.stop()
  }

  /// What is said is what is the matter: `send` is set.
  @Test func whyNothingCanBeSent() async throws {
    let root = try TemporaryFolder()
    let recorder = Recorder()
    await recorder.start(.auto, sends: true, in: root.path)
    #expect(await recorder.problem == "no receiver is plugged in")
    await recorder.receivers?.stop()
    let terminal = try PseudoTerminal()
    let port = root.path + "/port"
    await recorder.start(.paths([port]), sends: true, in: root.path)
    #expect(await recorder.problem == "the receiver cannot be used: it is not plugged in (\(port))")
    try Self.link(terminal.path, "port", in: root.path)
    try await eventually("it is open") { await recorder.open == 1 }
    #expect(await recorder.problem?.hasPrefix("the receiver has not said yet") == true)
    await recorder.receivers?.stop()
  }

  @Test func theReceiverThatHasHeardTheNameLastSends() async throws {
    let terminals = [try PseudoTerminal(), try PseudoTerminal()]
    let recorder = Recorder()
    await recorder.start(.paths(terminals.map(\.path)), sends: true, in: "/nowhere")
    try await eventually("both are open") { await recorder.open == 2 }
    try await eventually("both forward") {
      await recorder.receivers?.ask()
      for terminal in terminals { terminal.type("\nforwards\n") }
      return await recorder.receivers?.statuses.allSatisfy { $0.sends == true } == true
    }
    #expect(await recorder.problem == nil)
    let name = try #require(MicrobitName("vopez"))
    for (round, index) in [1, 0, 1].enumerated() {
      terminals[index].type("vopez,temp,\(round)\n")
      try await eventually("it is heard") { await recorder.packets.last == "temp:\(round)" }
      let line = "vopez>a:\(round)"
      #expect(await recorder.receivers?.send(Array(line.utf8), to: name) == true)
      try await eventually("it is sent") { terminals[index].shown().contains(line) }
    }
    await recorder.receivers?.stop()
  }

  /// MakeCode in a browser has taken the first answers: the receiver is asked again, and when its port was silent.
  @Test(arguments: [
    (Duration.milliseconds(20), Duration.seconds(3600)), (.seconds(3600), .milliseconds(20)),
  ])
  func aLateAnswerIsTaken(pause: Duration, silence: Duration) async throws {
    let (terminal, recorder) = (try PseudoTerminal(), Recorder())
    let times = (Duration.milliseconds(200), pause, silence)
    await recorder.start(.paths([terminal.path]), sends: true, in: "/nowhere", times: times)
    try await eventually("it has not answered") { await recorder.sends == false }
    _ = terminal.shown()
    try await eventually("it has answered") {
      if terminal.shown().contains("hello\n") { terminal.type("\nforwards\n") }
      return await recorder.sends == true
    }
    // It was opened, has not answered, and has.
    #expect(await recorder.changes == 3)
    await recorder.receivers?.stop()
  }

  /// Others may send the same text.
  @Test func anAnswerToNoQuestionIsNone() async throws {
    let (terminal, recorder) = (try PseudoTerminal(), Recorder())
    let times = (Duration.milliseconds(1), Duration.seconds(3600), Duration.seconds(3600))
    await recorder.start(.paths([terminal.path]), sends: true, in: "/nowhere", times: times)
    try await eventually("it has not answered") { await recorder.sends == false }
    terminal.type("\nforwards\ntemp:21\n")
    try await eventually("the line") { await recorder.packets == ["temp:21"] }
    #expect(await recorder.sends == false)
    await recorder.receivers?.stop()
  }

  /// A silent port is opened again, without the loss of the line that follows.
  @Test func silence() async throws {
    @LoopActor final class Events {
      var texts: [String] = []
      nonisolated init() {}
    }
    let (terminal, events) = (try PseudoTerminal(), Events())
    let path = terminal.path
    let port = await SerialPort(path, silence: .milliseconds(20)) { event in
      switch event {
      case .opened: events.texts.append("opened")
      case .resumed: events.texts.append("resumed")
      case .failed(let obstacle): events.texts.append("\(obstacle)")
      case .received: events.texts.append("received")
      }
    }
    try await eventually("opened again") {
      await events.texts.starts(with: ["opened", "resumed", "resumed"])
    }
    terminal.type("temp:21\n")
    try await eventually("the line") { await events.texts.contains("received") }
    await port.stop()
    let count = await events.texts.count { $0 == "opened" }
    #expect(count == 1)
  }

  /// Far more than a receiver can send: all arrives, in order.
  @Test func flood() async throws {
    let terminal = try PseudoTerminal()
    let recorder = Recorder()
    await recorder.start(.paths([terminal.path]), in: "/nowhere")
    try await eventually("the port is open") { await recorder.open == 1 }
    terminal.type("\n")
    for number in 0..<5000 { terminal.type("n:\(number)                    \r\n") }
    try await eventually("all lines") { await recorder.packets.count == 5000 }
    #expect(await recorder.packets == (0..<5000).map { "n:\($0)" })
    await recorder.receivers?.stop()
  }
}
