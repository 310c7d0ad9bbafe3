/// The size from which on messages make the broker end the connection, if there is one: with MQTT 3.1.1, mosquitto's
/// `max_packet_size`; with MQTT 5, its `message_size_limit`, as libmosquitto from 2.0.21 on ends the connection at a PUBACK with the
/// reason 0x95, which the standard does not list. Pure.
///
/// After an end that a message may have caused, one message is sent at a time, with QoS 1, until those that were in flight are
/// acknowledged. The one that was alone in flight at two ends, one after the other, is the cause, if the broker acknowledges others, all
/// of them smaller: a broker that is restarted twice seldom meets the same one.
struct SizeLimit {
  /// Messages of so many bytes or more are the cause; nil: no limit is known.
  private var least: Int?
  /// What was in flight when the last connection ended in that way, and was not acknowledged since.
  private var suspects: Set<TopicName> = []
  /// The size of the largest message that was acknowledged.
  private var largest = 0
  private var hasLasted = false

  /// Whether one message is sent at a time.
  var isSought: Bool { !suspects.isEmpty }

  func forbids(_ bytes: Int) -> Bool { least.map { bytes >= $0 } ?? false }

  mutating func acknowledged(_ topic: TopicName, _ bytes: Int) {
    largest = max(largest, bytes)
    suspects.remove(topic)
  }

  /// What is on the topic is not sent, so that it is not acknowledged.
  mutating func rejected(_ topic: TopicName) { suspects.remove(topic) }

  mutating func lasted() { (suspects, hasLasted) = ([], true) }

  /// The connection has ended.
  /// - Parameter inFlight: what may have been the cause.
  mutating func ended(_ inFlight: [(topic: TopicName, bytes: Int)]) {
    let large = inFlight.filter { $0.bytes > largest }
    if large.count == 1, suspects == [large[0].topic], largest > 0 {
      (least, suspects) = (large[0].bytes, [])
    } else {
      suspects = Set(large.map(\.topic))
    }
    // Another limit may be in force when the broker is back.
    if hasLasted { (least, largest, hasLasted) = (nil, 0, false) }
  }
}
