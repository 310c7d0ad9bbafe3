import Configuration
import Devices
import EventLoop
import GATT
import MQTT

/// Publishes the values of one property of one device.
final class PropertyPublisher: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  let property: Property
  private(set) var topics: DeviceTopics.Topics
  private let encoder: ReadingEncoder
  private let context: BridgeContext
  /// The payload of the last value; nil of an event, and before the first.
  private(set) var payload: [UInt8]?
  private var limiter: ReportLimiter?

  init(_ property: Property, _ topics: DeviceTopics.Topics, _ context: BridgeContext) {
    self.property = property
    self.topics = topics
    self.context = context
    encoder = ReadingEncoder(property: property, gateway: context.gateway, run: context.run)
    limiter = property.report.map(ReportLimiter.init)
  }

  /// - Parameter readings: `…/readings` of the device.
  func publish(_ reading: Reading, readings: TopicName) {
    switch property.kind {
    case .state: publishState(reading.value)
    case .event:
      guard let sequence = reading.sequence else { break }
      // What the broker cannot take now is on `…/readings` alone: a late press must not switch a light.
      let payload = encoder.encodeEvent(reading, sequence: sequence)
      var message = MQTTMessage(topic: topics.value, payload: payload, qos: context.qos)
      message.endsWithConnection = true
      context.publish(message, atOnce: true)
    }
    guard context.sendsReadings, let sequence = reading.sequence else { return }
    context.publish(
      MQTTMessage(
        topic: readings, payload: encoder.encode(reading, sequence: sequence), qos: context.qos,
        replayTransform: ReadingEncoder.markReplayed), atOnce: true)
  }

  private func publishState(_ value: Value) {
    // A number that is none has no payload.
    if case .number(let number) = value, !number.isFinite { return }
    switch limiter?.received(value, at: .now) {
    case nil, .publish: publish(value)
    case .wait(let delay):
      context.loop.timer(after: delay) { [weak self] in
        guard let self, let value = limiter?.release(at: .now) else { return }
        publish(value)
      }
    case .skip: break
    }
  }

  private func publish(_ value: Value) {
    let payload = Payload.value(value, property.codec)
    self.payload = payload
    context.publishState(topics.value, payload, atOnce: true)
  }

  /// Its device has another id now.
  func move(to topics: DeviceTopics.Topics) { self.topics = topics }

  func republish() { if let payload { context.publishState(topics.value, payload) } }
}

/// Bounds how often the retained value of a property is published.
struct ReportLimiter: Sendable {
  enum Decision: Equatable {
    case publish
    /// Call ``ReportLimiter/release(at:)`` after this time.
    case wait(Duration)
    /// The change is too small, or a timer runs already.
    case skip
  }

  private let report: Property.Report
  private var published: (value: Value, time: Moment)?
  private var held: Value?

  init(_ report: Property.Report) { self.report = report }

  mutating func received(_ value: Value, at now: Moment) -> Decision {
    guard let published else {
      self.published = (value, now)
      return .publish
    }
    let isWaiting = held != nil
    guard value.differs(from: published.value, by: report.change) else {
      // Back to what was published: nothing is left to report.
      if isWaiting { held = value }
      return .skip
    }
    let rest = report.minInterval - published.time.duration(to: now)
    if rest <= .zero, !isWaiting {
      self.published = (value, now)
      return .publish
    }
    held = value
    return isWaiting ? .skip : .wait(rest)
  }

  /// The value to publish at the end of the interval; nil: it has not changed enough.
  mutating func release(at now: Moment) -> Value? {
    guard let value = held else { return nil }
    held = nil
    guard let published, value.differs(from: published.value, by: report.change) else { return nil }
    self.published = (value, now)
    return value
  }
}

extension Value {
  /// Whether a number, or a field of a record, differs by at least `change`; anything else: at all.
  fileprivate func differs(from other: Value, by change: Double) -> Bool {
    switch (self, other) {
    case (.integer(let a), .integer(let b)): abs(Double(a) - Double(b)) >= max(change, 1)
    case (.number(let a), .number(let b)): a != b && !(a.isNaN && b.isNaN) && !(abs(a - b) < change)
    case (.record(let a), .record(let b)):
      a.count != b.count
        || zip(a, b).contains { a, b in
          switch (a, b) {
          case (nil, nil): false
          case (let a?, let b?): a.differs(from: b, by: change)
          case (nil, _), (_, nil): true
          }
        }
    default: self != other
    }
  }
}
