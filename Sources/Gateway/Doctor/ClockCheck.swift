import Findings
import Log

/// Whether the times of readings can be right. Blocks when it is made.
struct ClockCheck {
  var now = Timestamp.now
  /// Whether the clock is synchronised; nil: not known.
  var isSynchronised: Bool? = ["yes\n": true, "no\n": false][
    SystemProgram.run("timedatectl show --property=NTPSynchronized --value 2> /dev/null").output]

  func run() -> Finding {
    let remedy = "sudo timedatectl set-ntp true; timedatectl shows the result"
    let year = String(now.description.prefix(4))
    guard (2025..<2100).contains(Int(year) ?? 0) else {
      return .fault(.clock, "the clock shows the year \(year): readings get wrong times", remedy: remedy)
    }
    if isSynchronised == false {
      return .warning(.clock, "the clock is not synchronised: readings may get wrong times", remedy: remedy)
    }
    return .ok(.clock, isSynchronised == nil ? "the clock is plausible" : "the clock is synchronised")
  }
}
