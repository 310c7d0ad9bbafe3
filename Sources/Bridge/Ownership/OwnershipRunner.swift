import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// Runs ``Ownership``: parses what the broker sends for it, and does what it decides.
@LoopActor package final class OwnershipRunner: IterationEndHandler {
  /// How long to wait for a barrier: a broker may not return a client's own messages. On a bad network packets are late
  /// by seconds, and a gateway that publishes too early overwrites what others published. It is longer only in tests.
  var barrierTimeout = Duration.seconds(5)

  private let context: BridgeContext
  private let publishers: DevicePublishers
  private let report: BridgeReport
  private(set) var state: Ownership
  /// The id is free, and the owners of the devices are known.
  var onAdmitted: () -> Void = {}

  init(_ publishers: DevicePublishers, _ report: BridgeReport, _ context: BridgeContext) {
    self.publishers = publishers
    self.report = report
    self.context = context
    state = Ownership(
      context.gateway, run: context.run.description, started: context.started.current())
  }

  /// See ``Ownership/isAdmitted``.
  package var isAdmitted: Bool { state.isAdmitted }

  /// Which gateway owns the device, as far as is known. Called for every reading: a method of ``state`` would copy all of it.
  func owner(of address: BluetoothAddress) -> Owner { state.devices[address]?.machine.owner ?? .unknown }

  /// See ``Ownership/isResponsible(for:)``.
  package func isResponsible(for publisher: DevicePublisher) -> Bool {
    state.isResponsible(for: publisher.device.address)
  }

  /// Does what follows from an input, which must not look at ``state`` itself.
  func handle(_ input: (inout Ownership) -> Void) {
    input(&state)
    for action in state.takeActions() { perform(action) }
  }

  // MARK: The broker

  /// Asks the broker for the devices that an earlier run has published, as the state database may be lost, or older; and
  /// for those that other gateways publish under other ids.
  func start() { context.mqtt.subscribe([context.topics.deviceInfos], options: .atMostOnce) }

  func disconnected() {
    if isAdmitted { context.mqtt.reconnectingClients = state.online.count + 1 }
    handle { $0.disconnected() }
  }

  package func iterationEnds() {
    guard let number = state.barriers.due else { return }
    handle { $0.barrierSent() }
    context.mqtt.send(
      MQTTMessage(
        topic: context.topics.bridgeRequest(ReportHealth.verb),
        payload: Barriers.payload(number, of: context.run)))
    loop.timer(after: barrierTimeout) { [weak self] in self?.handle { $0.barrierIsLate(number) } }
  }

  /// Handles the message if it is a barrier of this run.
  /// - Returns: whether it is.
  func receivedBarrier(_ message: MQTTReceived) -> Bool {
    guard let number = Barriers.number(in: message, of: context.run) else { return false }
    handle { $0.barrierArrived(number) }
    return true
  }

  /// A response under this gateway's id, perhaps of another run that has the id.
  func received(response payload: [UInt8]) {
    guard state.idGuard.awaitsAnswer, payload.count <= TopicMap.longestPayload,
      let json = try? JSONParser.parse(payload),
      json["transaction"]?.text?.hasPrefix("\(context.run)-") == true,
      let other = json["data"]?["run"]?.text, other != context.run.description
    else { return }
    handle { $0.guardID { $0.answered() } }
  }

  /// The `info` under this gateway's id.
  func received(bridgeInfo payload: [UInt8]) {
    guard let (run, started) = BridgeInfo.origin(in: payload) else { return }
    let own = context.started.current()
    handle {
      $0.guardID {
        $0.started = own
        return $0.received(run: run, started: started)
      }
    }
  }

  /// The `state` of a gateway, this one included.
  func received(state payload: [UInt8], of gateway: GatewayID) {
    handle { $0.stateArrived(of: gateway, isOnline: payload.elementsEqual(Payload.availability(true))) }
  }

  func received(info payload: [UInt8], of id: DeviceID, isRetained: Bool) {
    let named = publishers[id]
    // Mostly it is this gateway's own.
    if named?.isPublished(info: payload) == true { return }
    guard !payload.isEmpty else { return handle { $0.cleared(id) } }
    let notice = OwnershipMachine.Notice(payload, of: id, isRetained: isRetained) { [publishers] address in
      (address.flatMap { publishers[$0] } ?? named)?.device.profile ?? .microbit
    }
    // Unreadable.
    guard let notice else { return }
    let isOwn = notice.gateway == context.gateway
    publishPin(notice, payload)
    let device = isOwn ? notice.address.flatMap { publishers[$0] } : nil
    handle { $0.infoArrived(notice, isUpToDate: device?.info == payload) }
    // A deletion that the broker has refused, or not received yet, would come after what that gateway publishes.
    if !isOwn, publishers[id]?.owner.isOther ?? true {
      context.mqtt.releaseDeletions(under: "\(context.topics.base)/\(id)/")
    }
  }

  // MARK: Actions

  private func perform(_ action: Ownership.Action) {
    switch action {
    case .admitted: onAdmitted()
    case .sendBarrier: loop.atEndOfIteration(self)
    case .gateway(let action): perform(action)
    case .device(let address, let action):
      publishers[address]?.perform(action)
    case .ask(let id, let isFollowed):
      // Later ones come by the filter for all.
      if isFollowed { context.mqtt.subscribe([infoFilter(of: id)]) } else { askForInfo(of: id) }
    case .storeID(let address): context.engine.storeID(of: address)
    case .notFound(let id, let device): notFound(id, device)
    case .followOrphan(let id): context.mqtt.subscribe([infoFilter(of: id)])
    case .clearOrphan(let orphan, let isRemoved): clear(orphan, isRemoved: isRemoved)
    case .releaseOrphan(let orphan): for topic in states(of: orphan) { context.mqtt.releaseState(topic) }
    case .orphanEnded(let orphan):
      context.mqtt.unsubscribe([infoFilter(of: orphan.id)])
      context.engine.storeID(of: orphan.address)
    case .deviceRemoved(let address): context.discovery?.deviceRemoved(address)
    case .ownedElsewhere(let address):
      context.discovery?.ownedElsewhere(address)
      report.changed()
    }
  }

  private func perform(_ action: DuplicateIDGuard.Action) {
    switch action {
    // Ownership's own.
    case .ask, .admit: break
    case .reportConflict:
      context.log.error(
        "another gateway at this broker has the same gateway.id: nothing is published until each has its own in config.json",
        ["id": context.gateway])
    case .reconnect(let delay): context.mqtt.reconnect(after: delay)
    case .republishOnline: context.publishOnline()
    case .republishInfo: report.publishAgain()
    case .reportSilent:
      context.log.warning(
        "another gateway publishes with the same gateway.id, and does not answer: give each its own in config.json",
        ["id": context.gateway])
    }
  }

  // MARK: Orphans

  /// A device that has not been found yet is offline: the last run may have been killed while it was online. If it was
  /// removed, its topics are cleared.
  private func notFound(_ id: DeviceID, _ device: InfoRoutes.Lost) {
    if let address = device.address, context.engine.isRemoved(address) {
      return handle { $0.found(id, of: address, offered: device.properties) }
    }
    context.log.notice("offline: an earlier run has published it, and it is not found yet", ["device": id])
    publishOffline(id)
    if let address = device.address, context.engine.isPinnedElsewhere(address) { askForInfo(of: id) }
  }

  /// No gateway owns the orphan. When the cleared `info` returns from the broker, all its topics are cleared.
  private func clear(_ orphan: Orphans.Orphan, isRemoved: Bool) {
    if let pin = context.engine.pin(of: orphan.address), pin.id == nil || pin.id == orphan.id {
      // The gateway that the device is pinned to has not found it yet. The id stays stored: if the device is removed before
      // that, its topics are cleared.
      publishOffline(orphan.id)
      handle { $0.dropOrphan(orphan.id) }
      askForInfo(of: orphan.id)
    } else {
      // First what was announced: a gateway that hears the device owns and announces it as soon as `info` is cleared.
      if isRemoved { context.discovery?.deviceRemoved(orphan.address) }
      for topic in states(of: orphan) { context.mqtt.clearState(topic) }
    }
  }

  /// Gets the retained `info`, again if it has come before, and no later one.
  private func askForInfo(of id: DeviceID) {
    context.mqtt.subscribe([infoFilter(of: id)])
    context.mqtt.unsubscribe([infoFilter(of: id)])
  }

  /// If this gateway had the device, and leaves it to another one, that one answers commands before it has found the device.
  private func publishPin(_ notice: OwnershipMachine.Notice, _ payload: [UInt8]) {
    guard isAdmitted, notice.gateway == context.gateway, let address = notice.address,
      publishers[address] == nil, publishers[notice.id] == nil,
      let pin = context.engine.pin(of: address)?.gateway, notice.pin != pin,
      let info = try? JSONParser.parse(payload).setting("pinned_to", to: .string(pin.description))
    else { return }
    context.mqtt.publish(
      MQTTMessage(
        topic: topics(of: notice.id).info, payload: info.bytes, retain: true, undelivered: .dropped))
  }

  /// Publishes `offline` until the broker has taken it, or the topic has another state.
  private func publishOffline(_ id: DeviceID) {
    context.mqtt.clearState(topics(of: id).availability, leaving: Payload.availability(false))
  }

  private func infoFilter(of id: DeviceID) -> TopicFilter { TopicFilter(topics(of: id).info) }

  private func states(of orphan: Orphans.Orphan) -> [TopicName] {
    let topics = topics(of: orphan.id)
    return topics.states(of: orphan.offered.subtracting(InfoRoutes.builtIn)) + topics.states
  }

  /// The topics of every property of the built-in profile, besides those that the device is known to have offered.
  private func topics(of id: DeviceID) -> DeviceTopics { context.topics.topics(of: id, .microbit) }
}
