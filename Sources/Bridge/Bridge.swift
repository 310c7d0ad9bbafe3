import Configuration
import Devices
import EventLoop
import Findings
import GATT
import JSON
import Log
import MQTT
import Recording
import Store

/// The MQTT front end: publishes devices and the gateway itself, and turns messages into commands and requests.
@LoopActor package final class Bridge: FrontEnd {
  package let context: BridgeContext
  package let publishers: DevicePublishers
  let spool: Spool
  package let report: BridgeReport
  package let ownership: OwnershipRunner
  let commands: CommandHandler
  let state: StateDatabase
  /// Reads config.json again.
  package var reload: ReloadHandler = { _ in }
  package let recorder: Recorder
  /// How many messages the broker takes unacknowledged.
  private var receiveMaximum = 0
  /// The file that the configuration was read from, and the digest of its content.
  package var configurationFile: (path: String, digest: String)?
  /// Gets the messages for the whole fleet, empty ones too.
  package var onFleetConfiguration: (_ payload: [UInt8]) -> Void = { _ in }
  /// Where the page for a browser is served; nil: it is not.
  package var page: String?
  /// Why the page is not served, though it should be.
  package var pageFinding: Finding?
  let caution: Caution
  var refusals = Refusals()
  /// Until what the broker has refused is published again, and subscribed to again.
  private var (refusalTimer, subscriptionTimer): (LoopTimer?, LoopTimer?)

  /// - Parameters:
  ///   - spool: the file for undelivered readings; nil: they are kept in memory.
  ///   - recordings: the folder for recordings; nil: there can be none.
  ///   - crashNote: of the last runs.
  package init(
    _ configuration: Configuration, gateway: GatewayID, engine: DeviceManager, state: StateDatabase,
    spool: String?, recordings: String? = nil, crashNote: CrashNote = CrashNote(path: nil)
  ) {
    caution = Caution(crashNote)
    self.state = state
    recorder = Recorder(engine, folder: recordings)
    context = BridgeContext(configuration, gateway: gateway, engine: engine)
    publishers = DevicePublishers(gateway)
    self.spool = Spool(configuration.spool, path: spool, context)
    report = BridgeReport(publishers, self.spool, context)
    ownership = OwnershipRunner(publishers, report, context)
    commands = CommandHandler(publishers, ownership, report, context, state.section("commands"))
    ownership.onAdmitted = { [weak self] in self?.admitted() }
  }

  /// Carries out requests, also for other transports than MQTT.
  package var requests: RequestHandler { RequestHandler(host: self) }

  // MARK: Life

  package func add(_ discovery: any DiscoveryFrontEnd) { context.discovery = discovery }

  /// Subscribes and publishes; the client does so on each connection.
  package func start() {
    if let finding = caution.finding { context.log.error("\(finding.line)") }
    caution.start { [context] in
      context.log.notice("takes what others have retained at the broker again")
      context.mqtt.reconnect(after: .zero)
    }
    context.mqtt.setHandler { [weak self] event in self?.handle(event) }
    context.mqtt.subscribe(context.topics.gateways + [context.topics.barriers])
    if context.configuration.fleet { context.mqtt.subscribe([context.topics.fleetConfiguration]) }
    ownership.start()
    context.publishOnline()
    report.start()
    spool.start()
    recorder.start()
  }

  /// Returns when it is stopped.
  package func run() async { await context.mqtt.run() }

  package func goOffline() {
    context.isStopping = true
    for publisher in publishers.all { publisher.publishWaiting() }
    report.publish()
    context.publishState(context.topics.bridgeState, Payload.availability(false))
  }

  /// Sends what waits, and stores readings that are not acknowledged; for at most twice the `deadline`.
  package func stop(deadline: Duration) async {
    spool.pause()
    await context.mqtt.stop(deadline: deadline)
    await spool.close(within: deadline)
  }

  /// Applies what can change while the gateway runs.
  package func configure(_ configuration: Configuration) {
    let before = context.configuration
    context.configuration = configuration
    report.changed()
    guard configuration.fleet != before.fleet else { return }
    let filters = [context.topics.fleetConfiguration]
    if configuration.fleet { context.mqtt.subscribe(filters) } else { context.mqtt.unsubscribe(filters) }
  }

  /// An entry of `{base}/bridge/{gateway}/devices`.
  package func listing(of device: DeviceDescription) -> JSONValue { publishers.listing(of: device) }

  // MARK: Engine

  package func attach(_ device: DeviceDescription) -> (any DeviceObserver)? {
    let publisher = DevicePublisher(device, self, context)
    publishers.add(publisher)
    context.discovery?.attached(device.address)
    publisher.begin()
    return publisher
  }

  package func engineChanged() { report.changed() }

  package func foundOrphan(_ id: DeviceID, of address: BluetoothAddress, offered: Set<String>) {
    ownership.handle { $0.found(id, of: address, offered: Set(names: offered)) }
  }

  package func isUsedElsewhere(_ id: DeviceID) -> Bool { ownership.state.isUsedElsewhere(id) }

  // MARK: Publishers

  /// Subscribes to `info` and `availability` before the commands: who owns the device must be known when retained commands arrive.
  /// Nothing is published before, so that whoever sees the device can send it a command.
  func follow(_ publisher: DevicePublisher) {
    context.mqtt.subscribe(publisher.topics.presence)
    if ownership.isAdmitted { commands.subscribe(publisher) }
  }

  func unfollow(_ publisher: DevicePublisher) {
    context.mqtt.unsubscribe(publisher.topics.presence)
    commands.unsubscribe(publisher)
  }

  func remove(_ publisher: DevicePublisher) {
    unfollow(publisher)
    publishers.remove(publisher)
    context.discovery?.detached(publisher.device.address)
  }

  /// Something that is published of a device of this gateway has changed.
  func ownedDeviceChanged(_ publisher: DevicePublisher) {
    report.changed()
    context.discovery?.deviceChanged(publisher)
  }

  // MARK: Broker

  private func handle(_ event: MQTTEvent) {
    switch event {
    case .connected(let connection):
      receiveMaximum = Int(connection.receiveMaximum)
      refusals.connected()
      // Everything is published on a new connection.
      refusalTimer?.cancel()
      report.connected()
      ownership.handle { $0.connected() }
    case .disconnected(let error):
      report.disconnected(error)
      ownership.disconnected()
      context.engine.claimsAreLost()
      spool.disconnected()
      // Subscribed to again when the owners of the devices are known.
      commands.disconnected()
      context.mqtt.unsubscribe([context.topics.requests])
      context.mqtt.subscribe([context.topics.barriers])
      context.discovery?.disconnected()
    case .connectFailed(let error): report.failed(error)
    case .subscriptionRefused: subscribeLater()
    case .publicationRefused(let topic, let reason, let fate): refused(topic, reason, fate)
    case .undelivered(let messages): spool.undelivered(messages)
    case .completed(let numbers, let rejected): spool.completed(numbers, rejected: rejected)
    case .message(let message): caution.noting(message) { receive(message) }
    }
  }

  private func refused(_ topic: TopicName, _ reason: MQTTRefusal, _ fate: RefusedMessage) {
    // Whoever sends a request chooses the topic of the response.
    if context.isOwn(topic.string), refusals.publicationRefused(topic, reason, at: .now) { report.changed() }
    switch fate {
    case .returned(let message): spool.refused(message)
    // Whatever the topic: it may be of an earlier prefix of Home Assistant.
    case .kept: publishRefusedLater()
    case .dropped: if context.discovery?.refused(topic, reason) == true { publishRefusedLater() }
    }
  }

  /// Subscribes to all that is refused until then again, in case an access control list is corrected.
  private func subscribeLater() {
    guard subscriptionTimer?.isPending != true else { return }
    subscriptionTimer = loop.timer(after: refusals.delays.longest) { [weak self] in
      self?.context.mqtt.subscribeRefusedAgain()
    }
  }

  /// Publishes all that is refused until then again.
  private func publishRefusedLater() {
    guard refusalTimer?.isPending != true else { return }
    refusalTimer = loop.timer(after: refusals.delay(at: .now)) { [weak self] in
      self?.context.mqtt.publishRefusedStateAgain()
      self?.context.discovery?.publishRefusedAgain()
    }
  }

  /// The id is free, and the owners of the devices are known.
  private func admitted() {
    context.mqtt.unsubscribe([context.topics.barriers])
    context.mqtt.subscribe([context.topics.requests])
    commands.admitted()
    context.mqtt.admit()
    context.discovery?.admitted()
    if !context.isStopping { spool.connected(receiveMaximum: receiveMaximum) }
  }

  private func receive(_ message: MQTTReceived) {
    let meaning = context.topics.inbound(message.topic.string)
    if caution.leavesOut(meaning, message, of: context.gateway) { return }
    switch meaning {
    case .set(let target, let property):
      commands.set(message, publishers.targets(target), isGroup: target.isGroup, property)
    case .get(let id, let property):
      if let publisher = publishers[id] { commands.get(message, publisher, property) }
    case .request(let verb):
      if verb == ReportHealth.verb, ownership.receivedBarrier(message) { return }
      if ownership.isAdmitted { receive(request: verb, message) }
    case .response: ownership.received(response: message.payload)
    case .bridgeState(let gateway): ownership.received(state: message.payload, of: gateway)
    case .bridgeInfo: ownership.received(bridgeInfo: message.payload)
    case .claim: if !message.retain { context.received(claim: message.payload) }
    case .fleetConfiguration: if context.configuration.fleet { onFleetConfiguration(message.payload) }
    case .deviceInfo(let id):
      ownership.received(info: message.payload, of: id, isRetained: message.retain)
    case .deviceAvailability(let id): publishers[id]?.received(availability: message.payload)
    case nil: context.discovery?.received(message)
    }
  }

  private func receive(request verb: String, _ message: MQTTReceived) {
    // A retained request was carried out when it was published; the broker sends it again on every connection.
    guard !message.retain else {
      return context.log.notice(
        "retained request ignored: publish requests without the retain flag", ["topic": message.topic])
    }
    // Passkeys and keys are not logged, also where they are refused.
    let hasSecrets = [PairDevice.verb, AddDevice.verb, ChangeOptions.verb].contains(verb)
    let payload = hasSecrets ? "" : Excerpt.beginning(of: message.payload)
    context.log.debug("received", ["topic": message.topic, "payload": payload])
    let sender = Sender(of: message)
    requests.handle(verb, message.payload) { [context] response in
      context.reply(
        response.json.bytes, on: context.topics.bridgeResponse(to: verb), to: sender)
    }
  }
}

/// What requests and the page need from it; its health is in BridgeHealth.swift.
extension Bridge: RequestHost {
  package var engine: DeviceManager { context.engine }
  package var gateway: GatewayID { context.gateway }
  package var info: BridgeInfo { report.info }

  package func otherOwner(of device: DeviceDescription) -> GatewayID? {
    guard let publisher = publishers[device.address], !ownership.isResponsible(for: publisher),
      case .other(let gateway) = publisher.owner
    else { return nil }
    return gateway
  }

  package func idElsewhere(of id: DeviceID) -> DeviceID? { publishers[id]?.elsewhere?.id }
}
