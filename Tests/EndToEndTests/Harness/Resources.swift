import Glibc
import TestSupport

/// What the gateway's process uses.
extension Fixture {
  /// RssAnon of the gateway: its memory without the resident pages of program files.
  var anonymousKilobytes: Int { get throws { try kilobytes("RssAnon") } }

  /// The most that was ever resident, with the pages of program files, which hardly differ between two runs.
  var peakKilobytes: Int { get throws { try kilobytes("VmHWM") } }

  private func kilobytes(_ field: String) throws -> Int {
    let path = "/proc/\(try gateway.pid)/status"
    guard let file = fopen(path, "r") else { throw Failure("\(path): errno \(errno)") }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 4096)
    while fgets(&buffer, Int32(buffer.count), file) != nil {
      let line = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      if line.hasPrefix(field + ":"), let number = line.split(whereSeparator: { !$0.isNumber }).first {
        return Int(number) ?? 0
      }
    }
    throw Failure("no \(field) in \(path)")
  }
}
