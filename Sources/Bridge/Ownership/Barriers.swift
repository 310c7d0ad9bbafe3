import EventLoop
import JSON
import MQTT

/// Messages that the gateway sends to itself: when one arrives, the retained messages for earlier subscriptions have
/// arrived, as mosquitto and ejabberd keep that order.
@LoopActor final class Barriers: IterationEndHandler {
  /// How long to wait for a barrier: a broker may not return a client's own messages. On a bad network packets are late
  /// by seconds, and a gateway that publishes too early overwrites what others published.
  private static let timeout = Duration.seconds(5)

  private let context: BridgeContext
  private(set) var isConnected = false
  private var lastSent: UInt64 = 0
  /// The last one is sent at the end of this loop iteration: one for all devices found in it.
  private var isDue = false
  private(set) var lastArrived: UInt64 = 0
  /// Called when a barrier has not arrived in time.
  var onTimeout: (UInt64) -> Void = { _ in }

  init(_ context: BridgeContext) { self.context = context }

  func connected() { isConnected = true }

  func disconnected() { (isConnected, isDue) = (false, false) }

  /// Sends a barrier, which arrives after the retained messages for the subscriptions so far. Without a connection none
  /// is sent: each connection begins with one.
  /// - Returns: its number.
  func send() -> UInt64 {
    guard isConnected else { return .max }
    if !isDue {
      isDue = true
      lastSent += 1
      loop.atEndOfIteration(self)
    }
    return lastSent
  }

  nonisolated static func payload(_ number: UInt64, of run: RunID) -> [UInt8] {
    (["transaction": .string("\(run)-\(number)")] as JSONValue).bytes
  }

  func iterationEnds() {
    guard isDue else { return }
    isDue = false
    let number = lastSent
    context.mqtt.send(
      MQTTMessage(
        topic: context.topics.bridgeRequest(ReportHealth.verb),
        payload: Self.payload(number, of: context.run)))
    loop.timer(after: Self.timeout) { [weak self] in self?.onTimeout(number) }
  }

  /// Whether all that the broker retains for the subscriptions up to this barrier has arrived.
  func hasArrived(_ barrier: UInt64) -> Bool { barrier <= lastArrived }

  /// - Returns: the number, if the message is a barrier of this run.
  func received(_ message: MQTTReceived) -> UInt64? {
    guard message.payload.count < 64,
      let text = (try? JSONParser.parse(message.payload))?["transaction"]?.text,
      text.hasPrefix("\(context.run)-"),
      let number = UInt64(text.dropFirst("\(context.run)-".count))
    else { return nil }
    lastArrived = max(lastArrived, number)
    return number
  }
}
