import Configuration
import Devices
import EventLoop
import Findings
import GATT
import JSON
import Log
import MQTT

/// Publishes one device: its values, availability and info, as long as this gateway owns it.
@LoopActor package final class DevicePublisher: DeviceObserver {
  let context: BridgeContext
  private unowned let bridge: Bridge
  package private(set) var device: DeviceDescription
  package private(set) var topics: DeviceTopics
  private var machine: OwnershipMachine
  /// Arrives after the retained messages of the device.
  private var barrier = UInt64.max
  private var properties: [PropertyPublisher]
  /// The values that the device's program names itself, by name.
  private var values: [ValueKey: PropertyPublisher] = [:]
  /// Readings of a new link while `info` still names another gateway, to be published when the device is online here.
  private var heldReadings: [Reading] = []
  /// The number of held readings beyond which the oldest are dropped.
  private static let mostHeldReadings = 1000
  private var publishedInfo: [UInt8] = []
  /// The last move to this gateway.
  private(set) var moved: Move?
  /// Whether it was logged that another gateway uses this device's id for another device, and neither can be renamed.
  private var isIDConflictLogged = false
  /// The names of properties whose values may be retained: of an earlier program, run or gateway, or of another device
  /// that had the id. Those that are not published any more are cleared when this gateway owns the device.
  private var orphanedValues: Set<PropertyName>
  /// How many times another gateway's `info` of the device has arrived.
  package private(set) var notices = 0
  /// The gateways that they came from; beyond ``mostInformants``, further ones are left out.
  package private(set) var informants: Set<GatewayID> = []
  private static let mostInformants = 64
  private var disagreements = Disagreements()
  /// What was logged of them last.
  private var reported: Finding?
  /// The names of properties that other gateways have published of the device.
  package private(set) var publishedElsewhere: Set<PropertyName> = []

  /// - Parameter before: that of the device before it was made again with other properties.
  init(
    _ device: DeviceDescription, _ bridge: Bridge, _ context: BridgeContext, before: OwnershipMachine?
  ) {
    self.context = context
    self.bridge = bridge
    self.device = device
    topics = context.topics.topics(of: device.id, device.profile)
    orphanedValues = Set(names: device.record.offered ?? [])
    let hadID = context.engine.storedID(of: device.address)
    machine =
      before ?? OwnershipMachine(context.gateway, device.id, device.address, hasTopics: hadID == device.id)
    properties = zip(device.profile.properties, topics.properties).map { PropertyPublisher($0, $1, context) }
    updateValues()
    if isOwnedByOther { context.engine.setOwner(owner, of: device.id) }
  }

  package var owner: Owner { machine.owner }
  var isOwnedByOther: Bool { machine.isOwnedByOther }

  package var fields: LogFields {
    ["device": device.id, "address": device.address, "name": device.name ?? "unknown"]
  }

  // MARK: Observer

  package func reported(_ reading: Reading) {
    guard !isOwnedByOther, heldReadings.isEmpty else { return hold(reading) }
    properties[reading.property].publish(reading)
  }

  package func reported(_ reading: ValueReading) {
    guard !isOwnedByOther, heldReadings.isEmpty, let publisher = values[reading.key] else { return }
    publisher.publish(reading.reading)
  }

  package func told(_ reading: Reading, isElsewhere: Bool) {
    if !isElsewhere, elsewhere == nil { properties[reading.property].publish(reading) }
  }

  package var hasPeers: Bool { bridge.admission.hasPeers }

  package func claim(_ event: HeardEvents.Event) {
    if elsewhere == nil { context.claim(event, of: device.address) }
  }

  /// Replaces the publishers of properties that are adjusted in another way now.
  private func updateProperties() {
    for (index, property) in device.profile.properties.enumerated()
    where property != properties[index].property {
      properties[index].forget()
      properties[index] = PropertyPublisher(property, topics.properties[index], context)
    }
  }

  private func updateValues() {
    let before = values
    values = [:]
    for value in device.values {
      values[value.key] =
        before[value.key].flatMap { $0.property == value.property ? $0 : nil }
        ?? PropertyPublisher(value.property, topics.topics(of: value), context)
    }
    for (key, publisher) in before where values[key] !== publisher { publisher.forget() }
  }

  package func answer(_ result: CommandResult, to sender: JSONValue) {
    publish(result, for: Sender(sender))
  }

  private func hold(_ reading: Reading) {
    // Otherwise it is of the old link, which ends a little after another gateway has taken the device over.
    guard device.session == .subscribing else { return }
    if heldReadings.count == Self.mostHeldReadings { heldReadings.removeFirst() }
    heldReadings.append(reading)
  }

  private func publishHeldReadings() {
    for reading in heldReadings { properties[reading.property].publish(reading, isHeld: true) }
    heldReadings = []
  }

  package func changed(_ change: DeviceChange, _ device: DeviceDescription) {
    let before = self.device
    self.device = device
    // Before its first link it may offer everything, and has published nothing.
    let gone = before.record.offered == nil ? [] : before.propertyNames.subtracting(device.propertyNames)
    if device.profile != before.profile { updateProperties() }
    if device.values != before.values { updateValues() }
    if !gone.isEmpty { withdraw(gone) }
    if device.session != .subscribing, device.session != .live { heldReadings = [] }
    switch change {
    case .availability:
      perform(machine.availabilityChanged(here))
      if owner == .this { publishHeldReadings() }
    case .description, .handover:
      if owner == .this { publishInfo() } else { hearAgain() }
    case .renamed(let before, let reason): renamed(from: before, reason)
    case .session: break
    }
    bridge.report.changed()
  }

  /// The device no longer offers these properties.
  private func withdraw(_ names: Set<String>) {
    for property in properties where names.contains(property.property.name) { property.forget() }
    orphanedValues.formUnion(Set(names: names))
    clearOrphanedValues()
  }

  package func detach(_ reason: DetachReason) {
    bridge.remove(self)
    // The owner of a replaced device is kept: this gateway hears the device again at once, and would publish it.
    if reason == .replaced, isOwnedByOther { bridge.replaced = (device.id, device.address, machine) }
    // If the device is seen again, it is a new one.
    if [.removed, .neverConnected].contains(reason) { bridge.commands.forget(device) }
    switch reason {
    case .removed:
      release()
      leaveOrphan(device.id, isSettled: machine.mayClear)
    case .replaced where !isOwnedByOther:
      // The new properties may be others.
      for topic in topics.properties.flatMap(\.states) + valueTopics {
        if machine.mayClear { context.mqtt.clearState(topic) } else { context.mqtt.releaseState(topic) }
      }
    case .replaced, .pinnedElsewhere, .neverConnected:
      release()
      bridge.publishers.discovery?.ownedElsewhere(device.address)
    }
    bridge.report.changed()
  }

  private func storeID() { context.engine.storeID(of: device.address) }

  private func renamed(from before: DeviceID, _ reason: RenameReason) {
    let (isOwn, isSettled) = (owner == .this, machine.mayClear)
    if isOwn || reason == .conflict { release() }
    bridge.unsubscribe(self)
    machine.renamed(to: device.id)
    topics = context.topics.topics(of: device.id, device.profile)
    orphanedValues = []
    for (property, topics) in zip(properties, topics.properties) { property.move(to: topics) }
    for value in device.values { values[value.key]?.move(to: topics.topics(of: value)) }
    bridge.renamed(self, from: before)
    guard isOwn else { return }
    // First, so that other gateways that know the device by the id of before take it for owned all the time.
    publishPresence()
    republish()
    switch reason {
    case .requested: leaveOrphan(before, isSettled: isSettled)
    case .conflict: storeID()
    }
  }

  private func leaveOrphan(_ id: DeviceID, isSettled: Bool) {
    bridge.admission.orphaned.found(
      id, of: device.address, offered: Set(names: (device.record.offered ?? []).union(device.propertyNames)),
      isSettled: isSettled)
  }

  // MARK: Publishing

  /// Publishes `info` and the availability.
  private func publishPresence() {
    clearOrphanedValues()
    // `info` goes first, so that it is there when the device comes online.
    publishInfo()
    publishAvailability()
  }

  private func publishAvailability() {
    context.publishState(topics.availability, Payload.availability(device.isOnline))
  }

  private func publishInfo() {
    publishedInfo = info
    context.publishState(topics.info, publishedInfo)
    bridge.ownedDeviceChanged(self)
  }

  /// Publishes the last values again.
  private func republish() {
    let publishers = properties + device.values.compactMap { values[$0.key] }
    let names = device.propertyNames
    for (property, last) in zip(publishers, context.engine.lastValues(of: device.address))
    where names.contains(property.property.name) {
      property.republish(last)
    }
  }

  private var info: [UInt8] { device.infoJSON(owner: context.gateway, moved: moved).bytes }

  private var valueTopics: [TopicName] { device.values.flatMap { topics.topics(of: $0).states } }

  private func release() { for topic in topics.states + valueTopics { context.mqtt.releaseState(topic) } }

  private func clearOrphanedValues() {
    guard machine.mayClear, owner == .this, !orphanedValues.isEmpty else { return }
    for topic in topics.states(of: orphanedValues.subtracting(Set(names: device.propertyNames))) {
      context.mqtt.clearState(topic)
    }
    orphanedValues = []
  }

  /// Values of the properties `offered` may be retained under its id.
  func foundOrphanedValues(_ offered: Set<PropertyName>) { orphanedValues.formUnion(offered) }

  // MARK: Ownership

  private var here: OwnershipMachine.Here {
    OwnershipMachine.Here(
      onlineSince: device.isOnline ? device.lastConnected?.description : nil,
      isOnDemand: device.settings.isOnDemand, isExclusive: device.profile.hasLinks, rssi: device.rssi,
      lastHeard: device.record.lastHeard,
      isOwnerOnline: isOwnerOnline, isAdmitted: bridge.admission.isAdmitted)
  }

  private var isOwnerOnline: Bool {
    if case .other(let gateway) = owner { bridge.admission.isOnline(gateway) } else { false }
  }

  /// The gateway is offline.
  func gatewayEnded(_ gateway: GatewayID) { if owner == .other(gateway) { hearAgain() } }

  /// The device may be this gateway's now, if it is only heard, here too.
  private func hearAgain() {
    if !device.profile.hasLinks, device.isOnline { perform(machine.availabilityChanged(here)) }
  }

  /// The retained messages of the device arrive before this barrier; `.max`: without a connection.
  func setBarrier(_ barrier: UInt64) {
    self.barrier = barrier
    machine.awaitRetained()
  }

  /// - Parameter isOnlyGateway: whether no other gateway is online.
  func barrierArrived(_ number: UInt64, isOnlyGateway: Bool) {
    guard barrier <= number else { return }
    barrier = .max
    perform(machine.settle(here, isOnlyGateway: isOnlyGateway))
    if owner == .this { storeID() }
    clearOrphanedValues()
  }

  /// Whether the payload is the last `info` that this gateway has published as the owner.
  func isPublished(info payload: [UInt8]) -> Bool { owner == .this && payload == publishedInfo }

  /// Whether the `info` of this id says who owns the device.
  func follows(_ id: DeviceID) -> Bool { machine.follows(id) }

  /// An `info` of the device, from any gateway, under any id; or one of another device, under the id of this one.
  func received(_ notice: OwnershipMachine.Notice, _ payload: [UInt8]) {
    let isOwn = notice.gateway == context.gateway
    if notice.id == device.id || isOwn { orphanedValues.add(notice.properties) }
    if !isOwn {
      notices += 1
      if informants.count < Self.mostInformants { informants.insert(notice.gateway) }
      disagreements.received(notice, of: device)
      publishedElsewhere.add(notice.properties)
    }
    let before = owner
    var here = here
    here.isUpToDate = isOwn && payload == info
    perform(machine.received(notice, here, isOwnerOnline: bridge.admission.isOnline(notice.gateway)))
    if owner != before, case .other(let gateway) = owner {
      context.log.notice(
        "owned by another gateway",
        ["device": device.id, "address": device.address, "gateway": gateway])
    }
    reportDisagreement()
  }

  /// The `info` of an id is cleared, with all other topics: by its owner, or by a gateway that did not know who owns it.
  func cleared(_ id: DeviceID) {
    perform(machine.cleared(id))
    if owner == .this, id == device.id { republish() }
    reportDisagreement()
  }

  private func perform(_ actions: [OwnershipMachine.Action]) {
    for action in actions {
      switch action {
      case .setOwner(let handover, let isTakenOver, let hasNewLink):
        let (id, owner) = (device.id, owner)
        context.engine.setOwner(owner, of: id, handover, isTakenOver: isTakenOver, hasNewLink: hasNewLink)
        if owner == .unknown { hearAgain() }
      case .moved(let notice):
        context.log.notice(
          "taken over", ["device": device.id, "address": device.address, "from": notice.gateway])
        moved = Move(from: notice.gateway, area: notice.area, time: .now)
      case .publish: publishPresence()
      case .publishAvailability:
        publishAvailability()
        bridge.ownedDeviceChanged(self)
      case .publishOffline: publishOffline()
      case .release:
        release()
        for property in properties + values.values { property.forget() }
        bridge.publishers.discovery?.ownedElsewhere(device.address)
        bridge.report.changed()
      case .receive(let notice):
        perform(machine.received(notice, here, isOwnerOnline: bridge.admission.isOnline(notice.gateway)))
      case .yieldID(let gateway): yieldID(to: gateway)
      case .confirm: barrier = bridge.admission.barriers.send()
      case .clear: clear()
      }
    }
  }

  /// Another gateway publishes the device under another id.
  private func clear() {
    for topic in topics.states(of: orphanedValues) + valueTopics + topics.states {
      context.mqtt.clearState(topic)
    }
    orphanedValues = []
  }

  private func publishOffline() {
    let address = device.address
    guard context.engine.isKnownByAddress(address) else { return }
    context.publishState(topics.availability, Payload.availability(false))
    storeID()
  }

  private func yieldID(to gateway: GatewayID) {
    let id = device.id
    guard context.engine.yieldID(id) else {
      if !isIDConflictLogged {
        context.log.error(
          "another gateway uses its id for another device: give each device its own id", fields)
      }
      isIDConflictLogged = true
      return
    }
    context.log.notice(
      "another gateway uses its id: renamed",
      ["device": id, "address": device.address, "gateway": gateway, "now": device.id])
  }

  // MARK: Disagreements

  /// What another gateway publishes of the device under another id, if it owns it.
  var elsewhere: OwnershipMachine.Notice? { machine.elsewhere }

  /// What another gateway has in another way for the device than this one.
  var disagreement: Finding? {
    disagreements.finding(of: device, elsewhere: machine.elsewhere, context.topics)
  }

  /// Logs a disagreement once, until there is another one.
  private func reportDisagreement() {
    guard let finding = disagreement, finding != reported else { return }
    reported = finding
    context.log.warning(finding.line)
  }

  /// Another gateway announces the device to Home Assistant again and again, though this one owns it.
  package func announcedToo(by gateway: GatewayID) {
    disagreements.announcer = gateway
    reportDisagreement()
  }

  /// Corrects what an earlier owner has published late.
  func received(availability payload: [UInt8]) {
    guard owner == .this, !payload.elementsEqual(Payload.availability(device.isOnline)) else { return }
    publishAvailability()
  }
}

