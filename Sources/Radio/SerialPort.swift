import EventLoop
import Glibc

/// A serial port that is read, whenever it is there: 115200 baud, 8N1. Opening it does not reset the micro:bit.
@LoopActor package final class SerialPort {
  /// Why nothing can be read.
  package enum Obstacle: Sendable, Equatable, CustomStringConvertible {
    /// Nothing is plugged in, or no longer.
    case absent
    /// The user of this process has no permission.
    case denied
    /// Another program uses it.
    case busy
    case notSerial
    case other(String)

    init(_ reason: Int32) {
      switch reason {
      case ENOENT, ENODEV, ENXIO, EIO, ENOTDIR: self = .absent
      case EACCES, EPERM: self = .denied
      case EBUSY, EWOULDBLOCK: self = .busy
      case ENOTTY: self = .notSerial
      default: self = .other(String(cString: strerror(reason)))
      }
    }

    package var description: String {
      switch self {
      case .absent: "it is not plugged in"
      case .denied: "no permission for it"
      case .busy: "another program uses it"
      case .notSerial: "it is not a serial port"
      case .other(let reason): reason
      }
    }
  }

  package enum Event {
    case opened
    /// The port was opened again, as nothing had come for a while: interface chips of V1 may fall silent (DAPLink#736).
    case resumed
    /// The port cannot be read, and is tried again; reported once for each cause.
    case failed(Obstacle)
    case received(UnsafeRawBufferPointer)
  }

  /// After so long without a byte the port is opened again; shorter only in tests.
  package nonisolated static let silence = Duration.seconds(60)

  package let path: String
  private let isWritten: Bool
  private let silence: Duration
  private let handler: @LoopActor (Event) -> Void
  private var descriptor: Int32 = -1
  private var isStopped = false
  private var watch: Watch?
  /// Opens the port again, or looks whether it is silent.
  private var timer: LoopTimer?
  private var backOff = BackOff(first: .milliseconds(250), longest: .seconds(10))
  private var lastByte = Moment.now
  private var obstacle: Obstacle?
  /// Whether the port has taken the beginning of a line only.
  private var isLineOpen = false

  /// Opens the port soon, and again after each failure, until ``stop()``.
  /// - Parameter isWritten: whether ``write(line:)`` is used; else the port is opened for reading alone.
  package init(
    _ path: String, isWritten: Bool = false, silence: Duration = silence,
    handler: @escaping @LoopActor (Event) -> Void
  ) {
    self.path = path
    self.isWritten = isWritten
    self.silence = silence
    self.handler = handler
    timer = loop.timer(after: .zero) { [weak self] in self?.open() }
  }

  deinit { Self.close(descriptor) }

  package var isOpen: Bool { descriptor >= 0 }

  /// No more calls.
  package func stop() {
    isStopped = true
    timer?.cancel()
    Self.close(release())
  }

  /// - Returns: what is to be closed.
  private func release() -> Int32 {
    watch?.cancel()
    watch = nil
    defer { descriptor = -1 }
    // A child process that is being started has the descriptor, too, and so would keep the lock.
    if descriptor >= 0 { flock(descriptor, LOCK_UN) }
    return descriptor
  }

  /// Closes it elsewhere: an interface chip that does not answer keeps `close` and `open` waiting, `O_NONBLOCK` or not
  /// (usb_control_msg of cdc-acm.c: 5 s).
  private nonisolated static func close(_ descriptor: Int32) {
    guard descriptor >= 0 else { return }
    if !startThread({ Glibc.close(descriptor) }) { Glibc.close(descriptor) }
  }

  /// - Parameter old: closed before, if it is one.
  private func open(closing old: Int32 = -1) {
    let (path, flags) = (path, (isWritten ? O_RDWR : O_RDONLY) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    loop.task { [weak self] in
      let result = await EventLoop.blocking {
        if old >= 0 { Glibc.close(old) }
        return Self.open(path, flags)
      }
      guard let self, !isStopped else { return Self.close(result.descriptor) }
      opened(result, isResuming: old >= 0)
    }
  }

  private nonisolated static func open(_ path: String, _ flags: Int32) -> (descriptor: Int32, reason: Int32) {
    let descriptor = Glibc.open(path, flags)
    guard descriptor >= 0 else { return (-1, errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, makeRaw(descriptor) else {
      defer { Glibc.close(descriptor) }
      return (-1, errno)
    }
    return (descriptor, 0)
  }

  private func opened(_ result: (descriptor: Int32, reason: Int32), isResuming: Bool) {
    guard result.descriptor >= 0 else { return fail(Obstacle(result.reason)) }
    descriptor = result.descriptor
    watch = loop.watch(descriptor, for: .readable) { [weak self] _ in self?.read() }
    lastByte = .now
    awaitSilence()
    obstacle = nil
    isLineOpen = false
    handler(isResuming ? .resumed : .opened)
  }

  /// Sets the line: V1's interface chips begin with 9600 baud. The modem lines have no meaning, and stay as they are.
  private nonisolated static func makeRaw(_ descriptor: Int32) -> Bool {
    var settings = termios()
    guard tcgetattr(descriptor, &settings) == 0 else { return false }
    cfmakeraw(&settings)
    settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
    settings.c_cflag &= ~tcflag_t(HUPCL | CSTOPB)
    cfsetspeed(&settings, speed_t(B115200))
    return tcsetattr(descriptor, TCSANOW, &settings) == 0
  }

  private func fail(_ reason: Obstacle) {
    Self.close(release())
    timer?.cancel()
    timer = loop.timer(after: backOff.next()) { [weak self] in self?.open() }
    guard reason != obstacle else { return }
    obstacle = reason
    handler(.failed(reason))
  }

  private func read() {
    let capacity = 4096
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
      let count = Glibc.read(descriptor, buffer.baseAddress, capacity)
      if count > 0 {
        lastByte = .now
        backOff.reset()
        handler(.received(UnsafeRawBufferPointer(rebasing: buffer[..<count])))
      } else if count == 0 {
        fail(.absent)
      } else if errno != EAGAIN, errno != EINTR {
        fail(Obstacle(errno))
      }
    }
  }

  /// Writes a line, without waiting. It has no control characters: Ctrl-C would end a program in MicroPython.
  /// - Returns: whether the port has taken all of it. Of a line that it has not, the beginning is sent as a line of its own.
  package func write(line: [UInt8]) -> Bool {
    guard isWritten, descriptor >= 0 else { return false }
    let end = [UInt8(ascii: "\n")]
    let bytes = (isLineOpen ? end : []) + line + end
    let count = Glibc.write(descriptor, bytes, bytes.count)
    if count > 0 { isLineOpen = count < bytes.count }
    return count == bytes.count
  }

  private func awaitSilence() {
    timer?.cancel()
    timer = loop.timer(after: Moment.now.duration(to: lastByte + silence)) { [weak self] in
      guard let self else { return }
      guard lastByte + silence <= .now else { return awaitSilence() }
      open(closing: release())
    }
  }
}
