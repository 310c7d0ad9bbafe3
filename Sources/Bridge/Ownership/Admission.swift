import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// What must be known before the gateway may publish: whether its id is free, which gateway owns which device, and
/// which topics of earlier runs are orphaned.
///
/// All of that is in retained messages. When a barrier, a message that the gateway sends to itself, arrives, the
/// retained messages for earlier subscriptions have arrived: mosquitto and ejabberd keep that order.
@LoopActor final class Admission: IterationEndHandler {
  /// How long to wait for a barrier: a broker may not return a client's own messages. On a bad network packets are late
  /// by seconds, and a gateway that publishes too early overwrites what others published.
  private static let barrierTimeout = Duration.seconds(5)

  private let context: BridgeContext
  private unowned let bridge: Bridge
  private var idGuard: DuplicateIDGuard
  private var isConnected = false
  private var lastSent: UInt64 = 0
  /// The last one is sent at the end of this loop iteration: one for all devices found in it.
  private var isBarrierDue = false
  private var lastArrived: UInt64 = 0
  /// The barrier of the id guard.
  private var guardBarrier: UInt64 = 0
  private var orphans: [DeviceID: Orphan] = [:]
  /// The other gateways at this broker that are online; beyond ``mostGateways``, further ones count as offline.
  private var online: Set<GatewayID> = []
  /// Whoever may publish `bridge/{id}/state` can invent ids.
  private static let mostGateways = 1024
  /// The devices that this gateway owns by their retained `info` and does not know; nil: their topics are reported.
  private var published: Published? = Published()

  /// What an earlier run has published, or others in its name.
  private struct Published {
    private(set) var devices: [DeviceID: (address: BluetoothAddress?, properties: Set<PropertyName>)] = [:]
    private var names = 0
    /// Of all devices together: the topics of further ones stay.
    private static let mostNames = 8192

    mutating func note(_ id: DeviceID, _ notice: OwnershipMachine.Notice?) {
      names -= devices.removeValue(forKey: id)?.properties.count ?? 0
      guard let notice, devices.count < DeviceManager.capacity else { return }
      // Those of the built-in profile are cleared in any case.
      var properties = notice.properties.subtracting(Set(names: Profile.microbit.properties.map(\.name)))
      if names + properties.count > Self.mostNames { properties = [] }
      names += properties.count
      devices[id] = (notice.address, properties)
    }
  }

  /// A device whose topics are retained under an id that it no longer has.
  private struct Orphan {
    let address: BluetoothAddress
    /// The properties whose values may be published.
    let offered: Set<PropertyName>
    var machine: OwnershipMachine
    var barrier: UInt64
  }

  init(_ bridge: Bridge, _ context: BridgeContext) {
    self.bridge = bridge
    self.context = context
    idGuard = DuplicateIDGuard(run: context.run.description, started: context.started.description)
  }

  /// Asks the broker for the devices that an earlier run has published, as the state database may be lost, or older; and
  /// for those that other gateways publish under other ids.
  func start() { context.mqtt.subscribe([context.topics.deviceInfos], options: .atMostOnce) }

  var isAdmitted: Bool { idGuard.state == .admitted }
  /// Whether another gateway has the id.
  var hasIDConflict: Bool { idGuard.hasConflict }

  func connected() {
    isConnected = true
    perform(idGuard.connected())
  }

  func disconnected() {
    isConnected = false
    isBarrierDue = false
    if isAdmitted { context.mqtt.reconnecting = online.count + 1 }
    online = []
    idGuard.disconnected()
    setBarrier(.max)
  }

  func connectFailed() { idGuard.connectFailed() }

  // MARK: Barriers

  /// Sends a barrier, which arrives after the retained messages for the subscriptions so far. Without a connection none
  /// is sent: each connection begins with one.
  /// - Returns: its number.
  func sendBarrier() -> UInt64 {
    guard isConnected else { return .max }
    if !isBarrierDue {
      isBarrierDue = true
      lastSent += 1
      loop.atEndOfIteration(self)
    }
    return lastSent
  }

  nonisolated static func barrier(_ number: UInt64, of run: RunID) -> [UInt8] {
    (["transaction": .string("\(run)-\(number)")] as JSONValue).bytes
  }

  func iterationEnds() {
    guard isBarrierDue else { return }
    isBarrierDue = false
    let number = lastSent
    context.mqtt.send(
      MQTTMessage(
        topic: context.topics.bridgeRequest(Verb.health.rawValue),
        payload: Self.barrier(number, of: context.run)))
    loop.timer(after: Self.barrierTimeout) { [weak self] in
      guard let self else { return }
      if number == guardBarrier { perform(idGuard.timeout()) }
      reconcile(upTo: number)
    }
  }

