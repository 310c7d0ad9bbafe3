import CLinux
import Glibc

/// The memory of the process that lies in RAM.
public enum ResidentMemory {
  /// As the kernel counts it (proc(5), statm); nil where there is no such file.
  public static var kibibytes: Int? {
    guard let file = fopen("/proc/self/statm", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let words = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      .split(separator: " ")
    return words.count > 1 ? Int(words[1]).map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024 } : nil
  }

  /// Lets go of what the start has needed and nothing needs any more: free pieces of the heap, and code. What of the
  /// code runs again is mapped again, from the page cache as a rule, in some µs.
  ///
  /// A start runs through most of a program and its libraries once, and the kernel maps 64 KiB around each place: more
  /// than half of a small service's memory.
  public static func trim() {
    malloc_trim(0)
    for (start, size) in codeMappings() {
      // Code is mapped from its file and never written to, so nothing is lost.
      madvise(UnsafeMutableRawPointer(bitPattern: start), size, MADV_DONTNEED)
    }
  }

  /// Where code of files is mapped (proc(5), maps: `start-end r-xp offset device inode path`).
  private static func codeMappings() -> [(start: UInt, size: Int)] {
    guard let file = fopen("/proc/self/maps", "re") else { return [] }
    defer { fclose(file) }
    var mappings: [(start: UInt, size: Int)] = []
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { free(line) }
    while getline(&line, &room, file) > 0, let text = line {
      let words = String(cString: text).split(separator: " ", maxSplits: 5)
      guard words.count == 6, words[1] == "r-xp", words[4] != "0" else { continue }
      let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
      if ends.count == 2, ends[0] < ends[1] { mappings.append((ends[0], Int(ends[1] - ends[0]))) }
    }
    return mappings
  }
}
