import Configuration
import Devices
import EventLoop
import Findings
import GATT
import JSON
import Log
import MQTT

/// Publishes one device: its values, availability and info, as ``Ownership`` decides.
@LoopActor package final class DevicePublisher: DeviceObserver {
  let context: BridgeContext
  private unowned let bridge: Bridge
  package private(set) var device: DeviceDescription
  /// Not taken from ``device`` for each reading, as all of that would be copied.
  private let address: BluetoothAddress
  package private(set) var topics: DeviceTopics
  /// The publishers of those of ``DeviceDescription/allProperties`` that have had a value, at their places.
  private var publishers: [PropertyPublisher?]
  private var held = HeldReadings()
  private var publishedInfo: [UInt8] = []
  /// The last move to this gateway.
  private(set) var moved: Move?
  /// Whether the device was taken over from another gateway, and is still this one's.
  private var tookOver = false
  /// What another gateway has in another way, and the time for which that must last to be a disagreement: gateways that get a
  /// message for all of them differ for a moment.
  private var found: (finding: Finding, timer: LoopTimer)?
  /// The disagreement that was logged last.
  private var logged: Finding?

  init(_ device: DeviceDescription, _ bridge: Bridge, _ context: BridgeContext) {
    self.context = context
    self.bridge = bridge
    self.device = device
    address = device.address
    topics = context.topics.topics(of: device.id, device.profile)
    publishers = device.allProperties.map { _ in nil }
  }

  /// The device's area, as commands for an area name it.
  var area: AreaName? { device.settings.area.flatMap(AreaName.init) }

  package var fields: LogFields {
    ["device": device.id, "address": address, "name": device.name ?? "unknown"]
  }

  // MARK: Ownership

  /// Which gateway owns the device, as far as is known.
  package var owner: Owner { bridge.ownership.owner(of: address) }

  /// What another gateway publishes of the device under another id, if it owns it.
  var elsewhere: OwnershipMachine.Notice? {
    bridge.ownership.state.devices[address]?.machine.elsewhere
  }

  /// What other gateways have said of the device.
  package var others: OtherGateways {
    bridge.ownership.state.devices[address]?.others ?? OtherGateways()
  }

  /// What another gateway has in another way for the device than this one, if that has lasted.
  var disagreement: Finding? {
    guard let found, !found.timer.isPending, found.finding == difference else { return nil }
    return found.finding
  }

  /// What another gateway has in another way just now.
  private var difference: Finding? {
    others.finding(
      of: device, owner, elsewhere: elsewhere, online: bridge.ownership.state.online, context.topics)
  }

  /// Another gateway announces the device to Home Assistant again and again, though this one owns it; nil: none does any more.
  package func announcedToo(by gateway: GatewayID?) {
    bridge.ownership.handle { $0.learn(of: address) { $0.announcer = gateway } }
  }

  /// The device is known from now on.
  func begin() {
    bridge.ownership.handle {
      $0.added(
        address, device.id, hasTopics: context.engine.storedID(of: address) == device.id,
        offered: Set(names: device.record.published), here)
    }
  }

  private var here: OwnershipMachine.Here {
    OwnershipMachine.Here(
      onlineSince: device.isOnline ? device.lastConnected : nil,
      isOnDemand: device.settings.isOnDemand, isExclusive: device.isExclusive, hasLink: device.hasLastingLink,
      rssi: device.rssi, lastHeard: device.record.lastHeard, hasNewLetters: device.hasNewLetters)
  }

  /// The properties whose values may be published.
  private var offered: Set<PropertyName> {
    Set(names: device.record.published.union(device.propertyNames))
  }

  func perform(_ action: Ownership.DeviceAction) {
    switch action {
    case .follow: bridge.follow(self)
    case .detached: bridge.remove(self)
    case .setOwner(let handover, let isTakenOver, let hasNewLink):
      context.engine.setOwner(
        owner, of: device.id, handover, isTakenOver: isTakenOver, hasNewLink: hasNewLink)
    case .noOwner(let handover): context.engine.setOwner(.unknown, of: device.id, handover)
    case .moved(let notice):
      // Until this gateway may publish, the `info` of the one before arrives again on each connection.
      guard !tookOver || moved?.from != notice.gateway else { break }
      tookOver = true
      context.log.notice(
        "taken over", ["device": device.id, "address": address, "from": notice.gateway])
      moved = Move(from: notice.gateway, area: notice.area, time: .now)
    case .ownedBy(let gateway):
      tookOver = false
      context.log.notice(
        "owned by another gateway",
        ["device": device.id, "address": address, "gateway": gateway])
    case .publish:
      // `info` goes first, so that it is there when the device comes online.
      publishInfo()
      publishAvailability()
      bridge.ownedDeviceChanged(self)
    case .publishInfo:
      publishInfo()
      bridge.ownedDeviceChanged(self)
    case .publishHandover: publishInfo()
    case .publishAvailability:
      publishAvailability()
      bridge.ownedDeviceChanged(self)
    case .publishOffline: publishOffline()
    case .publishHeld:
      for reading in held.take() { publisher(of: reading)?.publish(reading, isHeld: true) }
    case .republish: republish()
    case .release:
      release(topics.states + valueTopics)
      for publisher in publishers { publisher?.forget() }
    case .releaseTopics: release(topics.states + valueTopics)
    case .clear: clear(valueTopics + topics.states)
    case .clearPublished: clear(publishers.flatMap { $0?.published ?? [] })
    case .clearValues(let names, let ofAnother):
      let own = Set(names: device.propertyNames)
      clear(topics.states(of: ofAnother ? names.union(own) : names.subtracting(own)))
    case .dropValues(let isCleared):
      let topics = topics.properties.flatMap(\.states)
      if isCleared { clear(topics) } else { release(topics) }
      // A value means the same, whatever the properties are; if the new ones have none, it is cleared later.
      release(valueTopics)
    case .renamed(let before): useTopics(ofIDBefore: before)
    case .yieldID(let gateway): yieldID(to: gateway)
    case .otherGateways: reportDisagreement()
    case .receive, .confirm: break
    }
  }

  private func useTopics(ofIDBefore before: DeviceID) {
    bridge.unfollow(self)
    topics = context.topics.topics(of: device.id, device.profile)
    for case let publisher? in publishers { publisher.move(to: topics.topics(of: publisher.property)) }
    bridge.publishers.renamed(self, from: before)
  }

  private func yieldID(to gateway: GatewayID) {
    let id = device.id
    guard context.engine.yieldID(id) else {
      return bridge.ownership.handle { $0.learn(of: address) { $0.sameID = gateway } }
    }
    context.log.notice(
      "another gateway uses its id: renamed",
      ["device": id, "address": address, "gateway": gateway, "now": device.id])
  }

  private func reportDisagreement() {
    let now = difference
    guard now != found?.finding else { return }
    found?.timer.cancel()
    found = now.map { finding in
      (finding, loop.timer(after: context.patienceWithOthers) { [weak self] in self?.logDisagreement() })
    }
  }

  /// Logs a disagreement once, until there is another one.
  private func logDisagreement() {
    guard let finding = disagreement else { return reportDisagreement() }
    guard finding != logged else { return }
    logged = finding
    context.log.warning(finding.line)
    bridge.report.changed()
  }

  // MARK: Observer

  package func reported(_ reading: Reading) {
    guard held.passOrHold(reading, isOwnedByOther: owner.isOther, device.session) else { return }
    publisher(of: reading)?.publish(reading)
  }

  private func publisher(of reading: Reading) -> PropertyPublisher? {
    guard let key = reading.key else { return publisher(at: reading.property) }
    return device.place(of: key).map { publisher(at: $0) }
  }

  private func publisher(at place: Int) -> PropertyPublisher {
    if let publisher = publishers[place] { return publisher }
    let property = device.allProperties[place]
    let publisher = PropertyPublisher(property, topics.topics(of: property), context)
    publishers[place] = publisher
    return publisher
  }

  package func told(_ reading: Reading, isElsewhere: Bool) {
    if !isElsewhere, elsewhere == nil { publisher(at: reading.property).publish(reading) }
  }

  package var hasPeers: Bool { bridge.ownership.state.hasPeers }

  package func claim(_ event: HeardEvents.Event) {
    if elsewhere == nil { context.claim(event, of: address) }
  }

  package func logged(_ row: LogRow, measured: Timestamp?) {
    if owner.isOther { return }
    let json: JSONValue = [
      "row": .integer(row.row), "run": .integer(row.run), "time": row.time?.value,
      "time_unit": row.time.map { .string($0.unit.rawValue) }, "values": row.values,
      "measured": measured.map { .string($0.description) },
    ]
    context.mqtt.publish(
      MQTTMessage(topic: topics.log, payload: json.bytes, qos: context.qos, undelivered: .returned))
  }

  package func answer(_ result: CommandResult, to sender: JSONValue) {
    publish(result, for: Sender(sender))
  }

  package func changed(_ change: DeviceChange, _ device: DeviceDescription) {
    let before = self.device
    self.device = device
    // Before its first link it may offer everything, and has published nothing.
    let gone = before.record.offered == nil ? [] : before.propertyNames.subtracting(device.propertyNames)
    if device.profile != before.profile || device.namedValues != before.namedValues { updatePublishers() }
    if !gone.isEmpty { withdraw(gone) }
    held.sessionChanged(device.session)
    bridge.ownership.handle { $0.changed(address, change, here) }
    if case .renamed(_, let reason) = change {
      bridge.ownership.handle { $0.renamed(address, to: device.id, reason, offered: offered) }
    }
    switch change {
    case .description, .renamed: reportDisagreement()
    case .availability, .session, .handover: break
    }
    bridge.report.changed()
  }

  package func detach(_ reason: DetachReason) {
    // If the device is seen again, it is a new one.
    if [.removed, .neverConnected].contains(reason) { bridge.commands.forget(device) }
    bridge.ownership.handle { $0.removed(address, reason, offered: offered) }
    bridge.report.changed()
  }

  /// Keeps the publishers of what is as before, and replaces those of what is adjusted in another way now.
  private func updatePublishers() {
    let all = device.allProperties
    let before = publishers.compactMap { $0 }
    publishers = all.map { _ in nil }
    for old in before {
      let place = all.firstIndex { $0.name == old.property.name }
      if let place, all[place] == old.property {
        publishers[place] = old
        continue
      }
      if let place {
        old.publishWaiting()
        publisher(at: place).replace(old)
      }
      old.forget()
    }
  }

  /// The gateway stops: no interval ends any more.
  func publishWaiting() { for publisher in publishers { publisher?.publishWaiting() } }

  /// The device no longer offers these properties.
  private func withdraw(_ names: Set<String>) {
    for case let publisher? in publishers where names.contains(publisher.property.name) { publisher.forget() }
    bridge.ownership.handle { $0.withdrawn(address, Set(names: names)) }
  }

  // MARK: Publishing

  var info: [UInt8] { device.infoJSON(owner: context.gateway, moved: moved).bytes }

  /// Whether the payload is the last `info` that this gateway has published as the owner.
  func isPublished(info payload: [UInt8]) -> Bool { owner == .this && payload == publishedInfo }

  private func publishInfo() {
    publishedInfo = info
    context.publishState(topics.info, publishedInfo)
  }

  private func publishAvailability() {
    context.publishState(topics.availability, Payload.availability(device.isOnline))
  }

  /// Corrects what an earlier owner has published late. What is another device's is not: two gateways would correct each other
  /// without end.
  func received(availability payload: [UInt8]) {
    guard owner == .this, others.sameID == nil,
      !payload.elementsEqual(Payload.availability(device.isOnline))
    else { return }
    publishAvailability()
  }

  private func publishOffline() {
    guard context.engine.isKnownByAddress(address) else { return }
    context.publishState(topics.availability, Payload.availability(false))
    context.engine.storeID(of: address)
  }

  private func republish() {
    let names = device.propertyNames
    for case (let publisher?, let last) in zip(publishers, context.engine.lastValues(of: address))
    where names.contains(publisher.property.name) {
      publisher.republish(last)
    }
  }

  private var valueTopics: [TopicName] {
    device.namedValues.flatMap { topics.topics(of: $0.property).states }
  }

  private func release(_ topics: [TopicName]) { for topic in topics { context.mqtt.releaseState(topic) } }

  private func clear(_ topics: [TopicName]) { for topic in topics { context.mqtt.clearState(topic) } }
}
