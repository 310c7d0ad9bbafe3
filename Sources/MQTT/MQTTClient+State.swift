extension MQTTClient {
  /// Publishes `payload` as retained state of `topic`, now and on every new connection, until another value is set.
  /// At the end of an iteration of the loop the newest value is sent; later, if the broker does not keep up.
  ///
  /// - Parameter isUrgent: a value just received: sent ahead of much else that waits.
  public func setState(
    _ topic: TopicName, _ payload: [UInt8], qos: QoS = .atLeastOnce, isUrgent: Bool = false
  ) {
    outbox.setState(topic, payload, qos: qos, isUrgent: isUrgent)
    schedule()
  }

  /// Deletes the retained state of `topic`, with QoS 1, and again on new connections until the broker has confirmed it; or leaves
  /// `payload` there, and sends it again on this connection until then.
  public func clearState(_ topic: TopicName, leaving payload: [UInt8] = []) {
    outbox.clearState(topic, leaving: payload)
    schedule()
  }

  /// Stops publishing the state of `topic`, but leaves the retained message: another client publishes it now.
  public func releaseState(_ topic: TopicName) { outbox.releaseState(topic) }

  /// Sends none of what ``clearState(_:leaving:)`` has yet to send to topics that begin with `prefix`: another client publishes
  /// there now.
  public func releaseDeletions(under prefix: String) { outbox.releaseDeletions(under: prefix) }

  /// Publishes again the state that the broker has refused on this connection, and what it has not let be deleted.
  public func publishRefusedStateAgain() {
    outbox.queueRefusedState()
    schedule()
  }
}
