import EventLoop
import Glibc

/// The temperature service of a micro:bit as implemented by its firmware (codal-microbit-v2,
/// `MicroBitTemperatureService` and `MicroBitThermometer`). It samples whether there are subscribers or not.
package struct MicroBit: Sendable {
  /// The period in ms as last written: any value, not rounded, and at least ``minimumPeriod``.
  package private(set) var period: UInt16
  private let minimumPeriod: UInt16
  /// When samples are taken. A new period becomes effective after the next one.
  var sampler: Sampler
  /// Replaces the simulated temperature.
  package var fixedTemperature: Int8?
  /// Replaces the value of the temperature characteristic.
  package var raw: [UInt8]?

  /// The number of samples, reported instead of a temperature; nil: the temperature is reported.
  private var count: UInt8?

  private let start: Moment
  private let base: Double
  private let phase: Double

  package init(
    index: Int, period: UInt16, minimumPeriod: UInt16 = 0, counts: Bool = false,
    at now: Moment, random: inout SplitMix
  ) {
    self.period = period
    self.minimumPeriod = minimumPeriod
    count = counts ? 0 : nil
    start = now
    base = 20 + Double(index % 8)
    phase = Double.random(in: 0..<1, using: &random)
    let interval = Self.interval(period)
    sampler = Sampler(interval: interval, next: now + interval * phase)
  }

  /// The interval of the samples: with period 0 every pass of the idle thread, about 1 ms.
  private static func interval(_ period: UInt16) -> Duration { .milliseconds(max(1, Int(period))) }

  // MARK: Samples

  /// Takes the sample that is due, and schedules the next one.
  package mutating func sample(at now: Moment) -> [UInt8] {
    sampler.sample(at: now)
    if let count { self.count = count &+ 1 }
    return value(at: now)
  }

  /// The value of the temperature characteristic.
  package func value(at now: Moment) -> [UInt8] {
    raw ?? [UInt8(bitPattern: temperature(at: now))]
  }

  /// The temperature in °C: oscillates by ±2.5 °C within ten minutes.
  package func temperature(at now: Moment) -> Int8 {
    if let count { return Int8(bitPattern: count) }
    if let fixedTemperature { return fixedTemperature }
    let turns = start.duration(to: now) / .seconds(600)
    return Int8((base + 2.5 * sin(2 * .pi * (turns + phase))).rounded())
  }

  // MARK: The period

  package mutating func setPeriod(_ new: UInt16, at now: Moment) {
    sampler.skip(to: now)
    period = max(minimumPeriod, new)
    sampler.interval = Self.interval(period)
  }

  /// The reset button: RAM is cleared, and sampling starts again.
  package mutating func reset(at now: Moment) {
    period = 1000
    sampler = Sampler(Self.interval(period), at: now)
  }
}
