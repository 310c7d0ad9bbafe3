extension MQTTClient {
  /// Publishes `message`, as soon as the broker takes it; if too many wait, the oldest is dropped. Without a connection, the
  /// message's `undelivered` says what becomes of it.
  ///
  /// - Parameter isUrgent: a reading or a result: sent ahead of much else that waits.
  public func publish(_ message: MQTTMessage, isUrgent: Bool = false) {
    let lost = outbox.lost
    outbox.append(message, isUrgent: isUrgent)
    if outbox.lost != lost { write(outages.lost()) }
    schedulePump()
    scheduleOutcomes()
  }

  /// Publishes `payload` as retained state of `topic`, now and on every new connection, until another value is set.
  /// Every value is sent while the broker keeps up; otherwise only the newest.
  ///
  /// - Parameter isUrgent: a value just received: sent ahead of much else that waits.
  public func setState(
    _ topic: TopicName, _ payload: [UInt8], qos: QoS = .atLeastOnce, isUrgent: Bool = false
  ) {
    outbox.setState(topic, payload, qos: qos, isUrgent: isUrgent)
    schedulePump()
  }

  /// Deletes the retained state of `topic`: with QoS 1, and again on new connections until the broker has confirmed it.
  public func clearState(_ topic: TopicName) {
    outbox.clearState(topic)
    schedulePump()
  }

  /// Stops publishing the state of `topic`, but leaves the retained message: another client publishes it now.
  public func releaseState(_ topic: TopicName) { outbox.releaseState(topic) }

  /// Sends `message` now, ahead of the queue and before ``admit()``; without a connection it is dropped.
  public func send(_ message: MQTTMessage) {
    guard let socket = openSocket else { return }
    send(outbox.packet(once: message), over: socket)
    socket.updateInterest()
  }
}
