import MQTT

/// What happened how often in this run.
struct Counters: Sendable {
  var readings: UInt64 = 0
  /// Values of a length that the property does not have.
  var malformed: UInt64 = 0
  var commands: UInt64 = 0
  /// Peripherals beyond the number of devices that is kept.
  var turnedAway: UInt64 = 0

  /// As the bridge's `info` has them.
  func list(_ mqtt: MQTTStatistics) -> [(name: String, count: UInt64)] {
    [
      ("readings", readings), ("malformed", malformed), ("commands", commands), ("turned_away", turnedAway),
      ("sent", UInt64(clamping: mqtt.sent)), ("queued", UInt64(clamping: mqtt.queued)),
      ("lost", UInt64(clamping: mqtt.lost)), ("refused", UInt64(clamping: mqtt.refused)),
    ]
  }
}
