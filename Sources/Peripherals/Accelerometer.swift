import EventLoop

/// The accelerometer of a micro:bit V2: the timing of its samples.
package struct Accelerometer: Sendable {
  /// The chip's periods in µs (LSM303 in codal-core; `CodalUtil` selects the shortest that is not too short).
  private static let periods = [617, 744, 2500, 5000, 10_000, 20_000, 40_000, 100_000, 1_000_000]
  private static let defaultPeriod = Duration.milliseconds(20)

  /// When samples are taken.
  var sampler: Sampler
  /// Whether there is the number of samples in place of the acceleration along x.
  private let counts: Bool
  /// How many samples were taken while there were subscribers.
  private var samples = 0

  package init(counts: Bool = false, at now: Moment) {
    self.counts = counts
    sampler = Sampler(Self.defaultPeriod, at: now)
  }

  /// The bytes of a sample that counts; nil for those that were set.
  package var counted: [UInt8]? { counts ? [UInt8(truncatingIfNeeded: samples), 0, 0, 0, 0, 0] : nil }

  /// Two samples are never the same, even at rest: each axis differs by up to 8 mg.
  func withNoise(_ value: [UInt8]) -> [UInt8] {
    stride(from: 0, to: value.count - 1, by: 2).flatMap { at -> [UInt8] in
      let noise = (samples &* 7919 &+ at &* 104_729) % 17 - 8
      let axis = Int16(littleEndianBytes: value[at...(at + 1)]) ?? 0
      return (axis &+ Int16(noise)).littleEndianBytes
    }
  }

  /// The period in ms as read back: the chip's, rounded down.
  package var period: UInt16 { UInt16(sampler.interval / .milliseconds(1)) }

  package mutating func sample(at now: Moment) {
    sampler.sample(at: now)
    samples += 1
  }

  /// Effective at once.
  package mutating func setPeriod(_ new: UInt16, at now: Moment) {
    sampler = Sampler(.microseconds(Self.periods.first { $0 >= Int(new) * 1000 } ?? 1_000_000), at: now)
  }

  /// The reset button: the period is reset, and sampling starts again.
  package mutating func reset(at now: Moment) { sampler = Sampler(Self.defaultPeriod, at: now) }
}
