import EventLoop

/// Lets one line an hour into the log.
struct Hourly {
  private var last: Moment?

  /// - Returns: whether a line is to be logged now, as none was in the last hour.
  mutating func useIfDue(at now: Moment = .now) -> Bool {
    if let last, now < last + .seconds(3600) { return false }
    last = now
    return true
  }
}
