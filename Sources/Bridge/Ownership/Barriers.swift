import JSON
import MQTT

/// Messages that the gateway sends to itself: when one arrives, the retained messages for earlier subscriptions have
/// arrived, as mosquitto and ejabberd keep that order. Pure.
struct Barriers {
  private(set) var isConnected = false
  private var last: UInt64 = 0
  private var isDue = false
  private(set) var lastArrived: UInt64 = 0
  /// The number of the last barrier of earlier connections.
  private var lastBefore: UInt64 = 0
  /// How many barriers in a row were late.
  private var lateCount = 0
  /// Whether the broker does not return the gateway's own messages. One late barrier may be due to the network.
  var isLate: Bool { lateCount > 1 }

  mutating func connected() { (isConnected, lastBefore) = (true, last) }

  mutating func disconnected() { (isConnected, isDue) = (false, false) }

  /// The barrier to be sent at the end of this loop iteration: one for all that is awaited in it.
  var due: UInt64? { isDue ? last : nil }

  /// The number of a barrier that arrives after the retained messages for the subscriptions of this loop iteration;
  /// `.max` without a connection.
  mutating func await() -> UInt64 {
    guard isConnected else { return .max }
    if !isDue { (isDue, last) = (true, last + 1) }
    return last
  }

  mutating func sent() { isDue = false }

  mutating func arrived(_ number: UInt64) {
    // Others, who may send requests, can send any number.
    guard number <= last else { return }
    (lastArrived, lateCount) = (max(lastArrived, number), 0)
  }

  /// The barrier has not arrived in time.
  /// - Returns: whether to send another one, which shows when the broker returns them.
  mutating func late(_ number: UInt64) -> Bool {
    guard isConnected, number == last, number > max(lastArrived, lastBefore) else { return false }
    lateCount += 1
    return true
  }

  /// Whether all that the broker retains for the subscriptions up to this barrier has arrived.
  func hasArrived(_ barrier: UInt64) -> Bool { barrier <= lastArrived }

  static func payload(_ number: UInt64, of run: RunID) -> [UInt8] {
    (["transaction": .string("\(run)-\(number)")] as JSONValue).bytes
  }

  /// - Returns: the number, if the message is a barrier of this run.
  static func number(in message: MQTTReceived, of run: RunID) -> UInt64? {
    guard message.payload.count < 64,
      let text = (try? JSONParser.parse(message.payload))?["transaction"]?.text, text.hasPrefix("\(run)-")
    else { return nil }
    return UInt64(text.dropFirst("\(run)-".count))
  }
}
