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
  let orphaned: OrphanedTopics
  private var routes: InfoRoutes
  /// The other gateways at this broker that are online; beyond ``mostGateways``, further ones count as offline.
  private var online: Set<GatewayID> = []
  /// Whoever may publish `bridge/{id}/state` can invent ids.
  private static let mostGateways = 1024
  init(_ bridge: Bridge, _ context: BridgeContext) {
    self.bridge = bridge
    self.context = context
    orphaned = OrphanedTopics(bridge, context)
    routes = InfoRoutes(context.gateway)
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
    routes.disconnected()
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
        topic: context.topics.bridgeRequest(ReportHealth.verb),
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
    orphaned.setBarrier(barrier)
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
    orphaned.report(routes.takeLost())
    for publisher in bridge.publishers {
      publisher.barrierArrived(number, isOnlyGateway: online.isEmpty)
    }
    orphaned.barrierArrived(number)
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
    orphaned.received(notice)
    let devices = routes.received(notice, named: named?.device.address, isOrphan: orphaned.contains(id)) {
      [bridge] in bridge.owner(of: $0)
    }
    for address in devices { bridge.publisher(address)?.received(notice, payload) }
  }

  /// The device is known from now on: what others publish of it under other ids has arrived before, and is asked for again.
  func added(_ address: BluetoothAddress) {
    for id in routes.added(address) {
      let info = TopicFilter(context.topics.topics(of: id, .microbit).info)
      context.mqtt.subscribe([info])
      // Later ones come by the filter for all.
      if bridge.publisher(id) == nil, !orphaned.contains(id) { context.mqtt.unsubscribe([info]) }
    }
  }

  func removed(_ publisher: DevicePublisher) {
    if let id = publisher.elsewhere?.id { routes.removed(publisher.device.address, elsewhere: id) }
  }

  private func cleared(_ id: DeviceID) {
    routes.cleared(id)
    for publisher in bridge.publishers where publisher.follows(id) { publisher.cleared(id) }
    orphaned.cleared(id)
  }
}
