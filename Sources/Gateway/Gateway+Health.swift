import BlueZ
import Glibc

/// How the gateway is: the answer to the request `health`.
extension Gateway {
  var health: JSONValue {
    let problems = self.problems
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "run": .string(run.description),
      "version": .string(Version.current),
      "uptime": .integer(Int(Timestamp.now.milliseconds - started.milliseconds) / 1000),
      "resident_kib": Self.residentMemory.map(JSONValue.integer),
      "adapter": .string(adapter.word),
      "devices": ["known": .integer(byID.count), "online": .integer(liveCount)],
    ]
  }

  /// What keeps the gateway from doing its work; that it can be asked shows that the broker is none of it.
  private var problems: [String] {
    var problems: [String] = []
    if !adapter.isOn { problems.append("the adapter is \(adapter.word)") }
    if let trouble = memory.trouble { problems.append("the state is not kept: \(trouble)") }
    return problems
  }

  /// In KiB, as the kernel counts it (proc(5), statm).
  private static var residentMemory: Int? {
    guard let file = fopen("/proc/self/statm", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let words = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      .split(separator: " ")
    return words.count > 1 ? Int(words[1]).map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024 } : nil
  }
}
