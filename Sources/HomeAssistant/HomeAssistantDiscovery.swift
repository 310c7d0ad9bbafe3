import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import Log
import MQTT
import Store

/// Announces the devices that this gateway owns, and the gateway, to Home Assistant, and removes what is gone.
@LoopActor package final class HomeAssistantDiscovery: DiscoveryFrontEnd {
  unowned let bridge: Bridge
  let store: DiscoveryStore
  private var configuration: Configuration
  /// Nil: nothing is announced.
  private(set) var discovery: Discovery?
  let schedule: AnnouncementSchedule
  /// The last documents.
  var published: [Discovery.Subject: PublishedDocument] = [:]
  /// The topics of removed documents that were cleared on this connection: what the broker retains may be on its way.
  private var clearedTopics: Set<String> = []
  /// The topics of removed documents that were published again, to be removed by a follow-up.
  var reannounced: Set<String> = []
  /// The prefixes under which a Home Assistant has started before this gateway may publish.
  var started: Set<String> = []
  var otherBases: Set<String> = []
  /// A user has deleted the gateway in Home Assistant: it is announced again at the next start.
  private var isGatewayDeleted = false

  var context: BridgeContext { bridge.context }

  package init(_ configuration: Configuration, _ bridge: Bridge, _ section: StateSection) {
    self.configuration = configuration
    self.bridge = bridge
    store = DiscoveryStore(section)
    schedule = AnnouncementSchedule()
    discovery = Discovery(configuration, bridge.context)
    schedule.perform = { [weak self] in self?.perform($0) ?? true }
    // The documents of a thousand devices are more than the queue for a slow broker holds.
    schedule.hasBacklog = { [unowned bridge] in bridge.context.mqtt.hasBacklog }
  }

  package func start() { subscribe() }

  package func configure(_ new: Configuration) {
    let before = discovery
    configuration = new
    discovery = Discovery(new, context)
    if discovery?.prefix != before?.prefix {
      if let before { unsubscribe(before) }
      subscribe()
      removeOtherPrefixes()
      for publisher in bridge.publishers.all where publisher.others.announcer != nil {
        publisher.announcedToo(by: nil)
      }
    }
    announceAll(.plain)
  }

  // MARK: Bridge

  package func admitted() {
    // After the devices are settled: another gateway may own one that this gateway no longer has.
    loop.timer(after: .zero) { [weak self] in self?.removeOtherPrefixes() }
    // A deletion that waited for the connection is sent now.
    for removal in store.removals.values {
      if case .device(let address) = discovery?.subject(of: removal.topic.string) {
        cleared(.device(address))
      }
      // The connection ended before the follow-up.
      if reannounced.remove(removal.topic.string) != nil { context.mqtt.clearState(removal.topic) }
    }
    // The broker may have gone back to a state in which they were announced: what it retains is received again.
    for publisher in bridge.publishers.all where publisher.owner == .this && publisher.device.isDeleted {
      if let topic = discovery?.topic(of: .device(publisher.device.address)) {
        context.mqtt.subscribe([TopicFilter(topic)], options: .noLocal)
      }
    }
    if discovery.map({ started.contains($0.prefix) }) != true { announceAll(.plain) }
    for prefix in started { announceAgain(prefix) }
    started = []
  }

  package func disconnected() {
    (clearedTopics, started) = ([], [])
    schedule.cancelFollowUps { _ in true }
  }

  package func attached(_ address: BluetoothAddress) { subscribe(to: address) }

  package func detached(_ address: BluetoothAddress) {
    if let discovery { unsubscribe(from: address, discovery) }
  }

  package func deviceChanged(_ publisher: DevicePublisher) {
    schedule.append(.document(.device(publisher.device.address), .plain))
  }

  package func deviceRemoved(_ address: BluetoothAddress) {
    if store[.device(address)] == nil { askForDocument(of: address) } else { remove(.device(address)) }
  }

  package func ownedElsewhere(_ address: BluetoothAddress) {
    store[.device(address)] = nil
    published[.device(address)]?.expire()
  }

  // MARK: Messages

  package func received(_ message: MQTTReceived) {
    if let prefix = prefix(ofStatus: message.topic) { return statusChanged(message, prefix) }
    if !message.payload.isEmpty { return received(document: message) }
    // A user has deleted the device.
    switch discovery?.subject(of: message.topic.string) {
    case .gateway: gatewayDeleted()
    case .device(let address): deviceDeleted(address)
    case nil: break
    }
  }

  private func gatewayDeleted() {
    guard store[.gateway] != nil else { return }
    context.log.notice("the gateway was deleted in Home Assistant: it is announced again at the next start")
    isGatewayDeleted = true
    store[.gateway] = nil
  }

  /// The other gateways learn it from the `info` of an owner that is online: the empty payload may also come from an
  /// owner that no longer announces its devices.
  private func deviceDeleted(_ address: BluetoothAddress) {
    if bridge.publishers[address]?.owner != .this { published[.device(address)]?.expire() }
    guard let publisher = bridge.publishers[address], case let owner = publisher.owner, owner != .unknown,
      bridge.ownership.isResponsible(for: publisher)
    else { return }
    if owner == .this, publisher.others.announcer != nil {
      // That gateway has removed its own document, as it has another prefix now.
      publisher.announcedToo(by: nil)
      cleared(.device(address))
      return deviceChanged(publisher)
    }
    if publisher.device.isDeleted || owner == .this && store[.device(address)] == nil { return }
    context.log.notice(
      "deleted in Home Assistant: announced again when it is added with device/add", publisher.fields)
    if owner != .this { store[.device(address)] = nil }
    cleared(.device(address))
    context.engine.setDeleted(publisher.device.id)
  }

  private func received(document: MQTTReceived) {
    let topic = document.topic.string
    if case .device(let address) = discovery?.subject(of: topic),
      let publisher = bridge.publishers[address], publisher.owner == .this, publisher.device.isDeleted
    {
      // The document was on its way when a user deleted the device.
      return context.mqtt.clearState(document.topic)
    }
    let any = Discovery(prefix: configuration.homeAssistant.prefix, qos: context.qos, topics: context.topics)
    let (gateways, otherBase) = any.origin(of: document.payload)
    // What is retained may be this gateway's own, of before its base topic was changed.
    if gateways.isEmpty { return reportOther(document.retain ? nil : otherBase) }
    guard let other = gateways.first(where: { $0 != context.gateway }) else {
      // Of a device that this gateway had removed: a broker that went back to an older state has it again.
      if document.retain, !isSubscribed(document.topic), clearedTopics.insert(topic).inserted {
        context.mqtt.clearState(document.topic)
      }
      return
    }
    // Another gateway has announced the device.
    discardRemoval(topic)
    // A deletion that the broker has not received yet.
    context.mqtt.releaseState(document.topic)
    guard case .device(let address) = discovery?.subject(of: topic),
      let publisher = bridge.publishers[address]
    else { return }
    let sendsInfo = publisher.others.informants.contains(other)
    for action in published[.device(address), default: PublishedDocument()]
      .received(from: other, sendsInfo: sendsInfo, here(publisher))
    {
      switch action {
      case .announce: deviceChanged(publisher)
      case .forget: store[.device(address)] = nil
      case .report: publisher.announcedToo(by: other)
      }
    }
  }

  // MARK: Announcing

  /// Announces everything, even unchanged documents.
  func announceAll(_ stage: Announcement.Stage) {
    forgetRemoved()
    for subject in published.keys { published[subject]?.expire() }
    schedule.change {
      // So that it is there before the devices refer to it.
      $0.prepend(.document(.gateway, stage))
      for publisher in bridge.publishers.all {
        $0.append(.document(.device(publisher.device.address), stage))
      }
    }
  }

  private func forgetRemoved() {
    published = published.filter {
      if case .device(let address) = $0.key { bridge.publishers[address] != nil } else { true }
    }
  }

  /// - Returns: false if it is too early.
  private func perform(_ announcement: Announcement) -> Bool {
    // Once the gateway is admitted, everything is announced.
    guard bridge.ownership.isAdmitted else { return true }
    switch announcement {
    case .document(let subject, _) where published[subject]?.isPausing(at: .now) == true: return false
    case .document(.gateway, let stage): announceGateway(stage)
    case .document(.device(let address), let stage):
      if let publisher = bridge.publishers[address] { announce(publisher, stage) }
    case .removal(let topic, let stage): if let removal = store.removals[topic] { announce(removal, stage) }
    case .link(let address): if let publisher = bridge.publishers[address] { announceLink(of: publisher) }
    }
    return true
  }

  private func announce(_ publisher: DevicePublisher, _ stage: Announcement.Stage) {
    let device = publisher.device
    let address = device.address
    // What the device offers, and its model, are known after its first link.
    guard let discovery, publisher.owner == .this, device.record.offered != nil,
      !device.isInformationPending
    else { return }
    // The device was deleted, perhaps at another gateway: it is announced when it is added, even if the document is the
    // same.
    guard !device.isDeleted else { return ownedElsewhere(address) }
    let subject = Discovery.Subject.device(address)
    // One that was removed and added again may offer less than Home Assistant has.
    let before =
      store[subject] ?? store.removals[discovery.topic(of: subject).string]?.announced
      ?? discovery.announced(
        publisher.others.properties, of: device,
        configuration.profile(named: device.profile.name) ?? device.profile)
    let document = discovery.document(
      of: device, topics: publisher.topics, before: before, isReannouncement: stage == .reannounce,
      removed: published[subject]?.removed ?? [])
    publish(document, of: subject, stage, here(publisher))
  }

  private func announceLink(of publisher: DevicePublisher) {
    let device = publisher.device
    let subject = Discovery.Subject.device(device.address)
    guard let discovery, publisher.owner == .this, !device.isDeleted, !isGatewayDeleted else { return }
    // Later, so that it delays no document that follows the last one.
    if published[subject]?.isPausing(at: .now) == true { return schedule.addFollowUp(.link(device.address)) }
    guard published[subject]?.link(at: .now) == true else { return }
    let document = discovery.link(of: device, topics: publisher.topics)
    context.mqtt.publish(
      MQTTMessage(topic: document.topic, payload: document.payload, undelivered: .dropped))
  }

  private func announceGateway(_ stage: Announcement.Stage) {
    guard let discovery, !isGatewayDeleted else { return }
    let document = discovery.document(
      ofGatewayIn: configuration.gateway.area, adapters: configuration.bluetooth.adapters,
      before: store[.gateway], isReannouncement: stage == .reannounce,
      removed: published[.gateway]?.removed ?? [])
    publish(document, of: .gateway, stage)
  }

  /// Publishes a document that is not the same as the last one.
  private func publish(
    _ document: DiscoveryDocument, of subject: Discovery.Subject, _ stage: Announcement.Stage,
    _ here: PublishedDocument.Here? = nil
  ) {
    var last = published[subject] ?? PublishedDocument()
    if stage == .reannounce { last.reannounce() } else { last.replace(by: document) }
    // All bytes at once: an array's own `hashValue` takes them one by one.
    var hasher = Hasher()
    document.payload.withUnsafeBytes { hasher.combine(bytes: $0) }
    let isNew = last.publish(hasher.finalize(), at: .now, here)
    if isNew { last.announced = document.announced }
    published[subject] = last
    if isNew {
      discardRemoval(document.topic.string)
      // A deletion that the broker has not received yet would come after it on the next connection.
      context.mqtt.releaseState(document.topic)
      // Everything is announced again on the next connection, as it is then.
      context.mqtt.publish(
        MQTTMessage(
          topic: document.topic, payload: document.payload, retain: true, undelivered: .dropped))
    }
    store[subject] = announced(by: document, of: subject, stage)
    if isNew, case .device(let address) = subject { schedule.addFollowUp(.link(address)) }
  }

  /// What to record of `document`. What was announced only to be removed is removed by a later one, as are entities whose keys
  /// others have by now, and what a document was to remove that the broker has refused.
  private func announced(
    by document: DiscoveryDocument, of subject: Discovery.Subject, _ stage: Announcement.Stage
  ) -> Announced {
    switch stage {
    case .reannounce:
      if document.announced != document.completed { schedule.addFollowUp(.document(subject, .remove)) }
    case .plain, .remove:
      if !document.replaced.isEmpty {
        schedule.append(.document(subject, stage))
      } else if stage == .remove, published[subject]?.isRefused != true {
        return document.completed
      }
    }
    return document.announced
  }

  private func announce(_ removal: Removal, _ stage: Announcement.Stage) {
    switch stage {
    case .plain: break
    case .reannounce:
      reannounced.insert(removal.topic.string)
      schedule.addFollowUp(.removal(removal.topic.string, .remove))
      // The document is not retained: if the gateway ends now, the broker keeps nothing.
      let document = removal.reannouncement(qos: context.qos)
      context.mqtt.publish(MQTTMessage(topic: document.topic, payload: document.payload))
    case .remove:
      discardRemoval(removal.topic.string)
      context.mqtt.clearState(removal.topic)
      if let subject = discovery?.subject(of: removal.topic.string) { cleared(subject) }
    }
  }

  /// Home Assistant removes the entities now: the next document comes after a pause, but for that of the gateway, which goes
  /// before those of devices.
  private func cleared(_ subject: Discovery.Subject) {
    if subject == .gateway {
      published[subject]?.expire()
    } else {
      published[subject, default: PublishedDocument()].clear(at: .now)
    }
  }

  // MARK: Removing

  private func remove(_ subject: Discovery.Subject) {
    guard let announced = store[subject] else { return }
    // First, as the broker returns the empty payload where it does not know noLocal.
    store[subject] = nil
    if clearedTopics.count >= DiscoveryStore.mostRemovals {
      clearedTopics = []
      forgetRemoved()
    }
    cleared(subject)
    let discovery = Discovery(prefix: announced.prefix, qos: context.qos, topics: context.topics)
    let topic = discovery.topic(of: subject)
    clearedTopics.insert(topic.string)
    context.mqtt.clearState(topic)
    let removal = Removal(object: discovery.object(of: subject), announced: announced)
    if store.add(removal) { subscribe(removal) }
  }

  /// What was announced under another prefix, or before discovery was switched off, is removed.
  private func removeOtherPrefixes() {
    // Another gateway may have announced a device meanwhile, which is known once this one is admitted.
    guard bridge.ownership.isAdmitted else { return }
    for subject in store.announced(notUnder: discovery?.prefix) {
      if case .device(let address) = subject, bridge.publishers[address]?.owner.isOther == true {
        store[subject] = nil
      } else {
        remove(subject)
      }
    }
  }

  /// What was announced on the discovery topic `topic` is not to be removed any more.
  private func discardRemoval(_ topic: String) {
    guard let removal = store.removals[topic] else { return }
    reannounced.remove(topic)
    store.discardRemoval(topic)
    unsubscribe(removal)
  }
}
