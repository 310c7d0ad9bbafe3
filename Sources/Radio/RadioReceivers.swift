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
    /// When the last packet came.
    package var last: Timestamp?
    /// Why nothing can be read; nil: it can.
    package var obstacle: SerialPort.Obstacle?
  }

  /// The maximum number of receivers; further ones are left out.
  package nonisolated static let most = 8

  @LoopActor private final class Receiver {
    var status: Status
    var lines = RadioLines()
    var port: SerialPort?

    /// Who has sent what comes without a sender.
    let sender: RadioSender

    init(_ path: String, board: String?) {
      status = Status(port: path, board: board, obstacle: .absent)
      // FNV-1a.
      sender = .receiver(path.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 })
    }
  }

  private let received: @LoopActor ([RadioPacket], _ port: String) -> Void
  private let changed: @LoopActor () -> Void
  private let log = Logger(component: "radio")
  private var receivers: [Receiver] = []
  private var ports: SerialPorts?

  /// - Parameters:
  ///   - folder: where the ports are found; another one than udev's only in tests.
  ///   - received: called with what has come at once from a receiver.
  ///   - changed: called when a receiver comes, goes, or cannot be read.
  package init(
    _ ports: Configuration.Radio.Ports, in folder: String = MicrobitPort.folder,
    received: @escaping @LoopActor ([RadioPacket], _ port: String) -> Void,
    changed: @escaping @LoopActor () -> Void = {}
  ) {
    self.received = received
    self.changed = changed
    switch ports {
    case .auto: self.ports = SerialPorts(in: folder) { [weak self] in self?.found($0) }
    case .paths(let paths): for path in paths.prefix(Self.most) { add(path, board: Self.board(path)) }
    }
  }

  private static func board(_ path: String) -> String? {
    path.split(separator: "/").last.flatMap { MicrobitPort(String($0), in: "") }?.board
  }

  package var statuses: [Status] { receivers.map(\.status) }

  /// No more calls.
  package func stop() {
    ports?.stop()
    for receiver in receivers { receiver.port?.stop() }
    receivers = []
  }

  private func found(_ ports: [MicrobitPort]) {
    for receiver in receivers where !ports.contains(where: { $0.path == receiver.status.port }) {
      receiver.port?.stop()
      if receiver.status.obstacle == nil { log.notice("receiver unplugged", ["port": receiver.status.port]) }
    }
    receivers.removeAll { receiver in !ports.contains { $0.path == receiver.status.port } }
    for port in ports where !receivers.contains(where: { $0.status.port == port.path }) {
      guard receivers.count < Self.most else {
        log.warning("too many receivers: it is not read", ["port": port.path, "limit": Self.most])
        continue
      }
      add(port.path, board: port.board)
    }
    changed()
  }

  private func add(_ path: String, board: String?) {
    let receiver = Receiver(path, board: board)
    receivers.append(receiver)
    receiver.port = SerialPort(path) { [weak self, weak receiver] event in
      guard let self, let receiver else { return }
      handle(event, of: receiver)
    }
  }

  private func handle(_ event: SerialPort.Event, of receiver: Receiver) {
    switch event {
    case .received(let bytes): receive(bytes, from: receiver)
    case .resumed: receiver.lines.resumed()
    case .opened:
      receiver.lines.opened()
      receiver.status.obstacle = nil
      log.notice(
        "reading a receiver", ["port": receiver.status.port, "board": receiver.status.board ?? "unknown"])
      changed()
    case .failed(let obstacle):
      let before = receiver.status.obstacle
      receiver.status.obstacle = obstacle
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
    receiver.status.malformed = receiver.lines.malformed
    guard !packets.isEmpty else { return }
    receiver.status.packets += UInt64(packets.count)
    receiver.status.last = .now
    // Packets without a sender are of many, each with a clock of its own.
    for index in packets.indices where packets[index].sender == nil {
      (packets[index].sender, packets[index].time) = (receiver.sender, nil)
    }
    received(packets, receiver.status.port)
  }
}
