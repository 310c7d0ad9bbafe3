import EventLoop
import Testing

@testable import Peripherals

/// The firmware's behaviour: valid periods, when a new period takes effect, and the state after a reset.
@Suite struct MicroBitTests {
  private static let start = Moment.now

  private func microBit(period: UInt16 = 1000, seed: UInt64 = 1) -> MicroBit {
    var random = SplitMix(seed: seed)
    return MicroBit(index: 0, period: period, at: Self.start, random: &random)
  }

  @Test func newPeriodStartsAfterNextSample() {
    var microBit = microBit()
    let planned = microBit.sampler.next
    #expect(planned > Self.start && planned <= Self.start + .seconds(1))
    microBit.setPeriod(500, at: Self.start)
    #expect(microBit.sampler.next == planned)
    _ = microBit.sample(at: planned)
    #expect(microBit.sampler.next == planned + .milliseconds(500))
  }

  @Test(arguments: [[], [1], [1, 2, 3], Array(repeating: 1, count: 600)] as [[UInt8]])
  func periodNotOfTwoBytesIsRejected(_ bytes: [UInt8]) throws {
    var values = PeripheralValues(
      .microBit(serial: 1, [.temperature]), microBit: microBit(), at: Self.start)
    let characteristic = try #require(values.database.characteristic(.microbit(0x1B25)))
    let accepted = values.write(bytes, to: characteristic, at: Self.start)
    #expect(!accepted)
    #expect(values.microBit?.period == 1000)
  }

  @Test(arguments: [0, 1, 7, 255, 256, 40_000, 65_535] as [UInt16])
  func periodReadsBackAsWritten(_ period: UInt16) throws {
    var values = PeripheralValues(
      .microBit(serial: 1, [.temperature]), microBit: microBit(), at: Self.start)
    let characteristic = try #require(values.database.characteristic(.microbit(0x1B25)))
    let bytes = [UInt8(period & 0xFF), UInt8(period >> 8)]
    let accepted = values.write(bytes, to: characteristic, at: Self.start)
    #expect(accepted)
    #expect(values.value(of: characteristic, at: Self.start) == bytes)
    #expect(values.microBit?.period == period)
  }

  @Test(arguments: [(0, 100), (99, 100), (100, 100), (101, 101)] as [(UInt16, UInt16)])
  func periodBelowMinimumBecomesMinimum(written: UInt16, expected: UInt16) {
    var random = SplitMix(seed: 1)
    var microBit = MicroBit(index: 0, period: 1000, minimumPeriod: 100, at: Self.start, random: &random)
    microBit.setPeriod(written, at: Self.start)
    #expect(microBit.period == expected)
  }

  @Test func skippedSamplesDoNotShiftLaterOnes() {
    var microBit = microBit()
    let first = microBit.sampler.next
    microBit.sampler.skip(to: first + .milliseconds(2500))
    #expect(microBit.sampler.next == first + .seconds(3))
    // A sample that is due at exactly this time is skipped too.
    microBit.sampler.skip(to: first + .seconds(3))
    #expect(microBit.sampler.next == first + .seconds(4))
    microBit.sampler.skip(to: first + .milliseconds(3001))
    #expect(microBit.sampler.next == first + .seconds(4))
  }

  @Test func missedSamplesAreNotSentLater() {
    var microBit = microBit()
    let first = microBit.sampler.next
    _ = microBit.sample(at: first + .milliseconds(10))
    #expect(microBit.sampler.next == first + .seconds(1))
    _ = microBit.sample(at: first + .seconds(100))
    #expect(microBit.sampler.next == first + .seconds(101))
  }

  @Test func resetRestoresDefaultPeriod() {
    var microBit = microBit(period: 50)
    microBit.reset(at: Self.start)
    #expect(microBit.period == 1000)
    #expect(microBit.sampler.next == Self.start + .seconds(1))
  }

  @Test func theTemperatureIsPlausibleSlowAndRepeatable() {
    let one = microBit(seed: 7)
    let same = microBit(seed: 7)
    var previous = one.temperature(at: Self.start)
    var seen: Set<Int8> = []
    for minute in 0..<60 {
      let now = Self.start + .seconds(minute * 60)
      let value = one.temperature(at: now)
      #expect((15...30).contains(value))
      #expect(abs(value - previous) <= 2)
      #expect(same.temperature(at: now) == value)
      seen.insert(value)
      previous = value
    }
    #expect(seen.count >= 4)
  }

  @Test func fixedValueIsSent() {
    var microBit = microBit()
    microBit.fixedTemperature = -5
    #expect(microBit.value(at: Self.start) == [0xFB])
    microBit.raw = Array(repeating: 9, count: 20)
    #expect(microBit.value(at: Self.start).count == 20)
    microBit.raw = []
    #expect(microBit.value(at: Self.start) == [])
  }
}
