import Configuration
import EventLoop
import Findings
import TestSupport
import Testing

@testable import Gateway
@testable import MQTT

/// Against a real mosquitto.
struct BrokerCheckTests {
  private let gateway = GatewayID("living-room")!

  private func configuration(
    _ port: UInt16, _ version: Configuration.MQTT.ProtocolVersion = .v5, user: String? = nil
  ) -> Configuration {
    var configuration = Configuration()
    configuration.mqtt.host = "127.0.0.1"
    configuration.mqtt.port = Int(port)
    configuration.mqtt.protocolVersion = version
    configuration.mqtt.username = user
    configuration.mqtt.password = user.map { Array($0.utf8) }
    return configuration
  }

  private func findings(_ configuration: Configuration) async -> [Finding] {
    let check = ClusterCheck(configuration: configuration, gateway: gateway)
    return await loop.task { await check.run() }.value
  }

  /// - Parameter acl: the lines of mosquitto's ACL file for the anonymous user.
  private func broker(acl: String) async throws -> MosquittoBroker {
    let folder = try TemporaryFolder()
    try folder.write(acl, to: "acl")
    return try await MosquittoBroker(folder: folder) { "allow_anonymous true\nacl_file \($0)/acl" }
  }

  private static let versions: [Configuration.MQTT.ProtocolVersion] = [.v5, .v311]

  @Test(arguments: versions)
  func workingBrokerPassesAllChecks(_ version: Configuration.MQTT.ProtocolVersion) async throws {
    let broker = try await MosquittoBroker()
    let found = await findings(configuration(broker.port, version))
    #expect(found.map(\.check) == [.broker, .topics, .retained, .homeAssistant])
    #expect(found.allSatisfy { $0.level == .ok }, "\(found)")
    #expect(found.first?.text.contains("with MQTT \(version.rawValue) without a login") == true)
  }

  @Test func clientCertificateIsALogin() {
    var configuration = configuration(8883)
    configuration.mqtt.tls = .init()
    configuration.mqtt.tls?.certFile = "gateway.crt"
    let check = BrokerCheck(
      configuration: configuration, broker: configuration.mqtt.addresses[0], gateway: gateway)
    #expect(check.connectedText.hasSuffix(" and TLS with a client certificate"))
  }

  /// A new subscriber to `#` receives all retained messages.
  @Test func noRetainedMessageIsLeft() async throws {
    let broker = try await MosquittoBroker()
    _ = await findings(configuration(broker.port))
    let place = ["-h", "127.0.0.1", "-p", "\(broker.port)"]
    let end = try ChildProcess("/usr/bin/mosquitto_pub", place + ["-t", "end", "-m", "here", "-r"])
    #expect(try await end.exitStatus(within: patience) == 0)
    let retained = try ChildProcess(
      "/usr/bin/mosquitto_sub", place + ["-t", "#", "-t", "end", "-v", "--retained-only"])
    // Once of all topics, and once more after them.
    for _ in 1...2 { _ = try await retained.line(within: patience) { $0 == "end here" } }
    #expect(!retained.text.contains("doctor"), "\(retained.text)")
  }

  @Test(arguments: versions)
  func theRecommendedAccessListSuffices(_ version: Configuration.MQTT.ProtocolVersion) async throws {
    let broker = try await broker(
      acl: """
        topic readwrite microbit/#
        topic readwrite homeassistant/device/#
        topic read homeassistant/status

        """
    )
    let found = await findings(configuration(broker.port, version))
    #expect(found.allSatisfy { $0.level == .ok }, "\(found)")
  }