  /// All retained messages arrive again before this barrier.
  private func setBarrier(_ barrier: UInt64) {
    for publisher in bridge.publishers { publisher.setBarrier(barrier) }
    for id in orphans.keys {
      orphans[id]?.barrier = barrier
      orphans[id]?.machine.awaitRetained()
      // Another gateway may own the device by the next connection.
      if !isConnected { releaseTopics(ofOrphan: id) }
    }
  }

  /// Whether all that the broker retains for the subscriptions up to this barrier has arrived.
  func hasArrived(_ barrier: UInt64) -> Bool { barrier <= lastArrived }

  /// Handles the message if it is a barrier of this run.
  /// - Returns: whether it is.
  func handleBarrier(_ message: MQTTReceived) -> Bool {
    guard message.payload.count < 64,
      let text = (try? JSONParser.parse(message.payload))?["transaction"]?.text,
      text.hasPrefix("\(context.run)-"),
      let number = UInt64(text.dropFirst("\(context.run)-".count))
    else { return false }
    lastArrived = max(lastArrived, number)
    if number == guardBarrier { perform(idGuard.barrierArrived()) }
    reconcile(upTo: number)
    return true
  }

  /// The retained messages have arrived for the devices that wait for a barrier up to `number`.
  private func reconcile(upTo number: UInt64) {
    guard isAdmitted else { return }
    reportAbsentDevices()
    for publisher in bridge.publishers {
      publisher.barrierArrived(number, isOnlyGateway: online.isEmpty)
    }
    for (id, orphan) in orphans where orphan.barrier <= number {
      orphans[id]?.barrier = .max
      feed(id) { $0.settle() }
    }
  }

  // MARK: The gateway's id

  private func perform(_ actions: [DuplicateIDGuard.Action]) {
    for action in actions {
      switch action {
      case .sendBarrier:
        guardBarrier = sendBarrier()
        setBarrier(guardBarrier)
      case .admit:
        bridge.admitted()
        reconcile(upTo: max(guardBarrier, lastArrived))
      case .reportConflict:
        context.log.error(
          "another gateway uses this id: give each its own gateway.id in config.json; not publishing until then",
          ["id": context.gateway])
      case .reconnect(let delay):
        context.mqtt.reconnect(after: delay)
      case .republishOnline:
        bridge.publishOnline()
      case .republishInfo:
        bridge.report.changed()
      }
    }
  }

  /// A response under this gateway's id, perhaps of another run that has the id.
  func received(response payload: [UInt8]) {
    guard !isAdmitted, payload.count <= TopicMap.longestPayload, let json = try? JSONParser.parse(payload),
      json["transaction"]?.text?.hasPrefix("\(context.run)-") == true,
      let other = json["data"]?["run"]?.text, other != context.run.description
    else { return }
    perform(idGuard.answered())
  }

  /// The `info` under this gateway's id.
  func received(bridgeInfo payload: [UInt8]) {
    guard let (run, started) = BridgeInfo.origin(in: payload) else { return }
    perform(idGuard.received(run: run, started: started))
  }

  /// The `state` of a gateway, this one included.
  func received(state payload: [UInt8], of gateway: GatewayID) {
    let isOnline = payload.elementsEqual(Payload.availability(true))
    if gateway == context.gateway {
      perform(idGuard.received(isOnline: isOnline))
    } else if !isOnline {
      guard online.remove(gateway) != nil else { return }
      for publisher in bridge.publishers { publisher.gatewayEnded(gateway) }
    } else if online.count < Self.mostGateways {
      online.insert(gateway)
    }
  }

  /// Whether other gateways may use the broker: it has not said yet, or there are some.
  var hasPeers: Bool { isConnected && (!isAdmitted || !online.isEmpty) }

  func isOnline(_ gateway: GatewayID) -> Bool { online.contains(gateway) }

  // MARK: Infos

  /// The `info` of a device of any gateway.
  func received(info payload: [UInt8], of id: DeviceID) {
    let named = bridge.publisher(id)
    // Mostly it is this gateway's own.
    if named?.isPublished(info: payload) == true { return }
    guard !payload.isEmpty else { return cleared(id) }
    let notice = OwnershipMachine.Notice(payload, of: id) { [bridge] address in
      (address.flatMap { bridge.publisher($0) } ?? named)?.device.profile ?? .microbit
    }
    // Unreadable.
    guard let notice else { return }
    named?.received(notice, payload)
    if orphans[id] != nil { feed(id) { $0.received(notice, OwnershipMachine.Here(), isOwnerOnline: false) } }
    let device = notice.address.flatMap { bridge.publisher($0) }
    if notice.gateway != context.gateway {
      if device !== named { device?.received(notice, payload) }
    } else if named == nil {
      if device?.isOwnedByOther == false { device?.received(notice, payload) }
      if orphans[id] == nil { published?.note(id, notice) }
    }
  }

  private func cleared(_ id: DeviceID) {
    for publisher in bridge.publishers where publisher.follows(id) { publisher.cleared(id) }
    if orphans[id] != nil { feed(id) { $0.cleared(id) } }
  }

