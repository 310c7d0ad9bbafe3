import CLinux
import Glibc

/// The resident memory of the process.
public enum ResidentMemory {
  /// The resident memory as the kernel reports it (proc(5), statm); nil if there is no such file.
  public static var kibibytes: Int? {
    let line = Folder.content(ofFile: "/proc/self/statm") ?? []
    let words = String(decoding: line, as: UTF8.self).split(separator: " ")
    return words.count > 1 ? Int(words[1]).map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024 } : nil
  }
}
