import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// What must be known before the gateway may publish: whether its id is free, which gateway owns which device, and
/// which topics of earlier runs are orphaned. All of that is in retained messages, which have arrived when a barrier does.
@LoopActor package final class Admission {
  private let context: BridgeContext
  private let publishers: DevicePublishers
  let barriers: Barriers
  private let report: BridgeReport
  private var idGuard: DuplicateIDGuard
  /// The barrier of the id guard.
  private var guardBarrier: UInt64 = 0
  let orphaned: OrphanedTopics
  private var routes: InfoRoutes
  /// The other gateways at this broker that are online; beyond ``mostGateways``, further ones count as offline.
  private var online: Set<GatewayID> = []
  /// Whoever may publish `bridge/{id}/state` can invent ids.
  private static let mostGateways = 1024
  /// The id is free, and the owners of the devices are known.
  var onAdmitted: () -> Void = {}

  init(_ publishers: DevicePublishers, _ report: BridgeReport, _ context: BridgeContext) {
    self.publishers = publishers
    barriers = Barriers(context)
    self.report = report
    self.context = context
    orphaned = OrphanedTopics(publishers, barriers, context)
    routes = InfoRoutes(context.gateway)
    idGuard = DuplicateIDGuard(run: context.run.description, started: context.started.description)
    barriers.onTimeout = { [weak self] number in
      guard let self else { return }
      if number == guardBarrier { perform(idGuard.timeout()) }
      reconcile(upTo: number)
    }
  }

  /// Asks the broker for the devices that an earlier run has published, as the state database may be lost, or older; and
  /// for those that other gateways publish under other ids.
  func start() { context.mqtt.subscribe([context.topics.deviceInfos], options: .atMostOnce) }

  /// Whether the gateway may publish under its id.
  package var isAdmitted: Bool { idGuard.state == .admitted }
  /// Whether another gateway has the id.
  var hasIDConflict: Bool { idGuard.hasConflict }

  func connected() {
    barriers.connected()
    perform(idGuard.connected())
  }

  func disconnected() {
    barriers.disconnected()
    if isAdmitted { context.mqtt.reconnecting = online.count + 1 }
    online = []
    routes.disconnected()
    idGuard.disconnected()
    setBarrier(.max)
  }

  func connectFailed() { idGuard.connectFailed() }

  // MARK: Barriers

  /// All retained messages arrive again before this barrier.
  private func setBarrier(_ barrier: UInt64) {
    for publisher in publishers.all { publisher.setBarrier(barrier) }
    orphaned.setBarrier(barrier)
  }

  /// Handles the message if it is a barrier of this run.
  /// - Returns: whether it is.
  func handleBarrier(_ message: MQTTReceived) -> Bool {
    guard let number = barriers.received(message) else { return false }
    if number == guardBarrier { perform(idGuard.barrierArrived()) }
    reconcile(upTo: number)
    return true
  }

  /// The retained messages have arrived for the devices that wait for a barrier up to `number`.
  private func reconcile(upTo number: UInt64) {
    guard isAdmitted else { return }
    orphaned.report(routes.takeLost())
    for publisher in publishers.all {
      publisher.barrierArrived(number, isOnlyGateway: online.isEmpty)
    }
    orphaned.barrierArrived(number)
  }

  // MARK: The gateway's id

  private func perform(_ actions: [DuplicateIDGuard.Action]) {
    for action in actions {
      switch action {
      case .sendBarrier:
        guardBarrier = barriers.send()
        setBarrier(guardBarrier)
      case .admit:
        onAdmitted()
        reconcile(upTo: max(guardBarrier, barriers.lastArrived))
      case .reportConflict:
        context.log.error(
          "another gateway uses this id: give each its own gateway.id in config.json; not publishing until then",
          ["id": context.gateway])
      case .reconnect(let delay):
        context.mqtt.reconnect(after: delay)
      case .republishOnline:
        context.publishOnline()
      case .republishInfo:
        report.changed()
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
      for publisher in publishers.all { publisher.gatewayEnded(gateway) }
    } else if online.count < Self.mostGateways {
      online.insert(gateway)
    }
  }

  /// Whether other gateways may use the broker: it has not said yet, or there are some.
  var hasPeers: Bool { barriers.isConnected && (!isAdmitted || !online.isEmpty) }

  func isOnline(_ gateway: GatewayID) -> Bool { online.contains(gateway) }

  /// Whether this gateway answers commands for the device: unless another one owns it and is online.
  package func isResponsible(for publisher: DevicePublisher) -> Bool {
    switch publisher.owner {
    case .unknown, .this: true
    case .other(let gateway): !isOnline(gateway)
    }
  }

  // MARK: Infos

  /// The `info` of a device of any gateway.
  func received(info payload: [UInt8], of id: DeviceID) {
    let named = publishers[id]
    // Mostly it is this gateway's own.
    if named?.isPublished(info: payload) == true { return }
    guard !payload.isEmpty else { return cleared(id) }
    let notice = OwnershipMachine.Notice(payload, of: id) { [publishers] address in
      (address.flatMap { publishers[$0] } ?? named)?.device.profile ?? .microbit
    }
    // Unreadable.
    guard let notice else { return }
    orphaned.received(notice)
    let devices = routes.received(notice, named: named?.device.address, isOrphan: orphaned.contains(id)) {
      [publishers] in publishers.owner(of: $0)
    }
    for address in devices { publishers[address]?.received(notice, payload) }
  }

  /// The device is known from now on: what others publish of it under other ids has arrived before, and is asked for again.
  func added(_ address: BluetoothAddress) {
    for id in routes.added(address) {
      let info = TopicFilter(context.topics.topics(of: id, .microbit).info)
      context.mqtt.subscribe([info])
      // Later ones come by the filter for all.
      if publishers[id] == nil, !orphaned.contains(id) { context.mqtt.unsubscribe([info]) }
    }
  }

  func removed(_ publisher: DevicePublisher) {
    if let id = publisher.elsewhere?.id { routes.removed(publisher.device.address, elsewhere: id) }
  }

  private func cleared(_ id: DeviceID) {
    routes.cleared(id)
    for publisher in publishers.all where publisher.follows(id) { publisher.cleared(id) }
    orphaned.cleared(id)
  }
}
