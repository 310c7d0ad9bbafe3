import GATT
import Log
import MQTT

/// Home Assistant is told of the devices that this gateway holds, and of the gateway.
extension Gateway {
  /// So many announcements at a time, so that readings do not wait behind hundreds of them.
  private static let batch = 10
  private static let batchPause = Duration.milliseconds(20)

  var discovery: Discovery? {
    let settings = configuration.homeAssistant
    return settings.discovery ? Discovery(prefix: settings.prefix, qos: qos, topics: topics) : nil
  }

  // MARK: Hearing

  func subscribeHomeAssistant() {
    guard let discovery else { return }
    mqtt.assumeIsolated { mqtt in
      mqtt.subscribe(TopicFilter(discovery.status))
      mqtt.subscribe(TopicFilter(discovery.topic(of: .gateway)), options: [.noLocal, .noRetained])
    }
    for device in byID.values { subscribeDiscovery(of: device) }
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
  }

  func heardHomeAssistant(_ message: MQTTReceived) {
    guard let discovery else { return }
    if message.topic == discovery.status {
      // It has begun anew, and may have been without a broker that retains.
      if message.payload.elementsEqual("online".utf8) { announceAll() }
      return
    }
    // An empty one: a user has deleted the device there.
    guard message.payload.isEmpty, let subject = discovery.subject(of: message.topic.string) else { return }
    switch subject {
    case .gateway:
      guard memory.announcedGateway != nil else { return }
      log.notice("Home Assistant has deleted the gateway: not announced there until the next start")
      isGatewayForgotten = true
      memory.announceGateway(nil)
    case .device(let address):
      guard let device = devices[address], device.holder.party != .nobody else { return }
      if device.holder.party == .this, memory.records[address]?.announced == nil { return }
      log.notice("Home Assistant has deleted it: not announced there until it is added again", device.fields)
      memory.change(address) { record in
        record.isForgotten = true
        record.announced = nil
      }
    }
  }

  // MARK: Telling

  /// Everything, as to somebody who knows nothing.
  func announceAll() {
    announcedGatewayHash = nil
    for device in byID.values {
      device.announcedHash = nil
      announce(device)
    }
    announceGateway()
  }

  /// Tells of the device what has changed, soon.
  func announce(_ device: Device) {
    guard !announcing.contains(device.address) else { return }
    announcing.append(device.address)
    if announcing.count == 1 { announceNext(after: .zero) }
  }

  private func announceNext(after delay: Duration) {
    loop.timer(after: delay) { [weak self] in self?.assumeIsolated { $0.announceNext() } }
  }

  private func announceNext() {
    for address in announcing.prefix(Self.batch) {
      if let device = devices[address] { announceNow(device) }
    }
    announcing.removeFirst(min(Self.batch, announcing.count))
    if !announcing.isEmpty { announceNext(after: Self.batchPause) }
  }

  private func announceNow(_ device: Device) {
    guard let discovery, claim.state == .held, device.holder.party == .this else { return }
    let record = memory.records[device.address]
    guard record?.isForgotten != true else { return }
    let document = discovery.document(of: device.info, topics: device.topics, before: record?.announced)
    guard document.payload.hashValue != device.announcedHash else { return }
    device.announcedHash = document.payload.hashValue
    memory.change(device.address) { $0.announced = document.announced }
    publish(document)
  }

  func announceGateway() {
    guard let discovery, claim.state == .held, !isGatewayForgotten else { return }
    let document = discovery.document(
      ofGatewayIn: configuration.gateway.area, adapter: configuration.bluetooth.adapter,
      before: memory.announcedGateway)
    guard document.payload.hashValue != announcedGatewayHash else { return }
    announcedGatewayHash = document.payload.hashValue
    memory.announceGateway(document.announced)
    publish(document)
  }

  private func publish(_ document: DiscoveryDocument) {
    publish(MQTTMessage(topic: document.topic, payload: document.payload, retain: true))
  }

  // MARK: Taking back

  /// The device is no longer announced.
  func clearDiscovery(of address: BluetoothAddress) {
    guard let announced = memory.records[address]?.announced else { return }
    // First of all: the broker may tell it back.
    memory.change(address) { $0.announced = nil }
    devices[address]?.announcedHash = nil
    clearState(Discovery(prefix: announced.prefix, qos: qos, topics: topics).topic(of: .device(address)))
  }

  /// What was announced where Home Assistant is not to be told any more, is taken back.
  func reviewDiscovery() {
    let prefix = discovery?.prefix
    for record in memory.records.values where record.announced.map({ $0.prefix != prefix }) == true {
      if devices[record.identifier]?.holder.isElsewhere == true {
        memory.change(record.identifier) { $0.announced = nil }
      } else {
        clearDiscovery(of: record.identifier)
      }
    }
    if let announced = memory.announcedGateway, announced.prefix != prefix {
      memory.announceGateway(nil)
      announcedGatewayHash = nil
      clearState(Discovery(prefix: announced.prefix, qos: qos, topics: topics).topic(of: .gateway))
    }
  }
}
