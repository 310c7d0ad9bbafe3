/// Bounds the lines of each component of the program, so that a fault that repeats does not fill the disk. Pure.
struct LineLimiter {
  /// The lines that a component may write at once, and in each second after them.
  static let burst = 1000.0
  static let rate = 20.0

  private struct Source {
    var credit = LineLimiter.burst
    var last: ContinuousClock.Instant
    var leftOut = 0
  }
  private var sources: [String: Source] = [:]

  /// - Returns: how many lines of the component were left out before this one; nil: this one is left out too.
  mutating func admit(_ component: String, at now: ContinuousClock.Instant) -> Int? {
    var source = sources[component] ?? Source(last: now)
    defer { sources[component] = source }
    source.credit = min(Self.burst, source.credit + source.last.duration(to: now) / .seconds(1) * Self.rate)
    source.last = now
    guard source.credit >= 1 else {
      source.leftOut += 1
      return nil
    }
    source.credit -= 1
    defer { source.leftOut = 0 }
    return source.leftOut
  }
}
