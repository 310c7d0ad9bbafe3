import BlueZ
import EventLoop
import JSON

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
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapter": .string(adapter.word),
      "devices": ["known": .integer(byID.count), "online": .integer(liveCount)],
    ]
  }

  /// What keeps the gateway from doing its work; that it can be asked shows that the broker is none of it.
  private var problems: [String] {
    var problems: [String] = []
    if !adapter.isOn { problems.append("the adapter is \(adapter.word)") }
    if let trouble = memory.trouble { problems.append("changes will be lost on restart: \(trouble)") }
    return problems
  }
}
