import Devices
import EventLoop
import Log

/// The last 24 hours of each number: at most one point a minute, and all of them in a fixed amount of memory.
///
/// The times of the history go on evenly from its begin, even if the host's clock is set; ``shift(at:_:)`` converts them to
/// times of that clock.
struct History: Sendable {
  static let minutes = 24 * 60
  /// The most bytes of all points; with more values, each point is for more minutes.
  static let mostBytes = 2 << 20
  private static let mostPoints = mostBytes / MemoryLayout<Float>.size

  private let begin: ClockTime
  /// How many minutes a point is for.
  private(set) var step = 1
  /// The points of each series, NaN where there is no value, each at its number modulo their count.
  private var series: [Int: [Float]] = [:]
  /// The number of the last series.
  private var last = 0
  /// The number of the newest point of all, counted since 1970.
  private var newest = 0

  private var length: Int { Self.length(step) }
  private static func length(_ step: Int) -> Int { (minutes + step - 1) / step }

  init(from moment: Moment = .now, _ time: Timestamp = .now) { begin = ClockTime(time, at: moment) }

  private func time(at moment: Moment) -> Timestamp { begin.evenly(at: moment) }

  /// What is to be added to a time of the history so that it is one of the host's clock, in whole minutes.
  func shift(at moment: Moment, _ now: Timestamp) -> Duration { begin.shift(at: moment, now) }

  /// A new series.
  mutating func add() -> Int {
    while (series.count + 1) * length > Self.mostPoints { resample(to: step + 1) }
    last += 1
    series[last] = [Float](repeating: .nan, count: length)
    return last
  }

  mutating func remove(_ index: Int) {
    series[index] = nil
    // Not as soon as there is room: values that come and go would lose points each time.
    if step > 1, series.count * Self.length(1) <= Self.mostPoints / 2 { resample(to: 1) }
  }

  /// The last value of a point counts.
  mutating func set(_ index: Int, _ value: Double, at moment: Moment) {
    let (point, length) = (number(of: time(at: moment)), length)
    if point > newest { advance(to: point) }
    series[index]?[point % length] = Float(value)
  }

  private func number(of time: Timestamp) -> Int { max(0, Int(time.milliseconds / 60_000) / step) }

  /// Forgets what is older than a day, and uses its places again.
  private mutating func advance(to point: Int) {
    let length = length
    let passed = min(length, point - newest)
    // A list: the keys themselves would keep the dictionary, and each change would copy it.
    for index in Array(series.keys) {
      // Taken out: changed in place, and not looked up for each place.
      guard var points = series[index].take() else { continue }
      for place in 0..<passed { points[(point + length - place) % length] = .nan }
      series[index] = points
    }
    newest = point
  }

  /// Makes each point one for so many minutes: one more than now; or one, and those that are there stay as far apart as they are.
  private mutating func resample(to newStep: Int) {
    let (oldStep, oldLength) = (step, length)
    step = newStep
    series = series.mapValues { old in
      var points = [Float](repeating: .nan, count: length)
      for point in max(0, newest - oldLength + 1)...newest where !old[point % oldLength].isNaN {
        points[point * oldStep / step % length] = old[point % oldLength]
      }
      return points
    }
    newest = newest * oldStep / step
  }

  /// The times of the points of the last hours, from the oldest.
  func times(hours: Int, until moment: Moment) -> [Timestamp] {
    let last = number(of: time(at: moment))
    let count = min(length, max(1, hours * 60 / step))
    return (max(0, last - count + 1)...last).map { Timestamp(milliseconds: Int64($0 * step) * 60_000) }
  }

  /// The value at a time; nil: there is none.
  func value(_ index: Int, at time: Timestamp) -> Float? {
    let point = number(of: time)
    guard point <= newest, point > newest - length else { return nil }
    return series[index].flatMap { $0[point % length].isNaN ? nil : $0[point % length] }
  }
}
