import Bridge
import Configuration
import Devices
import GATT
import MQTT

/// What is received: the status of Home Assistant, and what others publish on the discovery topics.
extension HomeAssistantDiscovery {
  func subscribe() {
    if let discovery {
      context.mqtt.subscribe([TopicFilter(discovery.status)])
      context.mqtt.subscribe([TopicFilter(discovery.topic(of: .gateway))], options: [.noLocal, .noRetained])
    }
    for device in context.engine.devices { subscribe(to: device.address) }
    for removal in store.removals.values { subscribe(removal) }
  }

  /// The prefix of a status topic; nil for other topics.
  func prefix(ofStatus topic: TopicName) -> String? {
    if let discovery, topic == discovery.status { return discovery.prefix }
    return store.removals.values.first { $0.status == topic }?.announced.prefix
  }

  func statusChanged(_ message: MQTTReceived, _ prefix: String) {
    schedule.cancelFollowUps { [store, discovery] in
      switch $0 {
      case .document, .link: prefix == discovery?.prefix
      case .removal(let topic, _): store.removals[topic]?.announced.prefix == prefix
      }
    }
    if !message.payload.elementsEqual("online".utf8) {
      started.remove(prefix)
    } else if bridge.ownership.isAdmitted {
      announceAgain(prefix)
    } else if !message.retain {
      // What is retained may be of an earlier start.
      started.insert(prefix)
    }
  }

  /// Home Assistant has started, perhaps with a broker that retains nothing.
  func announceAgain(_ prefix: String) {
    if prefix == discovery?.prefix { announceAll(.reannounce) }
    for (topic, removal) in store.removals where removal.announced.prefix == prefix {
      schedule.append(.removal(topic, .reannounce))
    }
  }

  func here(_ publisher: DevicePublisher) -> PublishedDocument.Here {
    PublishedDocument.Here(
      gateway: context.gateway, owner: publisher.owner, isOnline: publisher.device.isOnline,
      notices: publisher.others.notices)
  }

  func unsubscribe(_ discovery: Discovery) {
    context.mqtt.unsubscribe([
      TopicFilter(discovery.status), TopicFilter(discovery.topic(of: .gateway)),
    ])
    for device in context.engine.devices {
      unsubscribe(from: device.address, discovery)
    }
  }

  func subscribe(to address: BluetoothAddress) {
    guard let topic = discovery?.topic(of: .device(address)) else { return }
    context.mqtt.subscribe([TopicFilter(topic)], options: [.noLocal, .noRetained])
  }

  func unsubscribe(from address: BluetoothAddress, _ discovery: Discovery) {
    let topic = discovery.topic(of: .device(address))
    context.mqtt.unsubscribe([TopicFilter(topic)])
    if let removal = store.removals[topic.string] { subscribe(removal) }
  }

  func subscribe(_ removal: Removal) {
    context.mqtt.subscribe([TopicFilter(removal.status)])
    guard !isSubscribed(removal.topic) else { return }
    // What is retained is received too: another gateway may own the device by now.
    context.mqtt.subscribe([TopicFilter(removal.topic)], options: .noLocal)
  }

  func unsubscribe(_ removal: Removal) {
    if removal.announced.prefix != discovery?.prefix,
      !store.removals.values.contains(where: { $0.announced.prefix == removal.announced.prefix })
    {
      context.mqtt.unsubscribe([TopicFilter(removal.status)])
    }
    guard !isSubscribed(removal.topic) else { return }
    context.mqtt.unsubscribe([TopicFilter(removal.topic)])
  }

  /// Gets the retained document of a device that this gateway has removed, if the broker has one again.
  func askForDocument(of address: BluetoothAddress) {
    guard let topic = discovery?.topic(of: .device(address)), !isSubscribed(topic) else { return }
    context.mqtt.subscribe([TopicFilter(topic)], options: .noLocal)
    if store.removals[topic.string] == nil { context.mqtt.unsubscribe([TopicFilter(topic)]) }
  }

  /// Says once of each base topic that a gateway there announces the same device.
  func reportOther(_ base: String?) {
    guard let base, otherBases.count < 8, otherBases.insert(base).inserted else { return }
    context.log.warning(
      "a gateway at another base topic announces the same device to Home Assistant, which has the entities of the last one: "
        + "give both one mqtt.base_topic, or each a Home Assistant with a home_assistant.prefix of its own",
      ["base_topic": base])
  }

  /// Whether the topic is subscribed to as the discovery topic of a known device or of the gateway.
  func isSubscribed(_ topic: TopicName) -> Bool {
    switch discovery?.subject(of: topic.string) {
    case .gateway: true
    case .device(let address): bridge.publishers[address] != nil
    case nil: false
    }
  }
}
