import EventLoop
import GATT

/// The values of a peripheral's characteristics: what reads return, what writes change, and what its sensors measure.
package struct PeripheralValues: Sendable {
  private static let rows = 5

  /// Everything that it may serve.
  package let database: GATTDatabase
  /// The micro:bit; nil if the peripheral is none.
  package var microBit: MicroBit?
  /// The accelerometer; nil without its service.
  package var accelerometer: Accelerometer?
  private var magnetometer = Magnetometer()
  private var pins = Pins()
  package var dataLog = DataLogService()
  private var messageBus = MessageBus()
  /// Values that replace the initial ones, by handle.
  package private(set) var stored: [UInt16: [UInt8]] = [:]

  package init(_ database: GATTDatabase, microBit: MicroBit? = nil, accelerometer: Accelerometer? = nil) {
    self.database = database
    self.microBit = microBit
    self.accelerometer = accelerometer
  }

  /// The value of a characteristic.
  package func value(of characteristic: GATTDatabase.Characteristic, at now: Moment)
    -> [UInt8]
  {
    switch characteristic.content {
    case .temperature: microBit?.value(at: now) ?? []
    case .temperaturePeriod: microBit?.periodBytes ?? []
    case .accelerationPeriod: accelerometer?.periodBytes ?? []
    case .magnetometerPeriod: magnetometer.bytes(at: now)
    case .acceleration:
      accelerometer?.counted ?? stored[characteristic.handle]
        ?? accelerometer?.withNoise(characteristic.value) ?? characteristic.value
    case .pins: pins.inputs(inputPins(at: now))
    case .calibration, .eventFilter, .dataLog: []
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .magneticField, .button, .event:
      stored[characteristic.handle] ?? characteristic.value
    }
  }

  /// Applies a write that the flags allow.
  /// - Returns: whether the length was valid; otherwise nothing changes.
  package mutating func write(
    _ bytes: [UInt8], to characteristic: GATTDatabase.Characteristic, at now: Moment
  ) -> Bool {
    switch characteristic.content {
    case .fixed, .fixedAndCached: break
    case .temperature, .acceleration, .magneticField, .button, .event: return false
    case .calibration:
      guard bytes.count == 1 else { return false }
      magnetometer.calibrate(bytes[0], at: now)
    case .pins:
      guard bytes.count >= 2 else { return false }
      pins.write(bytes, inputs: inputPins(at: now))
    case .eventFilter:
      guard bytes.count == 4 else { return false }
      messageBus.require(bytes)
    case .dataLog:
      guard dataLog.write(bytes, at: now) else { return false }
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
      guard magnetometer.write(bytes, at: now) else { return false }
    }
    return true
  }

  /// Sets a value by a control command, whatever the flags.
  /// - Returns: whether that is possible: a period must have two bytes.
  package mutating func set(
    _ characteristic: GATTDatabase.Characteristic, to bytes: [UInt8], at now: Moment
  ) -> Bool {
    switch characteristic.content {
    case .temperature: microBit?.raw = bytes
    case .temperaturePeriod: return microBit?.writePeriod(bytes, at: now) == true
    case .accelerationPeriod: return accelerometer?.writePeriod(bytes, at: now) == true
    case .magnetometerPeriod: return magnetometer.write(bytes, at: now)
    case .calibration: if let result = bytes.first { magnetometer.endCalibration(with: result, at: now) }
    case .pins: pins.set(bytes)
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .acceleration, .magneticField, .button, .event,
      .eventFilter, .dataLog:
      stored[characteristic.handle] = bytes
    }
    return true
  }

  private func inputPins(at now: Moment) -> [UInt8] {
    database.characteristic(.microbit(0xB9FE)).map { value(of: $0, at: now) } ?? []
  }

  /// What is notified at once when a value was set, besides the samples of sensors. Events only if they were required.
  package func notifications(
    of characteristic: GATTDatabase.Characteristic, set bytes: [UInt8]
  ) -> [(handle: UInt16, bytes: [UInt8])] {
    guard database.sensor(of: characteristic.handle) == nil else { return [] }
    switch characteristic.content {
    case .event: return messageBus.isRequired(bytes) ? [(characteristic.handle, bytes)] : []
    case .button(let button):
      let event = database.characteristic(.microbit(0x9775))
      let raised = MessageBus.events(ofButton: button, state: bytes.first ?? 0)
        .filter { messageBus.isRequired($0) }
      return [(characteristic.handle, bytes)]
        + (event.map { event in raised.map { (event.handle, $0) } } ?? [])
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .temperature, .temperaturePeriod, .acceleration,
      .accelerationPeriod, .magneticField, .magnetometerPeriod, .calibration, .pins, .eventFilter, .dataLog:
      return [(characteristic.handle, bytes)]
    }
  }

  // MARK: Sensors

  /// The sensor whose next sample follows from a write to the characteristic.
  package func sensor(changedBy characteristic: GATTDatabase.Characteristic) -> Sensor? {
    switch characteristic.content {
    case .accelerationPeriod: .acceleration
    case .calibration: .calibration
    case .dataLog: .logReplies
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .temperature, .temperaturePeriod, .acceleration,
      .magneticField, .magnetometerPeriod, .pins, .button, .event, .eventFilter:
      nil
    }
  }

  /// The time of a sensor's next sample; nil if there is no such sensor.
  package func nextSample(of sensor: Sensor) -> Moment? {
    switch sensor {
    case .temperature: microBit?.nextSample
    case .acceleration: accelerometer?.nextSample
    case .magneticField: magnetometer.nextSample
    case .calibration: magnetometer.calibrationEnds
    case .logReplies: dataLog.next
    }
  }

  /// Skips the samples up to now.
  package mutating func skip(_ sensor: Sensor, to now: Moment) {
    switch sensor {
    case .temperature: microBit?.skip(to: now)
    case .acceleration: accelerometer?.skip(to: now)
    case .magneticField: magnetometer.sample(at: now)
    case .calibration, .logReplies: break
    }
  }

  /// Takes the sample that is due, and schedules the next one.
  package mutating func sample(_ sensor: Sensor, at now: Moment) -> [UInt8]? {
    switch sensor {
    case .temperature: return microBit?.sample(at: now)
    case .acceleration:
      accelerometer?.sample(at: now)
    case .magneticField: magnetometer.sample(at: now)
    case .calibration: return magnetometer.takeResult()
    case .logReplies: return dataLog.reply(at: now)
    }
    return database.handle(of: sensor).flatMap(database.characteristic).map { value(of: $0, at: now) }
  }

  /// The link has ended: what was asked of the data log is forgotten.
  package mutating func disconnected() { dataLog.reset() }

  /// The reset button: RAM is cleared.
  package mutating func reset(at start: Moment) {
    microBit?.reset(at: start)
    accelerometer?.reset(at: start)
    (magnetometer, pins, messageBus) = (Magnetometer(), Pins(), MessageBus())
    dataLog.reset()
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
    case .notUTF8, .controlCharacters, .tooLarge, .range, .kind, .word, .tooLong, .missingField, .presence,
      .absent, .unreadable:
      false
    }
  }
}
