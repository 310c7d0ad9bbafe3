import EventLoop

/// A connection to the first of several brokers, while another is used: shows whether that one is well. Without the will,
/// as it is ended at once.
@LoopActor struct BrokerProbe {
  let broker: MQTTBroker
  /// See ``MQTTOptions/probe``.
  private let message: MQTTMessage?
  private let client: MQTTClient
  private let answer = Waiter<Bool>()

  init(_ options: MQTTOptions) {
    broker = options.brokers[0]
    message = options.probe
    var options = options
    options.brokers = [broker]
    options.will = nil
    options.clientID += "-probe"
    client = MQTTClient(options: options) { _, _ in }
    if let message { client.publish(message) }
    client.setHandler { [message, answer] event in
      switch event {
      case .connected: if message == nil { answer.resume(.success(true)) }
      case .connectFailed: answer.resume(.success(false))
      case .disconnected, .undelivered, .completed, .message, .subscriptionRefused, .publicationRefused:
        break
      }
    }
    loop.timer(after: options.connectTimeout) { [answer] in answer.resume(.success(false)) }
    loop.task { [client] in try? await client.run() }
  }

  /// - Returns: whether the broker is well.
  func result() async -> Bool { (try? await answer.value()) ?? false }

  func end() async { await client.stop(deadline: .seconds(1)) }

  /// A message has arrived by the connection to the broker that is used.
  /// - Returns: whether it is the probe's.
  func arrived(_ received: MQTTReceived) -> Bool {
    guard let message, message.topic == received.topic, message.payload == received.payload else {
      return false
    }
    answer.resume(.success(true))
    return true
  }
}
