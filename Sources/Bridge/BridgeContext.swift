import Configuration
import Devices
import EventLoop
import Log
import MQTT

/// What the parts of the MQTT front end share.
@LoopActor package final class BridgeContext {
  package let engine: DeviceManager
  package let mqtt: MQTTClient
  package let topics: TopicMap
  package let gateway: GatewayID
  package let run = RunID()
  let started = ClockTime()
  package let log = Logger(component: "gateway")
  /// What is in force: keys that need a restart are as at the start.
  var configuration: Configuration
  /// How long a disagreement with another gateway must last before it is reported; shorter only in tests.
  var patienceWithOthers = Duration.seconds(10)
  var isStopping = false
  /// Another front end on the same connection.
  package internal(set) var discovery: (any DiscoveryFrontEnd)?

  init(_ configuration: Configuration, gateway: GatewayID, engine: DeviceManager) {
    self.configuration = configuration
    self.engine = engine
    self.gateway = gateway
    topics = TopicMap(base: configuration.mqtt.baseTopic, gateway: gateway)
    mqtt = MQTTClient(
      options: MQTTOptions(configuration, id: gateway, run: run, topics: topics))
  }

  var isMQTT5: Bool { configuration.mqtt.protocolVersion == .v5 }
  /// The QoS of the device topics.
  package var qos: QoS { configuration.mqtt.qos == 0 ? .atMostOnce : .atLeastOnce }

  /// Whether the gateway needs the topic or filter, in whatever configuration.
  func isOwn(_ topic: String) -> Bool {
    ["\(topics.base)/", "\(configuration.homeAssistant.prefix)/device/"].contains {
      topic.utf8.starts(with: $0.utf8)
    }
  }

  // MARK: Sending

  /// Publishes retained state with the configured QoS.
  func publishState(_ topic: TopicName, _ payload: [UInt8]) { mqtt.setState(topic, payload, qos: qos) }

  func publishOnline() {
    if !isStopping { publishState(topics.bridgeState, Payload.availability(true)) }
  }
}

extension Configuration.MQTT {
  /// The brokers, in the order in which they are tried.
  package var addresses: [MQTTBroker] {
    brokers.map { MQTTBroker(host: $0.host, port: UInt16(clamping: $0.port)) }
  }
}

extension MQTTOptions {
  init(_ configuration: Configuration, id: GatewayID, run: RunID, topics: TopicMap) {
    // A broker disconnects the older of two clients with the same client id: two gateways with one id would disconnect each
    // other for ever, and whoever knew the client id could disconnect this one.
    let secret = String(UInt64.random(in: .min ... .max), radix: 36)
    self.init(
      configuration.mqtt, clientID: "microbit-gateway-\(id)-\(secret)",
      will: MQTTMessage(
        topic: topics.bridgeState, payload: Payload.availability(false), qos: .atLeastOnce, retain: true))
    // Far above any valid command, so that one that is too long gets a reply.
    maximumIncomingPacket = 2 << 20
    keptBytes = { topics.longestPayload(on: $0) + 1 }
    awaitsAdmission = true
    // A barrier with a number that no other has.
    probe = MQTTMessage(
      topic: topics.bridgeRequest(ReportHealth.verb), payload: Barriers.payload(0, of: run),
      qos: .atLeastOnce)
    if let file = configuration.mqtt.passwordFile {
      readPassword = { () throws(MQTTError) -> String in try Self.password(in: file) }
    }
  }

  private static func password(in file: String) throws(MQTTError) -> String {
    do throws(FileProblem) {
      return String(decoding: try ConfigurationFile.password(in: file), as: UTF8.self)
    } catch {
      throw .file(path: file, reason: error.description)
    }
  }

  /// The configured broker and credentials.
  package init(_ mqtt: Configuration.MQTT, clientID: String, will: MQTTMessage?) {
    self.init(
      mqtt.addresses, protocolVersion: mqtt.protocolVersion == .v5 ? .v5 : .v311, clientID: clientID,
      username: mqtt.username, password: mqtt.password.map { String(decoding: $0, as: UTF8.self) },
      tls: mqtt.tls.map {
        TLS(caFile: $0.caFile, certFile: $0.certFile, keyFile: $0.keyFile, alpn: $0.alpn)
      }, will: will)
  }
}
