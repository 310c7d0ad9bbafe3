import Glibc

/// The time of a line.
struct LogTime {
  let time: timespec

  static var now: LogTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return LogTime(time: time)
  }

  /// `12:34:56.789`, local time.
  var clock: String {
    var (seconds, parts) = (time.tv_sec, tm())
    localtime_r(&seconds, &parts)
    return clock(parts)
  }

  /// `2026-01-02T03:04:05.678Z`.
  var rfc3339: String {
    var (seconds, parts) = (time.tv_sec, tm())
    gmtime_r(&seconds, &parts)
    return "\(1900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T\(clock(parts))Z"
  }

  private func clock(_ parts: tm) -> String {
    let milliseconds = time.tv_nsec / 1_000_000
    let zeros = milliseconds < 10 ? "00" : milliseconds < 100 ? "0" : ""
    return "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(zeros)\(milliseconds)"
  }

  private func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
