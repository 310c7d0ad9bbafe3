import Glibc

/// The temperature service of a micro:bit as its firmware behaves (codal-microbit-v2,
/// `MicroBitTemperatureService` and `MicroBitThermometer`).
///
/// It samples whether anyone listens or not.
struct MicroBit: Sendable {
  /// The period in ms, as last written: any value, not rounded, and clamped to ``leastPeriod`` alone.
  private(set) var period: UInt16
  private let leastPeriod: UInt16
  private var sampler: Sampler
  /// A temperature set from outside, in place of the simulated one.
  var pinned: Int8?
  /// Bytes to be read and notified in place of the temperature.
  var raw: [UInt8]?

  /// The samples taken, in place of a temperature; nil for the temperature.
  private var count: UInt8?

  private let born: ContinuousClock.Instant
  private let base: Double
  private let phase: Double

  init(
    index: Int, period: UInt16, leastPeriod: UInt16 = 0, counts: Bool = false,
    at now: ContinuousClock.Instant, random: inout SplitMix
  ) {
    self.period = period
    self.leastPeriod = leastPeriod
    count = counts ? 0 : nil
    born = now
    base = 20 + Double(index % 8)
    phase = Double.random(in: 0..<1, using: &random)
    let interval = Self.interval(period)
    sampler = Sampler(interval: interval, next: now + interval * phase)
  }

  /// What the period means for the cadence: 0 samples at every pass of the idle thread, about 1 ms apart.
  private static func interval(_ period: UInt16) -> Duration { .milliseconds(max(1, Int(period))) }

  // MARK: Samples

  /// When the next sample is taken. A new period begins after it.
  var nextSample: ContinuousClock.Instant { sampler.next }

  /// Passes over the samples up to now, so that ``nextSample`` lies ahead.
  mutating func settle(at now: ContinuousClock.Instant) { sampler.settle(at: now) }

  /// Takes the sample that is due, and plans the next one.
  mutating func sample(at now: ContinuousClock.Instant) -> [UInt8] {
    sampler.take(at: now)
    if let count { self.count = count &+ 1 }
    return value(at: now)
  }

  /// The temperature characteristic's bytes.
  func value(at now: ContinuousClock.Instant) -> [UInt8] {
    raw ?? [UInt8(bitPattern: temperature(at: now))]
  }

  /// Whole degrees Celsius: a slow swing of ±2.5 °C within ten minutes around a value of its own.
  func temperature(at now: ContinuousClock.Instant) -> Int8 {
    if let count { return Int8(bitPattern: count) }
    if let pinned { return pinned }
    let turns = born.duration(to: now) / .seconds(600)
    return Int8((base + 2.5 * sin(2 * .pi * (turns + phase))).rounded())
  }

  // MARK: The period characteristic

  var periodBytes: [UInt8] { [UInt8(truncatingIfNeeded: period), UInt8(period >> 8)] }

  /// A write to the period characteristic; anything but two bytes changes nothing.
  /// - Returns: whether the length was right.
  mutating func writePeriod(_ bytes: [UInt8], at now: ContinuousClock.Instant) -> Bool {
    guard bytes.count == 2 else { return false }
    settle(at: now)
    period = max(leastPeriod, UInt16(bytes[0]) | UInt16(bytes[1]) << 8)
    sampler.interval = Self.interval(period)
    return true
  }

  /// The reset button: what was held in RAM is lost, and it samples anew once it has started.
  mutating func reset(at now: ContinuousClock.Instant) {
    period = 1000
    let interval = Self.interval(period)
    sampler = Sampler(interval: interval, next: now + interval)
  }
}
