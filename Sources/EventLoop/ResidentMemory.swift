import CLinux
import Glibc

/// The resident memory of the process.
public enum ResidentMemory {
  /// The resident memory as the kernel reports it (proc(5), statm); nil if there is no such file.
  public static var kibibytes: Int? {
    guard let file = fopen("/proc/self/statm", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let words = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      .split(separator: " ")
    return words.count > 1 ? Int(words[1]).map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024 } : nil
  }
}
