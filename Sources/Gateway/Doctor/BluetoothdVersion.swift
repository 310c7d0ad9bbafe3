import EventLoop
import Findings
import GATT
import Glibc

/// The version of bluetoothd, and its known faults.
struct BluetoothdVersion: Comparable, CustomStringConvertible {
  let major: Int
  let minor: Int

  init(_ major: Int, _ minor: Int) { (self.major, self.minor) = (major, minor) }

  /// From `bluetoothd --version`: `5.66`.
  init?(_ text: some StringProtocol) {
    let numbers = text.split { $0 == "." || $0.isWhitespace }.map { Int($0) }
    guard numbers.count == 2, let major = numbers[0], let minor = numbers[1] else { return nil }
    self.init(major, minor)
  }

  var description: String { "\(major).\(minor)" }

  static func < (a: Self, b: Self) -> Bool { (a.major, a.minor) < (b.major, b.minor) }

  var finding: Finding {
    let faults =
      (self < Self(5, 84) ? ["stuck notifications (before 5.84)"] : [])
      + (self >= Self(5, 67) ? ["a crash after a read that waits for pairing (since 5.67)"] : [])
    let known =
      faults.isEmpty ? "" : "; the gateway works around its faults: \(faults.joined(separator: ", "))"
    return .ok(.bluetoothd, "bluetoothd \(self) is running\(known)")
  }

  /// The version of a process; nil if that is not known.
  /// - Parameter processes: `/proc`.
  static func ofProcess(_ process: Int32, _ processes: String = "/proc") async -> BluetoothdVersion? {
    await EventLoop.blocking {
      program(ofProcess: process, processes).flatMap { ofProgram($0) }
    }
  }

  /// The file that a process was started from; nil if it is not called bluetoothd, such as the simulator.
  private static func program(ofProcess process: Int32, _ processes: String) -> String? {
    guard let file = fopen("\(processes)/\(process)/cmdline", "r") else { return nil }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = fread(&buffer, 1, buffer.count - 1, file)
    let path = String(
      decoding: buffer[..<count].prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // It is run by the shell.
    let isPlain = path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || "0123456789/._-".unicodeScalars.contains($0)
    }
    return path.hasPrefix("/") && path.hasSuffix("/bluetoothd") && isPlain ? path : nil
  }

  /// Runs `bluetoothd --version`. Blocks.
  static func ofProgram(_ path: String) -> BluetoothdVersion? {
    guard let output = popen("\(path) --version 2>&1", "r") else { return nil }
    defer { pclose(output) }
    var line = [CChar](repeating: 0, count: 64)
    guard fgets(&line, Int32(line.count), output) != nil else { return nil }
    return BluetoothdVersion(
      String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }
}