/// Publishes the values of one property of one device.
@LoopActor private final class PropertyPublisher {
  let property: Property
  private(set) var topics: DeviceTopics.Topics
  private let encoder: ReadingEncoder
  private let context: BridgeContext
  private var limiter: ReportLimiter?
  private var intervalEnd: LoopTimer?
  /// Whether the topic has a value of this gateway. Another gateway may have published a newer one since it was released.
  private var hasPublished = false

  init(_ property: Property, _ topics: DeviceTopics.Topics, _ context: BridgeContext) {
    self.property = property
    self.topics = topics
    self.context = context
    encoder = ReadingEncoder(property: property, gateway: context.gateway, run: context.run)
    limiter = property.report.map(ReportLimiter.init)
  }

  /// - Parameter isHeld: whether it is published later than it was received.
  func publish(_ reading: Reading, isHeld: Bool = false) {
    switch property.kind {
    case .state: publishState(reading.value)
    case .event:
      // Neither held nor buffered: a late press must not switch a light.
      guard let sequence = reading.sequence, !isHeld else { break }
      let payload = encoder.encode(reading, as: .event, sequence: sequence)
      context.mqtt.publish(
        MQTTMessage(topic: topics.value, payload: payload, qos: context.qos, undelivered: .dropped),
        isUrgent: true)
    }
    guard context.sendsReadings, let sequence = reading.sequence else { return }
    let payload = encoder.encode(reading, sequence: sequence)
    context.mqtt.publish(
      MQTTMessage(
        topic: topics.readings, payload: isHeld ? ReadingEncoder.markReplayed(payload) : payload,
        qos: context.qos, undelivered: .returned), isUrgent: true)
  }

