import Configuration
import EventLoop
import GATT
import Log

/// The wired micro:bits that print what others send by radio.
@LoopActor package final class RadioReceivers {
  /// What `info` says of a receiver.
  package struct Status: Sendable, Equatable {
    package let port: String
    /// See ``MicrobitPort/board``; nil: the configuration names the port, and not as udev does.
    package let board: String?
    package var packets: UInt64 = 0
    package var malformed: UInt64 = 0
    /// ``packets`` and ``malformed`` of the last hundreds of lines.
    package var recent = Counts()
    /// When the last packet came.
    package var last: Timestamp?
    /// When it has printed anything last.
    var lastBytes: Timestamp?
    /// Whether its program forwards what is written to it; nil: it was not asked, or may still answer; false: it has
    /// not answered so far.
    package var sends: Bool?
    /// Why nothing can be read; nil: it can.
    package var obstacle: SerialPort.Obstacle?
  }

  package struct Counts: Sendable, Equatable {
    package var packets: UInt64 = 0
    package var malformed: UInt64 = 0

    /// What is older counts less and less.
    mutating func add(_ packets: UInt64, _ malformed: UInt64) {
      self.packets += packets
      self.malformed += malformed
      if self.packets + self.malformed > 400 {
        (self.packets, self.malformed) = (self.packets / 2, self.malformed / 2)
      }
    }
  }

  /// How often the folder of the ports is read, if the configuration does not name them.
  private nonisolated static let interval = Duration.seconds(1)
  /// The maximum number of receivers; further ones are left out.
  package nonisolated static let most = 8

  @LoopActor private final class Receiver {
    var status: Status
    var lines = RadioLines()
    var port: SerialPort?
    /// Asks again whether its program forwards lines.
    var timer: LoopTimer?
    /// Whether it may still answer the last question.
    var isAsked = false
    /// When it has heard the senders with these names last.
    var heard: [MicrobitName: Moment] = [:]

    /// Who has sent what comes without a sender.
    let sender: RadioSender

    init(_ path: String, board: String?) {
      status = Status(port: path, board: board, obstacle: .absent)
      sender = .receiver(UInt32(truncatingIfNeeded: Digest.of(Array(path.utf8))))
    }
  }

  /// What is written to ask whether the program forwards lines, and what it prints if so.
  private nonisolated static let (question, answer) = ("hello", Array("forwards".utf8))
  private nonisolated static let mostQuestions = 5
  /// How long an answer is awaited, how long it is until the next question if there was none to so many, and
  /// ``SerialPort/silence``.
  package nonisolated static let times = (
    patience: Duration.seconds(2), pause: Duration.seconds(60), silence: SerialPort.silence
  )

  /// How many senders a receiver is known to hear; then it is learnt anew.
  private nonisolated static let mostHeard = 256

  private let mayWrite: Bool
  private let times: (patience: Duration, pause: Duration, silence: Duration)
  private let received: @LoopActor ([RadioPacket], _ port: String) -> Void
  private let changed: @LoopActor () -> Void
  private let log = Logger(component: "radio")
  private var receivers: [Receiver] = []
  /// Looks which micro:bits are plugged in.
  private var timer: LoopTimer?

  /// - Parameters:
  ///   - mayWrite: whether anything may be written to a port.
  ///   - folder: where the ports are found; another one than udev's only in tests.
  ///   - times: shorter ones only in tests.
  ///   - received: called with what has come at once from a receiver.
  ///   - changed: called when a receiver comes, goes, or cannot be read.
  package init(
    _ ports: Configuration.Radio.Ports, mayWrite: Bool = false, in folder: String = MicrobitPort.folder,
    times: (patience: Duration, pause: Duration, silence: Duration) = times,
    received: @escaping @LoopActor ([RadioPacket], _ port: String) -> Void,
    changed: @escaping @LoopActor () -> Void = {}
  ) {
    self.mayWrite = mayWrite
    self.times = times
    self.received = received
    self.changed = changed
    switch ports {
    case .auto: timer = loop.timer(after: .zero) { [weak self] in self?.look(in: folder) }
    case .paths(let paths): for path in paths.prefix(Self.most) { add(path) }
    }
  }

  package var statuses: [Status] { receivers.map(\.status) }

  /// No more calls.
  package func stop() {
    timer?.cancel()
    for receiver in receivers { end(receiver) }
    receivers = []
  }

  private func look(in folder: String, before: [MicrobitPort] = []) {
    let ports = MicrobitPort.all(in: folder)
    timer = loop.timer(after: Self.interval) { [weak self] in self?.look(in: folder, before: ports) }
    if ports != before { found(ports) }
  }

  private func found(_ ports: [MicrobitPort]) {
    for receiver in receivers where !ports.contains(where: { $0.path == receiver.status.port }) {
      end(receiver)
      if receiver.status.obstacle == nil { log.notice("receiver unplugged", ["port": receiver.status.port]) }
    }
    receivers.removeAll { receiver in !ports.contains { $0.path == receiver.status.port } }
    for port in ports where !receivers.contains(where: { $0.status.port == port.path }) {
      guard receivers.count < Self.most else {
        log.warning("too many receivers: it is not read", ["port": port.path, "limit": Self.most])
        continue
      }
      add(port.path)
    }
    changed()
  }

  private func end(_ receiver: Receiver) {
    receiver.timer?.cancel()
    receiver.port?.stop()
  }

  private func add(_ path: String) {
    let board = path.split(separator: "/").last.flatMap { MicrobitPort(String($0), in: "") }?.board
    let receiver = Receiver(path, board: board)
    receivers.append(receiver)
    receiver.port = SerialPort(path, isWritten: mayWrite, silence: times.silence) {
      [weak self, weak receiver] event in
      guard let self, let receiver else { return }
      handle(event, of: receiver)
    }
  }

  private func handle(_ event: SerialPort.Event, of receiver: Receiver) {
    switch event {
    case .received(let bytes): receive(bytes, from: receiver)
    case .resumed:
      receiver.lines.resumed()
      if receiver.status.sends == false { ask(receiver, Self.mostQuestions) }
    case .opened:
      receiver.lines.opened()
      receiver.status.obstacle = nil
      ask(receiver)
      log.notice(
        "reading a receiver", ["port": receiver.status.port, "board": receiver.status.board ?? "unknown"])
      changed()
    case .failed(let obstacle):
      let before = receiver.status.obstacle
      receiver.status.obstacle = obstacle
      receiver.status.sends = nil
      receiver.timer?.cancel()
      if obstacle != .absent {
        log.warning("a receiver cannot be read: \(obstacle)", ["port": receiver.status.port])
      } else {
        log.notice(
          before == nil ? "receiver unplugged" : "waiting for a receiver", ["port": receiver.status.port])
      }
      changed()
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, from receiver: Receiver) {
    var packets = receiver.lines.append(bytes)
    receiver.status.recent.add(UInt64(packets.count), receiver.lines.malformed - receiver.status.malformed)
    receiver.status.malformed = receiver.lines.malformed
    receiver.status.lastBytes = .now
    if mayWrite { takeAnswers(from: &packets, of: receiver) }
    // What another receiver has sent is no value of the one that it is for.
    packets.removeAll(where: \.isCommand)
    guard !packets.isEmpty else { return }
    receiver.status.packets += UInt64(packets.count)
    receiver.status.last = .now
    // Packets without a sender are of many, each with a clock of its own.
    for index in packets.indices where packets[index].sender == nil {
      (packets[index].sender, packets[index].time) = (receiver.sender, nil)
    }
    if mayWrite { note(packets, heardBy: receiver) }
    received(packets, receiver.status.port)
  }

  // MARK: Sending

  /// Whether there is a receiver whose program forwards lines.
  package var canSend: Bool { receivers.contains { $0.status.sends == true } }

  /// Why no receiver can forward a value now; nil: one can. If all have been asked in vain, they are asked again.
  package func sendProblem() -> String? {
    if canSend { return nil }
    guard mayWrite else {
      return
        "no receiver forwards values: set \"send\" of \"radio\" to true in config.json, and put the program that forwards on it (docs/radio.md)"
    }
    let readable = receivers.filter { $0.status.obstacle == nil }
    guard !readable.isEmpty else {
      let reasons = receivers.compactMap { receiver in
        receiver.status.obstacle.map { "\($0) (\(receiver.status.port))" }
      }
      return reasons.isEmpty
        ? "no receiver is plugged in" : "the receiver cannot be used: \(reasons.joined(separator: "; "))"
    }
    if readable.contains(where: { $0.status.sends == nil }) {
      return "the receiver has not said yet whether it forwards values: try again in some seconds"
    }
    ask()
    return
      "the receiver's program does not forward values: put the program that forwards on it (docs/radio.md)"
  }

  /// Asks the receivers that have not answered whether they forward lines.
  func ask() {
    for receiver in receivers where receiver.status.sends == false {
      receiver.status.sends = nil
      ask(receiver)
    }
  }

  /// A program that was just started may not read yet, so it is asked several times; then seldom, as MakeCode in a
  /// browser on this computer may have taken the answers.
  private func ask(_ receiver: Receiver, _ count: Int = 1) {
    guard mayWrite, receiver.status.sends != true, receiver.status.obstacle == nil else { return }
    let isAsked = count <= Self.mostQuestions
    receiver.isAsked = isAsked
    receiver.timer?.cancel()
    receiver.timer = loop.timer(after: isAsked ? times.patience : times.pause) { [weak self, weak receiver] in
      if let self, let receiver { ask(receiver, isAsked ? count + 1 : Self.mostQuestions) }
    }
    if isAsked {
      _ = receiver.port?.write(line: Array(Self.question.utf8))
    } else if receiver.status.sends == nil {
      receiver.status.sends = false
      changed()
    }
  }

  private func takeAnswers(from packets: inout [RadioPacket], of receiver: Receiver) {
    let before = packets.count
    packets.removeAll { $0.sender == nil && $0.message == Self.answer }
    // Anybody can send this text: it is an answer only while one is awaited.
    guard packets.count < before, receiver.isAsked else { return }
    receiver.isAsked = false
    receiver.timer?.cancel()
    receiver.status.sends = true
    log.notice("the receiver forwards values", ["port": receiver.status.port])
    changed()
  }

  private func note(_ packets: [RadioPacket], heardBy receiver: Receiver) {
    for name in packets.compactMap({ $0.sender?.name }) {
      if receiver.heard[name] == nil, receiver.heard.count >= Self.mostHeard { receiver.heard = [:] }
      receiver.heard[name] = .now
    }
  }

  /// Has a text sent by the receiver that has heard a sender of this name last, else by any that forwards.
  /// - Returns: whether a port has taken it.
  package func send(_ text: [UInt8], to name: MicrobitName) -> Bool {
    let able = receivers.filter { $0.status.sends == true }
    let best = able.max { first, second in
      guard let later = second.heard[name] else { return false }
      return first.heard[name].map { $0 < later } ?? true
    }
    return best?.port?.write(line: text) ?? false
  }
}
