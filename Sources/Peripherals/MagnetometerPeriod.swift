/// The period of a micro:bit V2's magnetometer: returned as written until the chip is configured
/// (`samplePeriodUpdateNeeded` in codal-microbit-v2's `MicroBitMagnetometerService.cpp`).
struct MagnetometerPeriod: Sendable {
  /// The chip's periods in ms (LSM303 in codal-core).
  private static let periods: [UInt16] = [10, 20, 50, 100]
  private static let configuration = Duration.milliseconds(50)

  private var written: UInt16 = 100
  private var configured: ContinuousClock.Instant?

  func bytes(at now: ContinuousClock.Instant) -> [UInt8] {
    let isConfigured = configured.map { $0 <= now } ?? true
    let period = isConfigured ? Self.periods.first { $0 >= written } ?? 100 : written
    return [UInt8(truncatingIfNeeded: period), UInt8(period >> 8)]
  }

  /// - Returns: whether the length was valid.
  mutating func write(_ bytes: [UInt8], at now: ContinuousClock.Instant) -> Bool {
    guard bytes.count == 2 else { return false }
    written = UInt16(bytes[0]) | UInt16(bytes[1]) << 8
    configured = now + Self.configuration
    return true
  }
}
