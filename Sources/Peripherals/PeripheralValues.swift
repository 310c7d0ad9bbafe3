import GATT

/// The values of a peripheral's characteristics: what reads return, what writes change, and what its sensors measure.
package struct PeripheralValues: Sendable {
  private static let rows = 5

  /// Everything that it may serve.
  package let database: GATTDatabase
  /// Nil if it is not a micro:bit.
  package var microBit: MicroBit?
  /// Nil without the accelerometer service.
  package var accelerometer: Accelerometer?
  private var magnetometerPeriod = MagnetometerPeriod()
  /// Values that replace the initial ones, by handle.
  package private(set) var stored: [UInt16: [UInt8]] = [:]

  package init(_ database: GATTDatabase, microBit: MicroBit? = nil, accelerometer: Accelerometer? = nil) {
    self.database = database
    self.microBit = microBit
    self.accelerometer = accelerometer
  }

  /// The value of a characteristic.
  package func value(of characteristic: GATTDatabase.Characteristic, at now: ContinuousClock.Instant)
    -> [UInt8]
  {
    switch characteristic.content {
    case .temperature: microBit?.value(at: now) ?? []
    case .temperaturePeriod: microBit?.periodBytes ?? []
    case .accelerationPeriod: accelerometer?.periodBytes ?? []
    case .magnetometerPeriod: magnetometerPeriod.bytes(at: now)
    case .acceleration:
      accelerometer?.counted ?? stored[characteristic.handle] ?? characteristic.value
    case .fixed, .fixedAndCached, .stored, .coded, .rows:
      stored[characteristic.handle] ?? characteristic.value
    }
  }

  /// Applies a write that the flags allow.
  /// - Returns: whether the length was valid; otherwise nothing changes.
  package mutating func write(
    _ bytes: [UInt8], to characteristic: GATTDatabase.Characteristic, at now: ContinuousClock.Instant
  ) -> Bool {
    switch characteristic.content {
    case .fixed, .fixedAndCached: break
    case .temperature, .acceleration: return false
    case .stored(let lengths):
      guard lengths.contains(bytes.count) else { return false }
      stored[characteristic.handle] = bytes
    case .coded(let codec):
      guard codec.takesLength(of: bytes) else { return false }
      stored[characteristic.handle] = bytes
    case .rows:
      guard bytes.count <= Self.rows else { return false }
      let present = value(of: characteristic, at: now)
      stored[characteristic.handle] = bytes.map { $0 & 0x1F } + present.dropFirst(bytes.count)
    case .temperaturePeriod:
      guard microBit?.writePeriod(bytes, at: now) == true else { return false }
    case .accelerationPeriod:
      guard accelerometer?.writePeriod(bytes, at: now) == true else { return false }
    case .magnetometerPeriod:
      guard magnetometerPeriod.write(bytes, at: now) else { return false }
    }
    return true
  }

  /// Sets a value by a control command, whatever the flags.
  /// - Returns: whether that is possible: a period must have two bytes.
  package mutating func set(
    _ characteristic: GATTDatabase.Characteristic, to bytes: [UInt8], at now: ContinuousClock.Instant
  ) -> Bool {
    switch characteristic.content {
    case .temperature: microBit?.raw = bytes
    case .temperaturePeriod: return microBit?.writePeriod(bytes, at: now) == true
    case .accelerationPeriod: return accelerometer?.writePeriod(bytes, at: now) == true
    case .magnetometerPeriod: return magnetometerPeriod.write(bytes, at: now)
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .acceleration: stored[characteristic.handle] = bytes
    }
    return true
  }

  // MARK: Sensors

  /// The time of a sensor's next sample; nil if there is no such sensor.
  package func nextSample(of sensor: Sensor) -> ContinuousClock.Instant? {
    switch sensor {
    case .temperature: microBit?.nextSample
    case .acceleration: accelerometer?.nextSample
    }
  }

  /// Skips the samples up to now.
  package mutating func skip(_ sensor: Sensor, to now: ContinuousClock.Instant) {
    switch sensor {
    case .temperature: microBit?.skip(to: now)
    case .acceleration: accelerometer?.skip(to: now)
    }
  }

  /// Takes the sample that is due, and schedules the next one.
  package mutating func sample(_ sensor: Sensor, at now: ContinuousClock.Instant) -> [UInt8]? {
    switch sensor {
    case .temperature: return microBit?.sample(at: now)
    case .acceleration:
      accelerometer?.sample(at: now)
      return database.handle(of: sensor).flatMap(database.characteristic).map { value(of: $0, at: now) }
    }
  }

  /// The reset button: RAM is cleared.
  package mutating func reset(at start: ContinuousClock.Instant) {
    microBit?.reset(at: start)
    accelerometer?.reset(at: start)
    magnetometerPeriod = MagnetometerPeriod()
    stored.removeAll()
  }
}

extension Codec {
  /// Whether a value can have that many bytes.
  fileprivate func takesLength(of bytes: [UInt8]) -> Bool {
    do throws(CodecError) {
      _ = try decode(bytes)
      return true
    } catch {
      return !error.isLength
    }
  }
}

extension CodecError {
  fileprivate var isLength: Bool {
    switch self {
    case .length, .tooShort: true
    case .field(_, let error): error.isLength
    case .notUTF8, .tooLarge, .range, .kind, .word, .tooLong, .missingField, .presence, .absent, .unreadable:
      false
    }
  }
}
