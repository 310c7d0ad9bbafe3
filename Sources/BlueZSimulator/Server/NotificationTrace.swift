import Glibc
import Peripherals

/// The times of each micro:bit's last notifications, in a memory-mapped file: recording one needs no system call, which
/// would affect the measurement, and another program can read the file meanwhile.
///
/// The file has for each micro:bit, as native 64-bit words: the number of notifications sent, and for each of the 256
/// values of the first byte the CLOCK_MONOTONIC time in ns at which it was last sent. The temperature and the
/// acceleration along x count notifications, so that this byte identifies one of the last 256 of a sensor; only one of
/// the two may be subscribed to.
final class NotificationTrace {
  private static let wordsEach = 1 + 256
  private let words: UnsafeMutableBufferPointer<UInt64>

  init(path: String, microBits: Int) throws(PeripheralError) {
    let size = max(1, microBits) * Self.wordsEach * MemoryLayout<UInt64>.stride
    let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw .file(at: path) }
    defer { close(file) }
    guard ftruncate(file, size) == 0,
      let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED
    else { throw .file(at: path) }
    words = UnsafeMutableRawBufferPointer(start: memory, count: size).bindMemory(to: UInt64.self)
  }

  deinit { munmap(words.baseAddress, words.count * MemoryLayout<UInt64>.stride) }

  /// Must be called just before micro:bit `index` sends `bytes`.
  func sends(_ bytes: [UInt8], from index: Int) {
    let slot = index * Self.wordsEach
    guard slot + Self.wordsEach <= words.count, let value = bytes.first else { return }
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    words[slot + 1 + Int(value)] = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    words[slot] += 1
  }
}
