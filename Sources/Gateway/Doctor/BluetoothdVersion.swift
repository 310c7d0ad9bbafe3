import Configuration
import Findings

/// The version of bluetoothd, and its known faults.
struct BluetoothdVersion: Comparable, CustomStringConvertible {
  let major: Int
  let minor: Int

  init(_ major: Int, _ minor: Int) { (self.major, self.minor) = (major, minor) }

  /// Reads the output of `bluetoothd --version`: `5.66`.
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
      + (self == Self(5, 87)
        ? ["crashes while another program scans for services, and when a link ends (5.87)"] : [])
    let known =
      faults.isEmpty ? "" : "; the gateway works around its faults: \(faults.joined(separator: ", "))"
    return .ok(.bluetoothd, "bluetoothd \(self) is running\(known)")
  }

  /// The version of a process; nil if that is not known. Blocks.
  /// - Parameter processes: `/proc`.
  static func ofProcess(_ process: Int32, _ processes: String = "/proc") -> BluetoothdVersion? {
    // The file that it was started from: not the simulator's.
    guard let words = try? FileProblem.read("\(processes)/\(process)/cmdline") else { return nil }
    let path = String(decoding: words.prefix { $0 != 0 }, as: UTF8.self)
    guard path.hasPrefix("/"), path.hasSuffix("/bluetoothd") else { return nil }
    return BluetoothdVersion(SystemProgram.run("\(path.shellWord) --version").output)
  }
}
