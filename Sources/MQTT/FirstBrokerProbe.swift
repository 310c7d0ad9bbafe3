import EventLoop

/// A connection to the first of several brokers, made while another one is used: whether it is well.
@LoopActor final class FirstBrokerProbe {
  private let session: BrokerSession<Bool>
  private let message: MQTTMessage?
  private let limit: Duration

  init(_ options: MQTTOptions) {
    var options = options
    options.brokers = [options.brokers[0]]
    // The probe ends soon: that must not look like the end of the client. And nobody looks at what the broker retains.
    options.will = nil
    options.awaitsAdmission = false
    options.clientID += "-probe"
    message = options.probe
    // The first address of the host may be dead, and the look-up of each slow.
    limit = options.connectTimeout * 4
    session = BrokerSession(options, false) { [message] isWell, event in
      if case .connected = event, message == nil { isWell = true }
    }
    if let message { session.client.publish(message) }
    session.start()
  }

  var broker: MQTTBroker { session.client.broker }

  /// Whether the broker is well: it accepts the connection, and passes the message on if there is one.
  func result() async -> Bool { await session.wait(limit) { $0 } }

  func stop() async { await session.stop() }

  /// - Returns: whether the message, which has come from the broker that is used, is the probe's.
  func received(_ received: MQTTReceived) -> Bool {
    guard let message, message.topic == received.topic, message.payload == received.payload else {
      return false
    }
    session.state = true
    return true
  }
}
