import BlueZ
import Configuration
import EventLoop
import GATT
import Log
import MQTT
import Store

/// The gateway: the only room that sees both sides.
///
/// A reading flows up: central → ``Device`` → codec → topic → broker. A command flows down: broker → topic
/// → ``ConfirmedWrite`` → central. Both in one turn of the loop, synchronously, where nothing has to be
/// waited for.
actor Gateway {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let log = Logger(component: "gateway")
  /// Of config.json. What requests changed of it is in ``records``.
  var configuration: Configuration
  /// Where that was read from, and is again at a reload.
  let configurationPath: String
  /// Of the device topics.
  var qos: QoS
  let profile = Profile.microbitDefault
  let topics: TopicMap
  /// For each of the profile's properties: every device's readings are written alike.
  let encoders: [ReadingEncoder]
  let gatewayID: GatewayID
  let run = RunID()
  let started = Timestamp.now
  let mqtt: MQTTClient
  let central: Central
  let serviceManager: ServiceManager
  let memory: Memory

  var devices: [BluetoothAddress: Device] = [:]
  var byID: [DeviceID: Device] = [:]
  var byPeripheral: [PeripheralID: Device] = [:]
  /// Peripherals that are none of this gateway's, under the name that they were judged by.
  var strangers: [PeripheralID: String?] = [:]
  var counters = Counters()
  var adapter = CentralState.noBus("not connected yet")
  var broker: BridgeInfo.Broker
  var claim: Claim
  /// Counts the echoes that were asked for.
  var echoes: UInt64 = 0
  /// The last one that was heard.
  var lastEcho: UInt64 = 0
  /// The one that the claim of this connection awaits.
  var question: UInt64 = 0
  var early = EarlyMessages()
  var leftovers: [DeviceID: Leftover] = [:]
  /// The other gateways at this broker that are online.
  var gatewaysOnline: Set<GatewayID> = []
  /// What Home Assistant is to be told.
  var announcements = AnnouncementQueue()
  /// What it is to be told when it has taken in what it was told at its birth.
  var followUps: [Announcement] = []
  var followUp: LoopTimer?
  var announcedGatewayHash: Int?
  var announcedGatewayAt: Moment?
  /// Deleted in Home Assistant in this run.
  var isGatewayForgotten = false
  /// A publication of the bridge's info is due.
  var report: LoopTimer?
  /// One of its devices is.
  var deviceReport: LoopTimer?
  var deviceReportPacing = DeviceReportPacing()
  /// The commands for groups are subscribed to once more in a moment.
  var isHearingGroupsAgain = false
  /// The scans that requests asked for, and are not over.
  var surveys: [Survey] = []
  /// Counts them.
  var surveyCount: UInt64 = 0
  var isStopping = false
  private let stopping = Waiter<Void>()

  init(_ file: ConfigurationFile, loop: EventLoop) {
    self.loop = loop
    configuration = file.configuration
    configurationPath = file.path
    qos = QoS(configuration.mqtt)
    let id = configuration.gateway.id ?? .ofThisHost
    gatewayID = id
    memory = Memory(path: StateFolder.database(of: id, StateFolder.environment), loop: loop)
    topics = TopicMap(base: configuration.mqtt.baseTopic, gateway: id, profile: profile)
    encoders = profile.properties.map { [run] in ReadingEncoder(property: $0, gateway: id, run: run) }
    broker = BridgeInfo.Broker(
      host: configuration.mqtt.host, port: configuration.mqtt.port,
      protocolVersion: configuration.mqtt.protocolVersion.rawValue)
    claim = Claim(run: run.description, started: started.description)
    serviceManager = ServiceManager(loop: loop)
    mqtt = MQTTClient(options: MQTTOptions(configuration, id: id, run: run, topics: topics), loop: loop)
    // The central's events need the gateway, which is not complete yet: they go through this box.
    let events = EventBox()
    let bluetooth = configuration.bluetooth
    central = Central(adapter: bluetooth.adapter, notifications: bluetooth.notify, loop: loop) { event in
      events.gateway?.assumeIsolated { $0.heard(event) }
    }
    events.gateway = self
  }

  private final class EventBox: @unchecked Sendable {
    // @unchecked: set once before the central runs, then read on the loop's thread.
    weak var gateway: Gateway?
  }

  // MARK: Life

  /// When what only the start has needed is needed no more.
  private static let startsFor = Duration.seconds(2)

  /// Works until ``stop()``; then ends every link, says good-bye, and returns. Never longer than 5 s.
  func serve() async {
    await mqtt.setHandler { [weak self] event in self?.assumeIsolated { $0.heard(event) } }
    memory.watch { [weak self] event in
      guard let self else { return }
      loop.onLoop { self.assumeIsolated { $0.memory.heard(event) } }
    }
    subscribe()
    publishState(topics.bridgeState, Payload.availability(true))
    recall()
    subscribeGroups()
    bridgeChanged()
    refreshBridge()
    loop.timer(after: Self.startsFor) { ResidentMemory.trim() }
    // Ended, but not awaited: a bus that does not answer must not hold up the end.
    let central = Task(executorPreference: loop) { [central] in await central.run() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await self.mqtt.run() }
      serviceManager.ready()
      try? await stopping.value()
      serviceManager.stopping()
      await wind(down: .seconds(3))
    }
    central.cancel()
    memory.close()
  }

  /// Asks it to stop. From any thread; harmless when repeated.
  nonisolated func stop() { stopping.resume(.success(())) }

  /// In order: no more commands, the links, the state, the broker.
  private func wind(down limit: Duration) async {
    log.info("stopping")
    isStopping = true
    for device in byID.values {
      abandonWrites(
        of: device,
        reason: "the gateway is stopping; a command without ttl is applied after the next start")
      perform(device.session.stop(), on: device)
    }
    publishBridge()
    publishState(topics.bridgeState, Payload.availability(false))
    await central.stop(within: limit)
    await mqtt.stop(deadline: .seconds(1))
  }

  // MARK: Sending

  func publishState(_ topic: TopicName, _ payload: [UInt8], atOnce: Bool = false) {
    loop.enter(mqtt, (topic, payload, qos, atOnce)) { mqtt, state in
      mqtt.setState(state.0, state.1, qos: state.2, atOnce: state.3)
    }
  }

  /// The broker forgets what it retains on `topic`.
  func clearState(_ topic: TopicName) { mqtt.assumeIsolated { [qos] in $0.clearState(topic, qos: qos) } }

  func publish(_ message: MQTTMessage, atOnce: Bool = false) {
    loop.enter(mqtt, (message, atOnce)) { $0.publish($1.0, atOnce: $1.1) }
  }
}

extension QoS {
  init(_ mqtt: Configuration.MQTT) { self = mqtt.qos == 0 ? .atMostOnce : .atLeastOnce }
}

extension MQTTOptions {
  init(_ configuration: Configuration, id: GatewayID, run: RunID, topics: TopicMap) {
    let mqtt = configuration.mqtt
    self.init(
      host: mqtt.host, port: UInt16(clamping: mqtt.port),
      protocolVersion: mqtt.protocolVersion == .v5 ? .v5 : .v311,
      // Not by the id alone: a broker ends the connection of a client when another of its name comes, and two
      // gateways of one id would do that to each other for ever.
      clientID: "microbit-gateway-\(id)-\(run)", username: mqtt.username,
      password: mqtt.password.map { String(decoding: $0, as: UTF8.self) },
      tls: mqtt.tls.map { TLS(caFile: $0.caFile, certFile: $0.certFile, keyFile: $0.keyFile) },
      will: MQTTMessage(
        topic: topics.bridgeState, payload: Payload.availability(false), qos: .atLeastOnce, retain: true))
    // Far beyond any command that is carried out: what is too long is to be answered, not held back unseen.
    maximumIncomingPacket = 2 << 20
    awaitsAdmission = true
  }
}
