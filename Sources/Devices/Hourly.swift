import EventLoop

/// Lets one line an hour into the log.
struct Hourly {
  private var last: Moment?

  /// Whether no line was logged in the last hour; then one is logged now.
  mutating func isDue(at now: Moment = .now) -> Bool {
    if let last, now < last + .seconds(3600) { return false }
    last = now
    return true
  }
}
