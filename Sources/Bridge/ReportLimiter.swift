import EventLoop
import GATT

/// Bounds how often the retained value of a property is published.
struct ReportLimiter: Sendable {
  enum Decision: Equatable {
    case publish
    /// Call ``ReportLimiter/release(at:)`` after this time.
    case wait(Duration)
    /// The change is too small; or a timer runs already, and the value waits for it.
    case skip
  }

  private let report: Property.Report
  private var published: (value: Value, time: Moment)?
  /// The newest value, to be published at the end of the interval.
  private var held: Value?

  init(_ report: Property.Report) { self.report = report }

  /// - Parameter isReading: whether the value has just been measured. If it is one of before, and the first, the next one need not
  ///   wait.
  mutating func update(_ value: Value, at now: Moment, isReading: Bool = true) -> Decision {
    guard let published else {
      self.published = (value, isReading ? now : now + (.zero - report.minInterval))
      return .publish
    }
    let isWaiting = held != nil
    guard value.differs(from: published.value, by: report.change) else {
      // Back to what was published: nothing is left to report.
      if isWaiting { held = value }
      return .skip
    }
    let rest = report.minInterval - published.time.duration(to: now)
    if rest <= .zero, !isWaiting {
      self.published = (value, now)
      return .publish
    }
    held = value
    return isWaiting ? .skip : .wait(rest)
  }

  /// The value to publish at the end of the interval; nil: it has not changed enough.
  mutating func release(at now: Moment) -> Value? {
    guard let value = held else { return nil }
    held = nil
    guard let published, value.differs(from: published.value, by: report.change) else { return nil }
    self.published = (value, now)
    return value
  }
}

extension Value {
  /// Whether a number, or a field of a record, differs by at least `change`; anything else: at all.
  fileprivate func differs(from other: Value, by change: Double) -> Bool {
    switch (self, other) {
    // Large ones may be equal as numbers of 53 bits.
    case (.integer(let a), .integer(let b)): a != b && abs(Double(a) - Double(b)) >= change
    case (.number, .number), (.integer, .number), (.number, .integer):
      Self.differ(doubleValue ?? .nan, other.doubleValue ?? .nan, by: change)
    case (.record(let a), .record(let b)):
      a.count != b.count
        || zip(a, b).contains { a, b in
          switch (a, b) {
          case (nil, nil): false
          case (let a?, let b?): a.differs(from: b, by: change)
          case (nil, _), (_, nil): true
          }
        }
    default: self != other
    }
  }

  private static func differ(_ a: Double, _ b: Double, by change: Double) -> Bool {
    a != b && !(a.isNaN && b.isNaN) && !(abs(a - b) < change)
  }
}