  @Test func eachOfSeveralBrokersIsTried() async throws {
    let (one, absent, other) = (try await MosquittoBroker(), try ReservedPort(), try await MosquittoBroker())
    var configuration = configuration(one.port)
    configuration.mqtt.hosts = [
      .init("127.0.0.1"), .init("127.0.0.1", port: Int(absent.number)),
      .init("127.0.0.1", port: Int(other.port)),
    ]
    let found = await findings(configuration)
    #expect(
      found.map(\.check) == [.broker, .topics, .retained, .homeAssistant, .broker, .broker, .broker])
    #expect(found.map(\.level) == [.ok, .ok, .ok, .ok, .warning, .ok, .fault])
    #expect(found[4].text.hasPrefix("127.0.0.1:\(absent.number): the broker cannot be reached"))
    #expect(found[6].text.hasSuffix("does not arrive at 127.0.0.1:\(other.port)"))
    #expect(found[6].remedy?.contains("one cluster") == true)
  }

  @Test func severalBrokersOfWhichNoneAnswersAreFaults() async throws {
    let ports = [try ReservedPort(), try ReservedPort()]
    var configuration = configuration(1)
    configuration.mqtt.hosts = ports.map { .init("127.0.0.1", port: Int($0.number)) }
    #expect(await findings(configuration).map(\.level) == [.fault, .fault])
  }

  @Test func brokerThatDoesNotAcknowledgeIsReported() async throws {
    let broker = try await MosquittoBroker()
    let proxy = try BrokerProxy(to: broker.port, dropsAcknowledgements: true)
    let found = await findings(configuration(proxy.port))
    #expect(found.map(\.level) == [.fault, .ok, .ok, .ok])
    #expect(
      found[0].text.hasPrefix("the broker has not acknowledged messages, such as one to microbit/doctor-"))
    #expect(found[0].remedy == "check the network: ping 127.0.0.1; if it answers, see the broker's log")
  }

  @Test func refusedConnectionIsReported() async throws {
    let port = try ReservedPort()
    let found = await findings(configuration(port.number))
    #expect(
      found == [
        .fault(
          .broker, "the broker cannot be reached: Connection refused",
          remedy:
            "check mqtt.port (usual: 1883, with TLS 8883); is a broker running here? sudo systemctl enable --now mosquitto"
        ).coded(
          "no_broker",
          ["reason": "the broker cannot be reached: Connection refused", "cause": "broker_silent"])
      ])
  }

  /// Long packets are lost on the way: the subscriptions are, and TCP then holds back all that follows.
  @Test func brokerThatIsSilentAfterTheLoginIsNoMatterOfItsAccessList() async throws {
    let server = try StubServer(sending: [0x20, 0x03, 0x00, 0x00, 0x00])
    let found = await findings(configuration(server.port))
    #expect(found.map(\.check) == [.broker])
    #expect(found[0].text.hasPrefix("the broker does not answer after the login"))
    #expect(found[0].remedy?.hasPrefix("ping -M do -s 1400 127.0.0.1:") == true)
  }

  @Test(arguments: versions)
  func onlyWhatIsNotAuthorizedIsAMatterOfTheAccessList(_ version: Configuration.MQTT.ProtocolVersion) {
    let probes = TopicProbes(configuration(1883, version), gateway: gateway)
    func findings(
      _ need: TopicProbe.Need, publish: MQTTRefusal? = nil, subscribe: MQTTRefusal? = nil
    ) -> [Finding] {
      let known = probes.list[2]
      let probe = TopicProbe(topic: known.topic, filter: known.filter, need: need, shown: known.shown)
      let outcome = TopicProbe.Outcome(
        probe: probe, hasArrived: false, publishRefusal: publish, subscribeRefusal: subscribe)
      return probes.findings([outcome])
    }
    let quota = Finding.fault(
      .topics, "the broker refuses microbit/+/readings: Quota exceeded", remedy: "see the broker's log")
    #expect(findings(.publish, publish: .quotaExceeded) == [quota])
    let subscription = findings(.both, subscribe: .quotaExceeded)
    if version == .v5 { #expect(subscription == [quota]) }
    for found in [findings(.publish, publish: .notAuthorized), findings(.receive, subscribe: .notAuthorized)]
      + (version == .v5 ? [] : [subscription])
    {
      #expect(
        found.count == 1 && found[0].remedy?.hasPrefix("allow in the broker's access control list") == true)
    }
  }

  @Test func unresolvableHostNameIsReported() async throws {
    var configuration = configuration(1883)
    configuration.mqtt.host = "no-such-host.invalid"
    let found = await findings(configuration)
    #expect(found.count == 1)
    #expect(found[0].text.hasPrefix("cannot resolve the broker's host name no-such-host.invalid"))
    #expect(found[0].remedy?.contains("getent hosts no-such-host.invalid") == true)
  }

  @Test(arguments: versions)
  func rejectedLoginIsReported(_ version: Configuration.MQTT.ProtocolVersion) async throws {
    let folder = try TemporaryFolder()
    try folder.write("", to: "passwords")
    let broker = try await MosquittoBroker(folder: folder) {
      "allow_anonymous false\npassword_file \($0)/passwords"
    }
    let found = await findings(configuration(broker.port, version, user: "somebody"))
    #expect(found.count == 1)
    #expect(found[0].level == .fault)
    #expect(found[0].text.hasPrefix("the broker rejected the login"))
    #expect(found[0].remedy == "set mqtt.username and mqtt.password_file, or correct them")
  }

  private static let denied: [(String, String)] = [
    ("microbit/+/readings", "publish to microbit/+/readings"),
    ("microbit/+/info", "publish to microbit/+/info"),
    ("homeassistant/device/#", "publish to homeassistant/device/+/config"),
  ]

  @Test(arguments: denied)
  func deniedTopicIsReported(_ filter: String, _ expected: String) async throws {
    let broker = try await broker(acl: "topic readwrite #\ntopic deny \(filter)\n")
    let found = await findings(configuration(broker.port))
    let faults = found.filter { $0.level == .fault }
    #expect(faults.count == 1)
    #expect(faults.first?.text == "the broker does not let the gateway \(expected)")
    #expect(faults.first?.remedy?.hasPrefix("allow in the broker's access control list: topic") == true)
  }

  /// mosquitto accepts the subscription, but delivers nothing.
  @Test func undeliveredCommandsAreReported() async throws {
    let broker = try await broker(
      acl: "topic write #\ntopic read microbit/bridge/#\ntopic read microbit/+/info\n")
    let found = await findings(configuration(broker.port))
    let fault = try #require(found.first { $0.level == .fault })
    #expect(
      fault.text
        == "the broker does not let the gateway receive microbit/+/availability, microbit/+/+/set, microbit/+/+/get, microbit/all/+/set, homeassistant/device/+/config"
    )
  }

  @Test func deniedTopicIsReportedWithMQTT311() async throws {
    let broker = try await broker(
      acl: "topic readwrite #\ntopic deny microbit/+/info\ntopic deny microbit/+/readings\n")
    let found = await findings(configuration(broker.port, .v311))
    #expect(found.first { $0.level == .fault }?.text.hasSuffix("publish or receive microbit/+/info") == true)
    #expect(found.first { $0.level == .warning }?.text.hasSuffix("may not allow microbit/+/readings") == true)
  }

  @Test(arguments: versions, ["max_packet_size 400", "message_size_limit 300"])
  func limitOfTheSizeIsReported(
    _ version: Configuration.MQTT.ProtocolVersion, _ limit: String
  ) async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\n\(limit)" }
    let found = await findings(configuration(broker.port, version))
    let faults = found.filter { $0.level == .fault }
    #expect(faults.count == 1 && faults.first?.remedy?.contains("max_packet_size") == true, "\(found)")
    if version == .v5, limit == "max_packet_size 400" {
      #expect(faults.first?.text.hasPrefix("the broker takes messages of at most 400 bytes") == true)
    }
  }

  @Test func retainedBirthMeansHomeAssistantIsOnline() async throws {
    let broker = try await MosquittoBroker()
    let birth = try ChildProcess(
      "/usr/bin/mosquitto_pub",
      ["-h", "127.0.0.1", "-p", "\(broker.port)", "-t", "homeassistant/status", "-m", "online", "-r"])
    try await birth.exitStatus()
    let found = await findings(configuration(broker.port))
    #expect(found.last == .ok(.homeAssistant, "Home Assistant is online"))
  }

  @Test func missingRetainSupportIsReported() async throws {
    let broker = try await MosquittoBroker { _ in "allow_anonymous true\nretain_available false" }
    let found = await findings(configuration(broker.port))
    // The gateway's will is retained, so the connection itself is refused.
    #expect(found.map(\.text) == ["the broker refused the connection: Retain not supported"])
    #expect(found.first?.remedy == "allow retained messages in the broker's configuration")
  }
}
