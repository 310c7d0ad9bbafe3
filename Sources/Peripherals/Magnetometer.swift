import EventLoop

/// The magnetometer of a micro:bit V2. The period is returned as written until the chip is configured
/// (`samplePeriodUpdateNeeded` in codal-microbit-v2's `MicroBitMagnetometerService.cpp`).
struct Magnetometer: Sendable {
  /// The chip's periods in ms (LSM303 in codal-core).
  private static let periods: [UInt16] = [10, 20, 50, 100]
  private static let configuration = Duration.milliseconds(50)
  /// The time that a person tilts the micro:bit until the screen is filled.
  private static let calibration = Duration.seconds(1)
  /// Notified when a calibration has succeeded.
  private static let done: UInt8 = 2

  private var written: UInt16 = 100
  private var configured: Moment?
  /// When the next sample is taken; nil: nobody is subscribed.
  private(set) var nextSample: Moment?
  /// The end of the calibration that runs, and its result.
  private var result: (value: UInt8, at: Moment)?

  func period(at now: Moment) -> UInt16 {
    let isConfigured = configured.map { $0 <= now } ?? true
    return isConfigured ? Self.periods.first { $0 >= written } ?? 100 : written
  }

  mutating func setPeriod(_ new: UInt16, at now: Moment) {
    written = new
    configured = now + Self.configuration
  }

  /// Schedules the next sample.
  mutating func sample(at now: Moment) {
    nextSample = now + .milliseconds(max(10, Int(period(at: now))))
  }

  // MARK: Calibration

  var calibrationEnds: Moment? { result?.at }

  /// A write to its characteristic: 1 requests a calibration.
  mutating func calibrate(_ request: UInt8, at now: Moment) {
    if request == 1 { result = (Self.done, now + Self.calibration) }
  }

  mutating func endCalibration(with value: UInt8, at now: Moment) { result = (value, now) }

  /// What is notified, once.
  mutating func takeResult() -> [UInt8]? {
    defer { result = nil }
    return result.map { [$0.value] }
  }
}
