import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// Publishes one device: its values, availability and info, as long as this gateway owns it.
package final class DevicePublisher: DeviceObserver, @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private let context: BridgeContext
  private unowned let bridge: Bridge
  package private(set) var device: DeviceDescription
  package private(set) var topics: DeviceTopics
  private(set) var ownership: DeviceOwnership
  /// Arrives after the retained messages of the device; nil: it has arrived.
  private var barrier: UInt64?
  /// Whether the state database knew nothing of the device when it was attached: it was never connected, or the database
  /// is lost. Until the first barrier.
  private var isNew: Bool
  private let properties: [PropertyPublisher]
  /// Readings of a new link while `info` still names another gateway, to be published when the device is online here.
  private var heldReadings: [Reading] = []
  /// Beyond it, the oldest are dropped.
  private static let mostHeldReadings = 1000
  private var publishedInfo: [UInt8] = []
  /// The last move to this gateway.
  private(set) var moved: Move?
  /// Whether it was logged that another gateway uses its id for another device, and neither can be renamed.
  private var isIDConflictLogged = false
  /// Retained values of properties that the profile does not have: of an earlier run, or of another device that had the
  /// id. Cleared when this gateway owns the device.
  private var orphanedValues: [TopicName]

  init(_ device: DeviceDescription, _ bridge: Bridge, _ context: BridgeContext) {
    self.context = context
    self.bridge = bridge
    self.device = device
    topics = context.topics.topics(of: device.id, device.profile)
    orphanedValues = topics.states(ofOtherProperties: device.offered ?? [])
    ownership = DeviceOwnership(context.gateway)
    isNew = !context.engine.assumeIsolated { $0.hasRecord(of: device.address) }
    properties = zip(device.profile.properties, topics.properties).map { PropertyPublisher($0, $1, context) }
  }

  package var fields: LogFields {
    ["device": device.id, "address": device.address, "name": device.name ?? "unknown"]
  }

  // MARK: Observer

  package func received(_ reading: Reading) {
    guard !ownership.isElsewhere, heldReadings.isEmpty else { return hold(reading) }
    properties[reading.property].publish(reading, readings: topics.readings)
  }

  package func completed(_ result: CommandResult, for sender: JSONValue) {
    context.publish(result, on: topics.result(ofProperty: result.property), for: Sender(sender))
  }

  private func hold(_ reading: Reading) {
    // Otherwise it is of the old link, which ends a little after another gateway has taken the device over.
    guard device.session == .subscribing else { return }
    if heldReadings.count == Self.mostHeldReadings { heldReadings.removeFirst() }
    heldReadings.append(reading)
  }

  private func publishHeldReadings() {
    for reading in heldReadings {
      properties[reading.property].publish(reading, readings: topics.readings, isHeld: true)
    }
    heldReadings = []
  }

  package func changed(_ change: DeviceChange, _ device: DeviceDescription) {
    self.device = device
    if device.session != .subscribing, device.session != .live { heldReadings = [] }
    switch change {
    case .availability:
      if device.isOnline { cameOnline() }
      if ownership.owner == .this {
        publishPresence()
        publishHeldReadings()
      }
    case .description:
      if ownership.owner == .this { publishInfo() }
    case .renamed(let before, let reason): renamed(from: before, reason)
    case .added:
      bridge.companion?.deviceAdded(device.address)
      if ownership.owner == .this { publishInfo() }
    case .session: break
    }
    bridge.report.changed()
  }

  package func detach(_ reason: DetachReason) {
    bridge.remove(self)
    if [.removed, .neverConnected].contains(reason) { bridge.forgetCommands(of: device) }
    switch reason {
    case .removed where !ownership.isElsewhere:
      clearOrRelease(topics.states)
      // Without a connection the topics are orphaned: this run clears them on the next one, or the next run does.
      guard bridge.isAdmitted else { break }
      bridge.companion?.deviceRemoved(device.address)
      storeID()
    case .replaced where !ownership.isElsewhere:
      // The new properties may be others.
      clearOrRelease(topics.properties.flatMap(\.states))
    case .removed, .replaced, .pinnedElsewhere, .neverConnected:
      release()
      bridge.companion?.ownedElsewhere(device.address)
      // What is pinned to another gateway keeps its topics until that one has it.
      if ownership.isElsewhere, reason != .replaced { storeID() }
    }
    bridge.report.changed()
  }

  private func storeID() {
    let address = device.address
    context.engine.assumeIsolated { $0.storeID(of: address) }
  }

  private func cameOnline() {
    guard ownership.cameOnline(), let before = ownership.last else { return }
    context.log.notice(
      "taken over", ["device": device.id, "address": device.address, "from": before.gateway])
    moved = Move(from: before.gateway, area: before.area, time: .now)
  }

  private func renamed(from before: DeviceID, _ reason: RenameReason) {
    let isOwn = ownership.owner == .this
    switch reason {
    case .requested: if isOwn { clearOrRelease(topics.states) }
    case .conflict: release()
    }
    bridge.unsubscribe(self)
    topics = context.topics.topics(of: device.id, device.profile)
    orphanedValues = []
    for (property, topics) in zip(properties, topics.properties) { property.move(to: topics) }
    bridge.renamed(self, from: before)
    guard isOwn else { return }
    if !bridge.isAdmitted {
      bridge.foundOrphan(before, of: device.address, offered: device.offered ?? [])
    }
    publishPresence()
    for property in properties { property.republish() }
  }

  // MARK: Publishing

  /// Info and availability.
  func publishPresence() {
    clearOrphanedValues()
    // First, so that it is there when the device comes online.
    publishInfo()
    context.publishState(topics.availability, Payload.availability(device.isOnline))
  }

  package func publishInfo() {
    publishedInfo =
      device.infoJSON(owner: context.gateway, moved: moved, isDeleted: bridge.isDeleted(device.address))
      .bytes
    context.publishState(topics.info, publishedInfo)
    bridge.ownedDeviceChanged(self)
  }

  /// Another gateway publishes the device's topics from now on.
  func release() { for topic in topics.states { context.mqtt.releaseState(topic) } }

  /// Without a connection the topics are left as they are: by the next one another gateway may own the device.
  private func clearOrRelease(_ topics: [TopicName]) {
    for topic in topics {
      if bridge.isAdmitted { context.clearState(topic) } else { context.mqtt.releaseState(topic) }
    }
  }

  private func clearOrphanedValues() {
    guard bridge.isAdmitted, ownership.owner == .this else { return }
    for topic in orphanedValues { context.clearState(topic) }
    orphanedValues = []
  }

  /// Values of the properties `offered` may be retained under its id: those that its profile lacks are cleared.
  func foundOrphanedValues(_ offered: Set<String>) {
    orphanedValues += topics.states(ofOtherProperties: offered)
  }

  // MARK: Ownership

  /// The retained messages of the device arrive before this barrier.
  func setBarrier(_ barrier: UInt64) { self.barrier = barrier }

  /// - Parameter isOnlyGateway: whether no other gateway is online.
  func barrierArrived(_ number: UInt64, isOnlyGateway: Bool) {
    guard let barrier, barrier <= number else { return }
    self.barrier = nil
    isNew = false
    reconcile(isOnlyGateway: isOnlyGateway)
  }

  /// The retained `info`, from any gateway.
  func received(info payload: [UInt8]) {
    // Mostly it is this gateway's own.
    if ownership.owner == .this, payload == publishedInfo { return }
    let notice = DeviceOwnership.Notice(payload)
    // Unreadable.
    if notice == nil, !payload.isEmpty { return }
    if let notice, notice.gateway != context.gateway, let address = notice.address,
      address != device.address
    {
      return receivedOtherDevice(notice)
    }
    if let notice, notice.gateway == context.gateway, notice.address == device.address, isNew {
      restore(notice)
    }
    let before = ownership.owner
    switch ownership.received(notice, liveSince: onlineSince, keepsOwner: keepsOwner(notice)) {
    case .republish:
      if let notice { learnOrigin(notice) }
      publishPresence()
    case .release: handOver(notice, before: before)
    case nil:
      guard ownership.owner == .unknown, before != .unknown else { return }
      // The owner has cleared it.
      let id = device.id
      context.engine.assumeIsolated { $0.setOwner(.unknown, of: id) }
    }
  }

  /// Whether a gateway that visits the device keeps it: it is online, and this one has published nothing yet.
  private func keepsOwner(_ notice: DeviceOwnership.Notice?) -> Bool {
    guard let notice, !bridge.isAdmitted, bridge.isOnline(notice.gateway) else { return false }
    let id = device.id
    return context.engine.assumeIsolated { $0.isOnDemand(id) }
  }

  /// As ``DeviceOwnership/Notice/liveSince``.
  private var onlineSince: String? { device.isOnline ? device.lastConnected?.description : nil }

  /// Another gateway uses this id for another device. Of two that are online the earlier one keeps it.
  private func receivedOtherDevice(_ notice: DeviceOwnership.Notice) {
    guard let since = notice.liveSince else { return }
    if let own = onlineSince, (own, context.gateway.description) < (since, notice.gateway.description) {
      return publishPresence()
    }
    let id = device.id
    guard context.engine.assumeIsolated({ $0.yieldID(id) }) else {
      if !isIDConflictLogged {
        context.log.error(
          "another gateway uses its id for another device: give each device its own id", fields)
      }
      isIDConflictLogged = true
      return
    }
    context.log.notice(
      "another gateway uses its id: renamed",
      ["device": id, "address": device.address, "gateway": notice.gateway, "now": device.id])
  }

  /// The device came online here before the retained `info` of its earlier owner arrived.
  private func learnOrigin(_ notice: DeviceOwnership.Notice) {
    guard barrier != nil, notice.gateway != context.gateway else { return }
    moved = Move(from: notice.gateway, area: notice.area, time: .now)
    copyDeletion(notice)
    let (id, desired) = (device.id, notice.published(device.profile))
    context.engine.assumeIsolated { $0.copyOverrides(desired, of: id) }
  }

  /// The device is new to the state database, but an earlier run of this gateway has published its `info`: the database
  /// was lost. What commands, requests and Home Assistant had set is taken from there, except what was set since.
  private func restore(_ notice: DeviceOwnership.Notice) {
    isNew = false
    if notice.isDeleted { bridge.companion?.setDeleted(true, device.address) }
    let desired = notice.published(device.profile).filter { name, value in
      value != .noOverride && (device.desired[name] == nil || device.configured.contains(name))
    }
    guard !desired.isEmpty else { return }
    context.log.notice("restoring the desired values that the broker has kept", fields)
    let id = device.id
    context.engine.assumeIsolated { $0.copyOverrides(desired, of: id) }
  }

  /// A deletion in Home Assistant. One while the owner is offline is known here alone.
  private func copyDeletion(_ notice: DeviceOwnership.Notice) {
    guard notice.isDeleted || bridge.isOnline(notice.gateway) else { return }
    bridge.companion?.setDeleted(notice.isDeleted, device.address)
  }

  private func handOver(_ notice: DeviceOwnership.Notice?, before: Owner) {
    if ownership.owner != before, case .other(let gateway) = ownership.owner {
      context.log.notice(
        "owned by another gateway",
        ["device": device.id, "address": device.address, "gateway": gateway])
    }
    release()
    for property in properties { property.handOver() }
    bridge.companion?.ownedElsewhere(device.address)
    let (id, owner, desired) = (device.id, ownership.owner, notice?.published(device.profile) ?? [:])
    let (isOwnerOnline, hasNewLink) = (!bridge.isResponsible(for: self), ownership.hasNewLink)
    if let notice { copyDeletion(notice) }
    context.engine.assumeIsolated {
      $0.setOwner(owner, of: id, desired: desired, isOwnerOnline: isOwnerOnline, hasNewLink: hasNewLink)
    }
    bridge.report.changed()
  }

  /// Corrects an `offline` of an earlier owner, or of a late will.
  func received(availability payload: [UInt8]) {
    guard device.isOnline, !payload.elementsEqual(Payload.availability(true)) else { return }
    context.publishState(topics.availability, Payload.availability(true))
  }

  /// The retained messages of the device have arrived. What an earlier run published may be out of date.
  private func reconcile(isOnlyGateway: Bool) {
    guard !device.isOnline else { return clearOrphanedValues() }
    switch ownership.owner {
    case .other: break
    case .this:
      let id = device.id
      context.engine.assumeIsolated { $0.setOwner(.this, of: id) }
      storeID()
      publishPresence()
    case .unknown:
      // Another gateway may just have found it, and not have published that yet.
      let address = device.address
      guard isOnlyGateway, context.engine.assumeIsolated({ $0.isKnownByAddress(address) }) else { return }
      context.publishState(topics.availability, Payload.availability(false))
      storeID()
    }
  }
}