  private func publishState(_ value: Value) {
    guard Self.hasPayload(value) else { return }
    switch limiter?.update(value, at: .now) {
    case nil, .publish: publish(value)
    case .wait(let delay):
      intervalEnd = loop.timer(after: delay) { [weak self] in
        guard let self, let value = limiter?.release(at: .now) else { return }
        publish(value)
      }
    case .skip: break
    }
  }

  /// NaN, infinities and what is unknown have no payload.
  private static func hasPayload(_ value: Value) -> Bool {
    switch value {
    case .number(let number): number.isFinite
    case .unknown: false
    case .integer, .bool, .text, .bytes, .record, .list: true
    }
  }

  private func publish(_ value: Value, isUrgent: Bool = true) {
    let payload = Payload.value(value, property.codec)
    hasPublished = true
    context.mqtt.setState(topics.value, payload, qos: context.qos, isUrgent: isUrgent)
    if let image = topics.image { context.publishState(image, Payload.image(payload)) }
  }

  /// The device has another id now.
  func move(to topics: DeviceTopics.Topics) { self.topics = topics }

  /// Publishes nothing later of what has come so far.
  func forget() {
    intervalEnd?.cancel()
    hasPublished = false
    limiter = property.report.map(ReportLimiter.init)
  }

  func republish(_ last: LastValue) {
    guard hasPublished, property.kind == .state, let value = last.published(property) else { return }
    if Self.hasPayload(value) { publish(value, isUrgent: false) }
  }
}
