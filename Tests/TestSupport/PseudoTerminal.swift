import Glibc

/// A terminal without a person: what a program shows is read here, and what is typed is written here.
public final class PseudoTerminal: Sendable {
  /// The side of the one who types.
  let descriptor: Int32
  /// The file that a program opens as its terminal.
  public let path: String

  /// A new one, of 24 rows of 80 columns.
  public init() throws {
    descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure("/dev/ptmx: errno \(errno)") }
    var (number, isLocked): (Int32, Int32) = (0, 0)
    // TIOCSPTLCK and TIOCGPTN of ioctl_tty(2), whose macros Swift does not import.
    guard ioctl(descriptor, 0x4004_5431, &isLocked) == 0, ioctl(descriptor, 0x8004_5430, &number) == 0 else {
      throw Failure("no pseudo terminal: errno \(errno)")
    }
    path = "/dev/pts/\(number)"
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(descriptor, UInt(TIOCSWINSZ), &size)
    // Or Ctrl-C discards what has been shown and not been read: also what the program shows because of it, as the
    // kernel sends the signal first (`isig` of drivers/tty/n_tty.c).
    var settings = termios()
    tcgetattr(descriptor, &settings)
    settings.c_lflag |= tcflag_t(NOFLSH)
    tcsetattr(descriptor, TCSANOW, &settings)
  }

  /// Types a text: what a program that reads the terminal gets.
  public func type(_ text: some StringProtocol) { type(Array(text.utf8)) }

  /// Types bytes, and waits while the terminal holds too many that nobody has read.
  public func type(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return }
      rest = rest.dropFirst(max(0, count))
    }
  }

  /// What the program has shown since the last call, at most 4096 bytes.
  public func shown() -> String {
    var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&waiting, 1, 0) > 0 else { return "" }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  deinit { close(descriptor) }
}
