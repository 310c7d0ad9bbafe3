import Findings
import GATT
import Glibc

/// Errors of Bluetooth controllers in the kernel's messages, if this user may read them.
struct KernelCheck {
  /// Records as in Linux, Documentation/ABI/testing/dev-kmsg: `6,1234,567890123,-;Bluetooth: hci0: …`.
  var path = "/dev/kmsg"
  /// In µs since the start of the system.
  var now: Int = {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1000
  }()

  /// In µs: older messages are about problems that are over.
  private static let oldest = 24 * 3600 * 1_000_000
  private static let signs = ["tx timeout", "hardware error", "failed: -110", "failed: -112", "failed: -19"]

  func run() -> [Finding] {
    guard let text = read() else { return [] }
    let errors = text.split(separator: "\n").compactMap(message).filter { message in
      Self.signs.contains { message.hasOccurrence(of: $0) }
    }
    guard let last = errors.last else { return [.ok(.kernel, "the kernel reports no Bluetooth errors")] }
    return [
      .warning(
        .kernel,
        "the kernel reported \(errors.count) Bluetooth errors in the last 24 hours, the last one: \(last)",
        remedy: "unplug the adapter and plug it in again, or restart the machine; check its power supply")
    ]
  }

  /// The text of a recent record about Bluetooth.
  private func message(_ record: Substring) -> String? {
    guard let semicolon = record.firstIndex(of: ";") else { return nil }
    let fields = record[..<semicolon].split(separator: ",")
    let text = record[record.index(after: semicolon)...]
    guard fields.count >= 3, let time = Int(fields[2]), now - time < Self.oldest,
      text.hasPrefix("Bluetooth: ")
    else { return nil }
    return String(text)
  }

  private func read() -> String? {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    // A record is at most 8 KiB, the kernel's buffer some MiB.
    var record = [UInt8](repeating: 0, count: 8192)
    while bytes.count < 16 << 20 {
      let count = Glibc.read(descriptor, &record, record.count)
      // EPIPE: records were overwritten meanwhile; the next call returns a later one.
      if count < 0, errno == EPIPE || errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += record[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
