import BlueZ
import EventLoop
import GATT
import Log
import MQTT

/// The gateway: the only room that sees both sides.
///
/// A reading flows up: central → ``Device`` → codec → topic → broker. A command flows down: broker → topic
/// → ``ConfirmedWrite`` → central. Both in one turn of the loop, synchronously, where nothing has to be
/// waited for.
public actor Gateway {
  public nonisolated let loop: EventLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let log = Logger(component: "gateway")
  let configuration: Configuration
  let profile = Profile.microbit
  let topics: TopicMap
  let gatewayID: GatewayID
  let run = RunID()
  let started = Timestamp.now
  let qos: QoS
  let mqtt: MQTTClient
  let central: Central
  let serviceManager: ServiceManager

  var devices: [BluetoothAddress: Device] = [:]
  var byID: [DeviceID: Device] = [:]
  var byPeripheral: [PeripheralID: Device] = [:]
  /// Peripherals that no entry of the configuration is about, under the name that they were judged by.
  var strangers: [PeripheralID: String?] = [:]
  var counters = Counters()
  var adapter = CentralState.noBus("not connected yet")
  var broker: BridgeInfo.Broker
  var report = Report()
  private let stopping = Waiter<Void>()

  init(configuration: Configuration, loop: EventLoop) {
    self.loop = loop
    self.configuration = configuration
    let id = configuration.gateway.id ?? .ofThisHost
    gatewayID = id
    topics = TopicMap(base: configuration.mqtt.baseTopic, gateway: id, profile: profile)
    qos = configuration.mqtt.qos == 0 ? .atMostOnce : .atLeastOnce
    broker = BridgeInfo.Broker(
      host: configuration.mqtt.host, port: configuration.mqtt.port,
      protocolVersion: configuration.mqtt.protocolVersion.rawValue)
    serviceManager = ServiceManager(loop: loop)
    mqtt = MQTTClient(options: MQTTOptions(configuration, id: id, topics: topics), loop: loop)
    // The central's events need the gateway, which is not complete yet: they go through this box.
    let events = EventBox()
    central = Central(adapter: configuration.bluetooth.adapter, loop: loop) { event in
      events.gateway?.assumeIsolated { $0.heard(event) }
    }
    events.gateway = self
  }

  private final class EventBox: @unchecked Sendable {
    // @unchecked: set once before the central runs, then read on the loop's thread.
    weak var gateway: Gateway?
  }

  // MARK: Life

  /// Works until ``stop()``; then ends every link, says good-bye, and returns. Never longer than 5 s.
  func serve() async {
    await mqtt.setHandler { [weak self] event in self?.assumeIsolated { $0.heard(event) } }
    subscribe(to: topics.requests)
    subscribe(to: TopicFilter(topics.bridgeDevices))
    publishState(topics.bridgeState, Payload.availability(true))
    // What stands behind a prefix may be the prefix's own, which only its name tells.
    for entry in configuration.devices.prefix(while: \.match.isIdentifier) { expect(entry) }
    bridgeChanged()
    limitRecall()
    refreshBridge()
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
  }

  /// Asks it to stop. From any thread; harmless when repeated.
  public nonisolated func stop() { stopping.resume(.success(())) }

  /// In order: no more commands, the links, the state, the broker.
  private func wind(down limit: Duration) async {
    log.info("stopping")
    for device in byID.values {
      abandonWrites(of: device, reason: "the gateway is stopping")
      perform(device.session.stop(), on: device)
    }
    publishBridge()
    publishState(topics.bridgeState, Payload.availability(false))
    await central.stop(within: limit)
    await mqtt.stop(deadline: .seconds(1))
  }

  // MARK: Sending

  func publishState(_ topic: TopicName, _ payload: [UInt8]) {
    loop.enter(mqtt, (topic, payload, qos)) { mqtt, state in mqtt.setState(state.0, state.1, qos: state.2) }
  }

  func subscribe(to filter: TopicFilter) {
    mqtt.assumeIsolated { $0.subscribe(filter, qos: .atLeastOnce) }
  }

  func publish(_ message: MQTTMessage) {
    loop.enter(mqtt, message) { $0.publish($1) }
  }
}

extension MQTTOptions {
  init(_ configuration: Configuration, id: GatewayID, topics: TopicMap) {
    let mqtt = configuration.mqtt
    self.init(
      host: mqtt.host, port: UInt16(clamping: mqtt.port),
      protocolVersion: mqtt.protocolVersion == .v5 ? .v5 : .v311,
      clientID: "microbit-gateway-\(id)", username: mqtt.username,
      password: mqtt.password.map { String(decoding: $0, as: UTF8.self) },
      tls: mqtt.tls.map { TLS(caFile: $0.caFile, certFile: $0.certFile, keyFile: $0.keyFile) },
      will: MQTTMessage(
        topic: topics.bridgeState, payload: Payload.availability(false), qos: .atLeastOnce, retain: true))
    // Far beyond any command that is carried out: what is too long is to be answered, not held back unseen.
    maximumIncomingPacket = 2 << 20
  }
}
