import Findings
import GATT
import Glibc
import Log

extension RadioReceivers.Status {
  /// The time after which a receiver without a line is reported.
  private static let silence: Int64 = 60_000

  /// What is known of the receiver, and what to do if nothing can be read, or nothing comes.
  package func finding(at now: Timestamp) -> Finding {
    if let obstacle { return obstacle.finding(of: port) }
    guard let lastBytes else {
      return .warning(.radio, "the receiver has printed nothing yet (\(port))", remedy: Self.program)
    }
    func isLongAgo(_ time: Timestamp) -> Bool { now.milliseconds - time.milliseconds > Self.silence }
    if isLongAgo(lastBytes) {
      return .warning(
        .radio,
        "the receiver has printed nothing for a minute: nobody sends, or it does not hear them (\(port))",
        remedy: "if micro:bits are on and send, \(Self.program)")
    }
    if last.map(isLongAgo) ?? true {
      return .warning(
        .radio, "the receiver prints, but no line that can be read (\(port))",
        remedy: "\(Self.program); a program of your own ends each line: serial write line")
    }
    if sends == false {
      return .warning(
        .radio, "the receiver's program does not forward values (\(port))",
        remedy:
          "put the program that forwards on it (docs/radio.md), or remove \"send\" of \"radio\" from config.json"
      )
    }
    if recent.malformed >= 10, recent.malformed * 10 > recent.packets {
      return .warning(
        .radio,
        "of the last \(recent.malformed + recent.packets) lines of the receiver \(recent.malformed) could not be read (\(port))",
        remedy: "end the connection of MakeCode, or of another editor, to it in a browser on this computer")
    }
    return .ok(.radio, "the receiver has printed \(packets) lines (\(port))")
  }

  private static let program =
    "put the receiver's program on it (docs/radio.md), with the group of the senders, and press its reset button"
}

extension SerialPort.Obstacle {
  /// Why a port cannot be read now; nil: it can be. Nothing is changed at the port.
  package init?(at path: String) {
    let descriptor = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      self.init(errno)
      return
    }
    defer { close(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) != 0 else { return nil }
    self.init(errno)
  }

  /// The obstacle in plain words, and its remedy.
  package func finding(of port: String) -> Finding {
    let remedy =
      switch self {
      case .absent, .notSerial: #"plug it in; or correct "ports" in config.json, or set it to "auto""#
      case .denied:
        "let the gateway's user use it: sudo usermod --append --groups dialout USER, and log in again; "
          + "or use the service, which may"
      case .busy: "end what shows its output: Mu, Thonny, screen, minicom, another gateway"
      case .other: "unplug it, and plug it in again"
      }
    return .fault(.radio, "the receiver cannot be read: \(self) (\(port))", remedy: remedy)
  }
}

extension Finding {
  /// Micro:bits are heard that are no devices: at least one.
  package static func strangers(_ senders: [RadioSender]) -> Finding {
    let names = senders.map { $0.name?.description ?? $0.description }
    return .warning(
      .radio,
      (names.count == 1
        ? "a micro:bit is heard by radio, but has not joined: "
        : "\(names.count) micro:bits are heard by radio, but have not joined: ")
        + names.prefix(8).joined(separator: ", ") + (names.count > 8 ? " …" : ""),
      remedy:
        "let them join: sudo microbit-gateway permit-join; or one: sudo microbit-gateway add radio:\(senders[0]); "
        + "or if they are not yours, choose another group, not 0, in your programs")
  }

  /// Radio is enabled, and no receiver is plugged in.
  package static let noReceiver = Finding.warning(
    .radio, "no micro:bit is found on USB, and radio is enabled",
    remedy: "plug in the receiver with a cable that carries data; a container has to be given its port")
}
