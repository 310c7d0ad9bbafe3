import EventLoop
import GATT
import Glibc
import JSON
import Peripherals

/// The port of a simulated receiver on USB: a pseudo-terminal, and a link to it by the name that udev gives the port of a
/// micro:bit.
@LoopActor public final class ReceiverPort {
  /// How many bytes wait while nobody reads; newer ones are dropped, as by DAPLink.
  private static let capacity = 512
  /// How often it is looked whether something was written to it.
  private static let interval = Duration.milliseconds(20)

  /// The path of the link.
  public let path: String
  private var receiver: RadioReceiver
  private var random: SplitMix
  /// The pseudo-terminal; -1 while it is unplugged.
  private var terminal: Int32 = -1
  private var unsent: [UInt8] = []
  private var dropped = 0
  private var written = 0
  private var timer = DeadlineTimer()

  /// Plugs the receiver in.
  /// - Parameter folder: for the link; it must exist.
  package init(_ scenario: RadioScenario, folder: String, seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    // 9904: a V2.
    let digits = (0..<22).map { _ in UInt8.random(in: 0...255, using: &random) }
    self.random = random
    path = "\(folder)/usb-Arm_BBC_micro:bit_CMSIS-DAP_9904\(Hexadecimal.text(digits))-if01"
    receiver = RadioReceiver(scenario, at: .now, seed: seed)
    try plug()
    run()
  }

  private func plug() throws {
    guard terminal < 0 else { return }
    let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard terminal >= 0 else { throw PeripheralError.file(at: "/dev/ptmx") }
    var (number, isLocked): (Int32, Int32) = (0, 0)
    // TIOCSPTLCK and TIOCGPTN of ioctl_tty(2), whose macros Swift does not import.
    _ = ioctl(terminal, 0x4004_5431, &isLocked)
    _ = ioctl(terminal, 0x8004_5430, &number)
    // Or what is printed would be echoed until the reader has switched that off.
    var settings = termios()
    tcgetattr(terminal, &settings)
    cfmakeraw(&settings)
    tcsetattr(terminal, TCSANOW, &settings)
    // Only one that was open once is known as closed.
    close(open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC))
    unlink(path)
    guard symlink("/dev/pts/\(number)", path) == 0 else {
      close(terminal)
      throw PeripheralError.file(at: path)
    }
    self.terminal = terminal
  }

  /// Unplugs it.
  public func stop() {
    guard terminal >= 0 else { return }
    unlink(path)
    close(terminal)
    (terminal, unsent) = (-1, [])
  }

  private func run() {
    let now = Moment.now
    takeInput(at: now)
    send(receiver.advance(to: now))
    let next = [receiver.nextEvent, isOpen ? now + Self.interval : nil].compactMap(\.self).min()
    timer.set(next) { [weak self] in self?.run() }
  }

  private func takeInput(at now: Moment) {
    guard terminal >= 0 else { return }
    var input = [UInt8](repeating: 0, count: 4096)
    let count = max(0, read(terminal, &input, input.count))
    written += count
    receiver.take(input.prefix(count), at: now)
  }

  private var isOpen: Bool {
    guard terminal >= 0 else { return false }
    var state = pollfd(fd: terminal, events: 0, revents: 0)
    return poll(&state, 1, 0) >= 0 && state.revents & Int16(POLLHUP) == 0
  }

  private func send(_ bytes: [UInt8]) {
    guard terminal >= 0 else { return }
    unsent += bytes
    if isOpen { unsent.removeFirst(max(0, write(terminal, unsent, unsent.count))) }
    guard unsent.count > Self.capacity else { return }
    let kept = Self.capacity - RadioReceiver.overflow.count
    dropped += unsent.count - kept
    unsent = unsent.prefix(kept) + RadioReceiver.overflow
  }

  // MARK: Control

  func control(_ request: ControlRequest) throws -> JSONValue {
    let (now, index) = (Moment.now, request.i)
    let names = receiver.names
    guard names.indices.contains(index) else { return .error("no sender \(index)") }
    switch request.action {
    case .plug: try plug()
    case .unplug: stop()
    case .press where request.all:
      // One after the other within this time, in any order.
      let order = names.indices.shuffled(using: &random)
      let step = Duration.milliseconds(request.ms ?? 50) / names.count
      for (place, sender) in order.enumerated() { receiver.press(sender, at: now + step * place) }
      run()
      return .array(order.map { .string(names[$0]) })
    case .press: receiver.press(index, at: now)
    case .write: send(request.bytes ?? [])
    case nil: break
    }
    run()
    let counts = receiver.counts
    return [
      "collided": .integer(counts.collided), "dropped": .integer(dropped),
      "forwarded": .integer(counts.forwarded), "lost": .integer(counts.lost),
      "names": .array(names.map(JSONValue.string)), "open": .bool(isOpen),
      "overrun": .integer(counts.overrun), "path": .string(path), "printed": .integer(counts.printed),
      "sent": .integer(counts.sent), "written": .integer(written),
    ]
  }
}
