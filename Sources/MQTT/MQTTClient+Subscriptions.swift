import Log

extension MQTTClient {
  /// Subscribes with QoS 1 if the options do not say otherwise, now and on every new connection.
  public func subscribe(_ filters: [TopicFilter], options: SubscribeOptions = []) {
    sendSubscriptions(subscriptions.add(filters, options))
  }

  /// Unsubscribes. Messages on their way still arrive.
  public func unsubscribe(_ filters: [TopicFilter]) {
    let filters = subscriptions.remove(filters)
    guard let socket = openSocket, !filters.isEmpty else { return }
    do throws(MQTTError) {
      try socket.handle.unsubscribe(filters)
      socket.updateInterest()
    } catch {
      socket.fail(error)
    }
  }

  /// Subscribes again to what the broker has refused on this connection.
  public func subscribeRefusedAgain() { sendSubscriptions(subscriptions.refused) }

  /// The first subscription of those that the broker refuses, and why.
  /// - Parameter isIncluded: which ones to look at.
  public func refusedSubscription(
    where isIncluded: (TopicFilter) -> Bool
  ) -> (filter: TopicFilter, reason: MQTTRefusal)? {
    guard let filter = subscriptions.refused.flatMap(\.filters).first(where: isIncluded) else { return nil }
    return subscriptions.refusal(of: filter).map { (filter, MosquittoText.refusal(ofMessage: $0)) }
  }

  func sendSubscriptions(_ requests: [Subscriptions.Request]) {
    guard let socket = openSocket else { return }
    do throws(MQTTError) {
      for request in requests { subscriptions.sent(request, as: try socket.subscribe(request)) }
      socket.updateInterest()
    } catch {
      socket.fail(error)
    }
  }

  func acknowledged(_ filter: TopicFilter, _ reason: Int32) {
    guard reason >= 0x80 else {
      if Logger.isEnabled(.debug) { log(.debug, "subscribed to \(filter)") }
      return
    }
    let text = MosquittoText.reason(reason)
    write(outages.refused(subscription: filter, text))
    handler?(.subscriptionRefused(filter, MosquittoText.refusal(ofMessage: reason)))
  }
}
