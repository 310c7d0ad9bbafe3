extension MQTTClient {
  /// Publishes again the state that the broker has refused on this connection, and what it has not let be deleted.
  public func publishRefusedStateAgain() {
    outbox.queueRefusedState()
    schedule()
  }
}
