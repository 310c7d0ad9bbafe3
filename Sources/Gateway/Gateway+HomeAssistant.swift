import GATT
import Log
import MQTT

/// Home Assistant is heard: when it begins anew, when a user deletes a device there, and when another gateway tells it
/// of a device.
extension Gateway {
  var discovery: Discovery? {
    let settings = configuration.homeAssistant
    return settings.discovery ? Discovery(prefix: settings.prefix, qos: qos, topics: topics) : nil
  }

  // MARK: Subscriptions

  func subscribeHomeAssistant() {
    if let discovery {
      mqtt.assumeIsolated { mqtt in
        mqtt.subscribe(TopicFilter(discovery.status))
        mqtt.subscribe(TopicFilter(discovery.topic(of: .gateway)), options: [.noLocal, .noRetained])
      }
    }
    for device in byID.values { subscribeDiscovery(of: device) }
    for removal in memory.removals.values { subscribe(removal) }
  }

  func unsubscribeHomeAssistant(_ discovery: Discovery) {
    mqtt.assumeIsolated { mqtt in
      mqtt.unsubscribe(TopicFilter(discovery.status))
      mqtt.unsubscribe(TopicFilter(discovery.topic(of: .gateway)))
    }
    for device in byID.values { unsubscribeDiscovery(of: device, discovery) }
  }

  func subscribeDiscovery(of device: Device) {
    guard let topic = discovery?.topic(of: .device(device.address)) else { return }
    mqtt.assumeIsolated { $0.subscribe(TopicFilter(topic), options: [.noLocal, .noRetained]) }
  }

  func unsubscribeDiscovery(of device: Device, _ discovery: Discovery) {
    let topic = discovery.topic(of: .device(device.address))
    mqtt.assumeIsolated { $0.unsubscribe(TopicFilter(topic)) }
    if let removal = memory.removals[topic.string] { subscribe(removal) }
  }

  private func subscribe(_ removal: Removal) {
    mqtt.assumeIsolated { $0.subscribe(TopicFilter(removal.status)) }
    guard !isSubscribed(removal.topic) else { return }
    // With what is retained: another gateway may have the device by now.
    mqtt.assumeIsolated { $0.subscribe(TopicFilter(removal.topic), options: .noLocal) }
  }

  private func unsubscribe(_ removal: Removal) {
    if removal.announced.prefix != discovery?.prefix,
      !memory.removals.values.contains(where: { $0.announced.prefix == removal.announced.prefix })
    {
      mqtt.assumeIsolated { $0.unsubscribe(TopicFilter(removal.status)) }
    }
    guard !isSubscribed(removal.topic) else { return }
    mqtt.assumeIsolated { $0.unsubscribe(TopicFilter(removal.topic)) }
  }

  /// Whether it is the discovery topic of a device that is known now, or of the gateway.
  private func isSubscribed(_ topic: TopicName) -> Bool {
    switch discovery?.subject(of: topic.string) {
    case .gateway: true
    case .device(let address): devices[address] != nil
    case nil: false
    }
  }

  // MARK: Hearing

  func heardHomeAssistant(_ message: MQTTReceived) {
    let topic = message.topic.string
    if let prefix = prefix(ofStatus: message.topic) {
      return heardStatus(isOnline: message.payload.elementsEqual("online".utf8), prefix)
    }
    if !message.payload.isEmpty { return heardDocument(message.payload, topic) }
    // A user has deleted the device there.
    guard let subject = discovery?.subject(of: topic) else { return }
    switch subject {
    case .gateway:
      guard memory.announcedGateway != nil else { return }
      log.notice("the gateway was deleted in Home Assistant: it is announced again at the next start")
      isGatewayForgotten = true
      memory.announceGateway(nil)
      // They refer to it no more: so its return will be news to them.
      for device in byID.values { announce(device) }
    case .device(let address):
      guard let device = devices[address], device.holder.party != .nobody else { return }
      if device.holder.party == .this, memory.records[address]?.announced == nil { return }
      log.notice("deleted in Home Assistant: announced again when it is added by device/add", device.fields)
      memory.change(address) { record in
        record.isForgotten = true
        record.announced = nil
      }
    }
  }

  /// The prefix that Home Assistant has said its status under; nil when `topic` tells none.
  private func prefix(ofStatus topic: TopicName) -> String? {
    if let discovery, topic == discovery.status { return discovery.prefix }
    return memory.removals.values.first { $0.status == topic }?.announced.prefix
  }

  private func heardStatus(isOnline: Bool, _ prefix: String) {
    cancelFollowUps()
    guard isOnline else { return }
    // It has begun anew, and may have been without a broker that retains.
    if prefix == discovery?.prefix { announceAll(.revive) }
    for (topic, removal) in memory.removals where removal.announced.prefix == prefix {
      announce(.removal(topic, .revive))
    }
  }

  /// The document of another gateway has taken the place of this one's.
  private func heardDocument(_ payload: [UInt8], _ topic: String) {
    let words = Discovery(prefix: configuration.homeAssistant.prefix, qos: qos, topics: topics)
    guard words.isOfAnotherGateway(payload) else { return }
    drop(topic)
    guard case .device(let address) = discovery?.subject(of: topic), let device = devices[address] else {
      return
    }
    device.announcedHash = nil
    if device.holder.party == .this {
      announce(device)
    } else {
      memory.change(address) { $0.announced = nil }
    }
  }

  // MARK: Removals

  func remember(_ removal: Removal) {
    memory.remember(removal)
    subscribe(removal)
  }

  /// What was told on the discovery topic `topic` is not to be taken back any more.
  func drop(_ topic: String) {
    guard let removal = memory.removals[topic] else { return }
    memory.dropRemoval(topic)
    unsubscribe(removal)
  }
}
