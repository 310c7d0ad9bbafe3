import EventLoop
import GATT

/// The values of a peripheral's characteristics: what reads return, what writes change, what its sensors measure, and what
/// generators set.
///
/// A pure state machine: time is an argument, and what is to be notified is returned.
package struct PeripheralValues: Sendable {
  /// Bytes to be sent to the subscribers of a characteristic.
  package struct Notification: Sendable, Equatable {
    package let handle: UInt16
    package let bytes: [UInt8]
  }

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
  private var generators: [(generator: Generator, next: Moment)]

  package init(
    _ database: GATTDatabase, microBit: MicroBit? = nil, accelerometer: Accelerometer? = nil,
    generators: [Generator] = [], at now: Moment
  ) {
    self.database = database
    self.microBit = microBit
    self.accelerometer = accelerometer
    self.generators = generators.map { ($0, now) }
  }

  /// The value of a characteristic.
  package func value(of characteristic: GATTDatabase.Characteristic, at now: Moment) -> [UInt8] {
    switch characteristic.content {
    case .temperature: microBit?.value(at: now) ?? []
    case .temperaturePeriod: microBit?.period.littleEndianBytes ?? []
    case .accelerationPeriod: accelerometer?.period.littleEndianBytes ?? []
    case .magnetometerPeriod: magnetometer.period(at: now).littleEndianBytes
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
      guard codec.fits(bytes.count) else { return false }
      stored[characteristic.handle] = bytes
    case .rows:
      guard bytes.count <= Self.rows else { return false }
      if bytes.isEmpty { break }
      let missing = Array(repeating: UInt8(0), count: Self.rows - bytes.count)
      stored[characteristic.handle] = bytes.map { $0 & 0x1F } + missing
    case .temperaturePeriod:
      guard let period = UInt16(littleEndianBytes: bytes) else { return false }
      microBit?.setPeriod(period, at: now)
    case .accelerationPeriod:
      guard let period = UInt16(littleEndianBytes: bytes) else { return false }
      accelerometer?.setPeriod(period, at: now)
    case .magnetometerPeriod:
      guard let period = UInt16(littleEndianBytes: bytes) else { return false }
      magnetometer.setPeriod(period, at: now)
    }
    for index in generators.indices { generators[index].generator.received(bytes, by: characteristic.uuid) }
    return true
  }

  /// Sets a value by a control command or a generator, whatever the flags.
  /// - Returns: what is notified at once; nil: the value is not possible, such as a period that is not two bytes long.
  package mutating func set(
    _ characteristic: GATTDatabase.Characteristic, to bytes: [UInt8], at now: Moment
  ) -> [Notification]? {
    switch characteristic.content {
    case .temperature: microBit?.raw = bytes
    case .temperaturePeriod, .accelerationPeriod, .magnetometerPeriod:
      guard write(bytes, to: characteristic, at: now) else { return nil }
    case .calibration: if let result = bytes.first { magnetometer.endCalibration(with: result, at: now) }
    case .pins: pins.set(bytes)
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .acceleration, .magneticField, .button, .event,
      .eventFilter, .dataLog:
      stored[characteristic.handle] = bytes
    }
    return notifications(of: characteristic, set: bytes)
  }

  private func inputPins(at now: Moment) -> [UInt8] {
    database.characteristic(.microbit(0xB9FE)).map { value(of: $0, at: now) } ?? []
  }

  /// What is notified at once when a value was set, besides the samples of sensors. Events only if they were required.
  private func notifications(
    of characteristic: GATTDatabase.Characteristic, set bytes: [UInt8]
  ) -> [Notification] {
    guard !characteristic.content.isSampled else { return [] }
    let own = Notification(handle: characteristic.handle, bytes: bytes)
    switch characteristic.content {
    case .event: return messageBus.isRequired(bytes) ? [own] : []
    case .button(let button):
      guard let event = database.characteristic(.microbit(0x9775)) else { return [own] }
      return [own]
        + MessageBus.events(ofButton: button, state: bytes.first ?? 0).filter(messageBus.isRequired)
        .map { Notification(handle: event.handle, bytes: $0) }
    case .fixed, .fixedAndCached, .stored, .coded, .rows, .temperature, .temperaturePeriod, .acceleration,
      .accelerationPeriod, .magneticField, .magnetometerPeriod, .calibration, .pins, .eventFilter, .dataLog:
      return [own]
    }
  }

  // MARK: Sensors

  private func content(of handle: UInt16) -> GATTDatabase.Content? {
    database.characteristic(handle)?.content
  }

  /// When the next sample of a characteristic is taken; nil: it has none.
  private func nextSample(of handle: UInt16) -> Moment? {
    switch content(of: handle) {
    case .temperature: microBit?.sampler.next
    case .acceleration: accelerometer?.sampler.next
    case .magneticField: magnetometer.nextSample
    case .calibration: magnetometer.calibrationEnds
    case .dataLog: dataLog.next
    default: nil
    }
  }

  /// There are subscribers to a characteristic from now on, or none any more: the samples up to now are skipped.
  package mutating func subscriptionChanged(_ handle: UInt16, at now: Moment) {
    switch content(of: handle) {
    case .temperature: microBit?.sampler.skip(to: now)
    case .acceleration: accelerometer?.sampler.skip(to: now)
    case .magneticField: magnetometer.sample(at: now)
    default: break
    }
  }

  /// Takes the sample that is due, and schedules the next one.
  private mutating func sample(_ handle: UInt16, at now: Moment) -> [UInt8]? {
    guard let characteristic = database.characteristic(handle) else { return nil }
    switch characteristic.content {
    case .temperature: return microBit?.sample(at: now)
    case .acceleration: accelerometer?.sample(at: now)
    case .magneticField: magnetometer.sample(at: now)
    case .calibration: return magnetometer.takeResult()
    case .dataLog: return dataLog.reply(at: now)
    default: return nil
    }
    return value(of: characteristic, at: now)
  }

  // MARK: Time

  /// When ``advance(to:for:)`` is to be called next, if these characteristics have subscribers.
  package func next(for subscribed: [UInt16]) -> Moment? {
    var next = generators.lazy.map(\.next).min()
    for handle in subscribed {
      guard let sample = nextSample(of: handle) else { continue }
      next = min(next ?? sample, sample)
    }
    return next
  }

  /// Takes the samples for subscribers, and sets the generated values, that are due.
  package mutating func advance(to now: Moment, for subscribed: [UInt16]) -> [Notification] {
    var notifications: [Notification] = []
    for index in generators.indices where generators[index].next <= now {
      let (packets, wait) = generators[index].generator.next()
      // The generator continues from now after a delay of more than an interval, instead of catching up.
      let next = generators[index].next + wait
      generators[index].next = next > now ? next : now + wait
      if let characteristic = database.characteristic(of: generators[index].generator.property) {
        for bytes in packets { notifications += set(characteristic, to: bytes, at: now) ?? [] }
      }
    }
    notifications.removeAll { !subscribed.contains($0.handle) }
    for handle in subscribed {
      if let next = nextSample(of: handle), next <= now, let bytes = sample(handle, at: now) {
        notifications.append(Notification(handle: handle, bytes: bytes))
      }
    }
    return notifications
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

extension FixedWidthInteger {
  /// Nil unless there are as many bytes as the number has.
  init?(littleEndianBytes bytes: some BidirectionalCollection<UInt8>) {
    guard bytes.count == Self.bitWidth / 8 else { return nil }
    self = bytes.reversed().reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
  }

  var littleEndianBytes: [UInt8] {
    (0..<Self.bitWidth / 8).map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
  }
}
