import Findings
import Glibc

/// Whether the times of readings can be right. Blocks when it is made.
struct ClockCheck {
  /// The time in seconds since 1970.
  var now = Int(time(nil))
  /// Whether the clock is synchronised; nil: not known.
  var isSynchronised: Bool? = ["yes\n": true, "no\n": false][
    SystemProgram.run("timedatectl show --property=NTPSynchronized --value 2> /dev/null").output]

  /// 2025-01-01 and 2100-01-01, in UTC.
  private static let plausible = 1_735_689_600..<4_102_444_800

  func run() -> [Finding] {
    let remedy = "sudo timedatectl set-ntp true; timedatectl shows the result"
    var now = now
    var parts = tm()
    gmtime_r(&now, &parts)
    guard Self.plausible.contains(now) else {
      return [
        .fault(
          .clock, "the clock shows the year \(1900 + parts.tm_year): readings get wrong times", remedy: remedy
        )
      ]
    }
    if isSynchronised == false {
      return [
        .warning(.clock, "the clock is not synchronised: readings may get wrong times", remedy: remedy)
      ]
    }
    return [.ok(.clock, isSynchronised == nil ? "the clock is plausible" : "the clock is synchronised")]
  }
}