  // MARK: Lost devices

  /// A device that has not been found yet is offline: the last run may have been killed while it was online. If it is
  /// known under another id, or was removed, its topics under the old one are cleared.
  private func reportAbsentDevices() {
    guard let published else { return }
    self.published = nil
    for (id, device) in published.devices where bridge.publisher(id) == nil && orphans[id] == nil {
      if let address = device.address,
        bridge.publisher(address) != nil || context.engine.isRemoved(address)
      {
        foundOrphan(id, of: address, offered: device.properties)
      } else {
        context.log.notice(
          "offline: an earlier run has published it, and it is not found yet", ["device": id])
        publishOffline(topics(of: id))
      }
    }
  }

  private func publishOffline(_ topics: DeviceTopics) {
    context.mqtt.publish(
      MQTTMessage(topic: topics.availability, payload: Payload.availability(false), retain: true))
  }

  // MARK: Orphaned topics

  /// Clears the topics of a device that is no longer configured or has another id, unless another gateway owns it, or
  /// is to own it; if the id is another device's now, only what that one does not publish.
  /// - Parameter isSettled: whether it is known that no other gateway owns it.
  func foundOrphan(
    _ id: DeviceID, of address: BluetoothAddress, offered: Set<PropertyName>, isSettled: Bool = false
  ) {
    guard orphans[id] == nil else { return }
    if let publisher = bridge.publisher(id) {
      context.storeID(of: address)
      return idPassed(from: address, offered: offered, to: publisher)
    }
    context.mqtt.subscribe([TopicFilter(topics(of: id).info)])
    orphans[id] = Orphan(
      address: address, offered: offered,
      machine: OwnershipMachine(context.gateway, id, address, isOrphan: true),
      barrier: isSettled ? .max : sendBarrier())
    if isSettled { feed(id) { $0.settle() } }
  }

  private func feed(
    _ id: DeviceID, _ input: (inout OwnershipMachine) -> [OwnershipMachine.Action]
  ) {
    guard var orphan = orphans[id] else { return }
    let actions = input(&orphan.machine)
    orphans[id] = orphan
    for action in actions {
      switch action {
      case .clear: clearOrphan(id)
      case .confirm: orphans[id]?.barrier = sendBarrier()
      case .cleared: _ = removeOrphan(id)
      case .leave(let isSameDevice):
        releaseTopics(ofOrphan: id)
        guard let orphan = removeOrphan(id) else { return }
        if isSameDevice {
          bridge.discovery?.ownedElsewhere(orphan.address)
        } else {
          reportRemoved(orphan.address)
        }
      case .setOwner, .moved, .publish, .publishAvailability, .publishOffline, .release, .yieldID: break
      }
    }
  }

  /// The device of `publisher` has its id from now on.
  func idUsed(by publisher: DevicePublisher) {
    guard let orphan = removeOrphan(publisher.device.id) else { return }
    idPassed(from: orphan.address, offered: orphan.offered, to: publisher)
  }

  /// The device at `address` had the id that the device of `publisher` has now; they may be the same.
  private func idPassed(
    from address: BluetoothAddress, offered: Set<PropertyName>, to publisher: DevicePublisher
  ) {
    publisher.foundOrphanedValues(offered)
    reportRemoved(address)
  }

  /// It is removed from Home Assistant, unless this gateway still has it, under another id.
  private func reportRemoved(_ address: BluetoothAddress) {
    if bridge.publisher(address) == nil { bridge.discovery?.deviceRemoved(address) }
  }

  private func removeOrphan(_ id: DeviceID) -> Orphan? {
    guard let orphan = orphans.removeValue(forKey: id) else { return nil }
    context.mqtt.unsubscribe([TopicFilter(topics(of: id).info)])
    context.storeID(of: orphan.address)
    return orphan
  }

  /// No gateway owns it. When the cleared `info` returns from the broker, all its topics are cleared.
  private func clearOrphan(_ id: DeviceID) {
    guard let orphan = orphans[id] else { return }
    if context.engine.isPinnedElsewhere(orphan.address) {
      // That gateway has not found it yet.
      publishOffline(topics(of: id))
      _ = removeOrphan(id)
    } else {
      for topic in topics(ofOrphan: id) { context.clearState(topic) }
      reportRemoved(orphan.address)
    }
  }

  private func releaseTopics(ofOrphan id: DeviceID) {
    for topic in topics(ofOrphan: id) { context.mqtt.releaseState(topic) }
  }

  private func topics(ofOrphan id: DeviceID) -> [TopicName] {
    let topics = topics(of: id)
    let others = (orphans[id]?.offered ?? []).subtracting(Set(names: Profile.microbit.properties.map(\.name)))
    return topics.states(of: others) + topics.states
  }

  /// With every property of the built-in profile, besides those that the device is known to have offered.
  private func topics(of id: DeviceID) -> DeviceTopics { context.topics.topics(of: id, .microbit) }
}
