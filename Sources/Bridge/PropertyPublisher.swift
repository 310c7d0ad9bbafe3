import Configuration
import Devices
import EventLoop
import GATT
import JSON
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
  /// The end of the limiter's interval.
  private var release: LoopTimer?

  init(_ property: Property, _ topics: DeviceTopics.Topics, _ context: BridgeContext) {
    self.property = property
    self.topics = topics
    self.context = context
    encoder = ReadingEncoder(property: property, gateway: context.gateway, run: context.run)
    limiter = property.report.map(ReportLimiter.init)
  }

  /// - Parameters:
  ///   - readings: `…/readings` of the device.
  ///   - isHeld: whether it is published later than it was received.
  func publish(_ reading: Reading, readings: TopicName, isHeld: Bool = false) {
    switch property.kind {
    case .state: publishState(reading.value)
    case .event:
      // Neither held nor buffered: a late press must not switch a light.
      guard let sequence = reading.sequence, !isHeld else { break }
      let payload = encoder.encodeEvent(reading, sequence: sequence)
      context.mqtt.publish(
        MQTTMessage(topic: topics.value, payload: payload, qos: context.qos, undelivered: .dropped),
        isUrgent: true)
    }
    guard context.sendsReadings, let sequence = reading.sequence else { return }
    let payload = encoder.encode(reading, sequence: sequence)
    context.mqtt.publish(
      MQTTMessage(
        topic: readings, payload: isHeld ? ReadingEncoder.markReplayed(payload) : payload, qos: context.qos,
        undelivered: .returned), isUrgent: true)
  }

  private func publishState(_ value: Value) {
    // NaN and infinities have no payload.
    if case .number(let number) = value, !number.isFinite { return }
    switch limiter?.update(value, at: .now) {
    case nil, .publish: publish(value)
    case .wait(let delay):
      release = context.loop.timer(after: delay) { [weak self] in
        guard let self, let value = limiter?.release(at: .now) else { return }
        publish(value)
      }
    case .skip: break
    }
  }

  private func publish(_ value: Value) {
    let payload = Payload.value(value, property.codec)
    self.payload = payload
    context.mqtt.setState(topics.value, payload, qos: context.qos, isUrgent: true)
    publishImage()
  }

  private func publishImage() {
    guard let image = topics.image, let payload else { return }
    context.publishState(image, Payload.image(payload))
  }

  /// The device has another id now.
  func move(to topics: DeviceTopics.Topics) { self.topics = topics }

  /// Another gateway publishes the value from now on: nothing is kept that could be published later.
  func handOver() {
    payload = nil
    release?.cancel()
    limiter = property.report.map(ReportLimiter.init)
  }

  func republish() {
    guard let payload else { return }
    context.publishState(topics.value, payload)
    publishImage()
  }
}

extension Payload {
  /// A picture of bits as SVG: a red dot for each `#`, rows ending with `/`.
  static func image(_ picture: [UInt8]) -> [UInt8] {
    let rows = picture.split(separator: UInt8(ascii: "/"))
    let columns = rows.first?.count ?? 0
    var svg = """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(columns * 10) \(rows.count * 10)">\
      <rect width="100%" height="100%"/>
      """
    for (y, row) in rows.enumerated() {
      for (x, dot) in row.enumerated() where dot == UInt8(ascii: "#") {
        svg += #"<circle cx="\#(x * 10 + 5)" cy="\#(y * 10 + 5)" r="4" fill="red"/>"#
      }
    }
    return Array((svg + "</svg>").utf8)
  }

  /// The payload of a state's topic: a number, a word, a text as it is, JSON for a record or a list. As a command, it
  /// means the same value.
  package static func value(_ value: Value, _ codec: Codec) -> [UInt8] {
    if case .integer(let number) = value { return [UInt8](decimal: number) }
    let json = codec.json(value)
    let payload = json.payload
    // An empty payload would delete the retained message; in a command, a payload in quotes is JSON.
    return payload.isEmpty || payload.first == UInt8(ascii: "\"") ? json.bytes : payload
  }
}

/// Writes the readings of one property as JSON, for `…/readings` and the topic of an event.
///
/// On the path of every reading: constant parts are made once.
struct ReadingEncoder: Sendable {
  private let codec: Codec
  private let beforeValue: [UInt8]
  private let beforeTime: [UInt8]
  private let eventBeforeValue: [UInt8]
  private let afterSequence: [UInt8]

  init(property: Property, gateway: GatewayID, run: RunID) {
    func quoted(_ text: String) -> [UInt8] { JSONValue.string(text).bytes }
    codec = property.codec
    beforeValue = Array(#"{"property":"#.utf8) + quoted(property.name) + Array(#","value":"#.utf8)
    beforeTime = property.unit.map { Array(#","unit":"#.utf8) + quoted($0) } ?? []
    eventBeforeValue = Array((property.codec.words.isEmpty ? #"{"value":"# : #"{"event_type":"#).utf8)
    afterSequence =
      Array(#","run":"#.utf8) + quoted(run.description) + Array(#","gateway":"#.utf8)
      + quoted(gateway.description) + Array("}".utf8)
  }

  /// For `…/readings`.
  func encode(_ reading: Reading, sequence: UInt64) -> [UInt8] {
    encode(reading, sequence, beforeValue, beforeTime)
  }

  /// For the topic of an event.
  func encodeEvent(_ reading: Reading, sequence: UInt64) -> [UInt8] {
    encode(reading, sequence, eventBeforeValue, [])
  }

  private func encode(
    _ reading: Reading, _ sequence: UInt64, _ beforeValue: [UInt8], _ beforeTime: [UInt8]
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(beforeValue.count + beforeTime.count + afterSequence.count + 96)
    bytes += beforeValue
    if case .integer(let number) = reading.value {
      bytes.append(decimal: number)
    } else {
      bytes += codec.json(reading.value).bytes
    }
    bytes += beforeTime
    bytes += #","time":""#.utf8
    reading.time.append(to: &bytes)
    bytes += #"","sequence":"#.utf8
    bytes.append(decimal: sequence)
    bytes += afterSequence
    return bytes
  }

  /// The reading with `"replayed":true` at its end, once: it is published later than it was received.
  static func markReplayed(_ reading: [UInt8]) -> [UInt8] {
    let mark = Array(#","replayed":true}"#.utf8)
    return reading.suffix(mark.count) == mark[...] ? reading : reading.dropLast() + mark
  }
}

extension [UInt8] {
  /// The number's decimal digits, without a `String` in between.
  init(decimal number: some FixedWidthInteger) { self = withDecimal(number) { Array($0) } }

  /// Appends the number's decimal digits.
  mutating func append(decimal number: some FixedWidthInteger) {
    withDecimal(number) { append(contentsOf: $0) }
  }
}

private func withDecimal<R>(_ number: some FixedWidthInteger, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R
{
  // The sign and the 19 digits of an Int, or the 20 of a UInt64.
  withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
    var start = digits.endIndex
    var rest = UInt64(number.magnitude)
    repeat {
      start -= 1
      digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    if number < 0 {
      start -= 1
      digits[start] = UInt8(ascii: "-")
    }
    return body(UnsafeBufferPointer(rebasing: digits[start...]))
  }
}
