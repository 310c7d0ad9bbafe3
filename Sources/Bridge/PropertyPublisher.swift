import Configuration
import Devices
import EventLoop
import GATT
import MQTT

/// Publishes the values of one property of one device.
@LoopActor final class PropertyPublisher {
  let property: Property
  private(set) var topics: DeviceTopics.Topics
  private let encoder: ReadingEncoder
  private let context: BridgeContext
  private var limiter: ReportLimiter?
  private var intervalEnd: LoopTimer?
  /// Whether the topic has a value of this gateway. Another gateway may have published a newer one since it was released.
  private var hasPublished = false

  init(_ property: Property, _ topics: DeviceTopics.Topics, _ context: BridgeContext) {
    self.property = property
    self.topics = topics
    self.context = context
    encoder = ReadingEncoder(property: property, gateway: context.gateway, run: context.run)
    limiter = property.report.map(ReportLimiter.init)
  }

  /// - Parameter isHeld: whether it is published later than it was received.
  func publish(_ reading: Reading, isHeld: Bool = false) {
    switch property.kind {
    case .state: publishState(reading)
    case .event:
      // Neither held nor buffered: a late press must not switch a light.
      guard let sequence = reading.sequence, !isHeld else { break }
      let payload = encoder.encode(reading, isEvent: true, sequence: sequence)
      context.mqtt.publish(
        MQTTMessage(topic: topics.value, payload: payload, qos: context.qos, undelivered: .dropped),
        isUrgent: true)
    }
    guard context.configuration.mqtt.readings, let sequence = reading.sequence else { return }
    let payload = encoder.encode(reading, sequence: sequence)
    context.mqtt.publish(
      MQTTMessage(
        topic: topics.readings, payload: isHeld ? ReadingEncoder.markReplayed(payload) : payload,
        qos: context.qos, undelivered: .returned), isUrgent: true)
  }

  private func publishState(_ reading: Reading) {
    guard Self.hasPayload(reading.value) else { return }
    switch limiter?.update(reading.value, at: .now, isReading: reading.sequence != nil) {
    case nil, .publish: publishValue(reading.value)
    case .wait(let delay):
      intervalEnd = loop.timer(after: delay) { [weak self] in self?.publishWaiting() }
    case .skip: break
    }
  }

  /// Publishes the value that waits for the end of an interval.
  func publishWaiting() {
    guard let value = limiter?.release(at: .now) else { return }
    intervalEnd?.cancel()
    publishValue(value)
  }

  /// NaN, infinities and what is unknown have no payload.
  private static func hasPayload(_ value: Value) -> Bool {
    switch value {
    case .number(let number): number.isFinite
    case .unknown: false
    case .integer, .bool, .text, .bytes, .record, .list: true
    }
  }

  private func publishValue(_ value: Value, isUrgent: Bool = true) {
    let payload = Payload.value(value, property.codec)
    hasPublished = true
    context.mqtt.setState(topics.value, payload, qos: context.qos, isUrgent: isUrgent)
    if let image = topics.image { context.publishState(image, Payload.image(payload)) }
  }

  /// The retained topics that have a value of this gateway.
  var published: [TopicName] { hasPublished ? topics.states : [] }

  /// The device has another id now.
  func move(to topics: DeviceTopics.Topics) { self.topics = topics }

  /// The property is adjusted in another way now; its topics are the same.
  func replace(_ before: PropertyPublisher) { hasPublished = before.hasPublished }

  /// Publishes nothing later of what has come so far.
  func forget() {
    intervalEnd?.cancel()
    hasPublished = false
    limiter = property.report.map(ReportLimiter.init)
  }

  func republish(_ last: LastValue) {
    guard hasPublished, property.kind == .state, let value = last.published(property) else { return }
    if Self.hasPayload(value) { publishValue(value, isUrgent: false) }
  }
}
