import Log
import Testing

@testable import MQTT

@Suite struct OutageLogTests {
  private let broker = MQTTBroker(host: "broker")

  @Test func eachErrorIsLoggedOncePerOutage() {
    var log = OutageLog([broker])
    let refused = MQTTError.unreachable(reason: "Connection refused", errno: 111)
    let wrong = MQTTError.notAuthorised(reasonCode: 135, reason: "Not authorized")
    #expect(log.failed(refused, at: broker, retryIn: .milliseconds(1250)).level == .warning)
    #expect(log.failed(refused, at: broker, retryIn: .seconds(2)).level == .debug)
    #expect(log.failed(wrong, at: broker, retryIn: .seconds(2)).level == .error)
    #expect(log.failed(refused, at: broker, retryIn: .seconds(2)).level == .debug)
    #expect(log.connected(to: broker).line == "connected again to broker:1883")
    let told = log.lasted(at: broker)
    #expect(told == nil)
    #expect(log.failed(refused, at: broker, retryIn: .seconds(2)).line.hasSuffix("; trying again in 2.0 s"))
    var another = OutageLog([broker])
    let line = another.failed(refused, at: broker, retryIn: .milliseconds(30)).line
    #expect(line.hasSuffix("; trying again at once"))
    #expect(log.lost().level == .warning)
    #expect(log.lost().level == .debug)
  }

  @Test("A broker that ends each connection at once gives no lines without end")
  func flappingIsLoggedOnce() {
    var log = OutageLog([broker])
    let lost = MQTTError.connectionLost(reason: "closed by the other end")
    var entries = [log.connected(to: broker)]
    for _ in 1...10 {
      entries.append(log.failed(lost, at: broker, retryIn: .seconds(1)))
      entries.append(log.connected(to: broker))
    }
    #expect(entries.prefix(4).map(\.level) == [.info, .warning, .notice, .warning])
    #expect(entries[3].line.hasSuffix("until a connection has lasted 30 s"))
    #expect(entries.dropFirst(4).allSatisfy { $0.level == .debug })
    let end = log.lasted(at: broker)
    #expect(end?.level == .notice && end?.line == "connected again to broker:1883")
    #expect(log.failed(lost, at: broker, retryIn: .seconds(1)).level == .warning, "another outage")
    #expect(log.connected(to: broker).level == .notice)
    let told = log.lasted(at: broker)
    #expect(told == nil, "it was said when it was made")
  }

  @Test func sendingTooMuchAndTooLittleIsSaidInWords() {
    func error(_ code: Int32) -> MQTTError {
      MosquittoText.error(code, errno: 0, lines: [], isTLSHandshake: false)
    }
    #expect(error(1 /* MOSQ_ERR_NOMEM */) == .protocolViolation(reason: "a packet is too short"))
    let tooLarge = error(25 /* MOSQ_ERR_OVERSIZE_PACKET */)
    #expect(
      tooLarge.description
        == "the broker refused the connection: it accepts only packets that are smaller than this gateway's")
    #expect(tooLarge.hint(at: broker)?.hasSuffix("max_packet_size") == true)
  }

  @Test(arguments: ["localhost", "127.0.0.1", "::1"])
  func aRefusedLocalConnectionHasAHint(_ host: String) {
    let local = MQTTBroker(host: host)
    var log = OutageLog([local])
    let error = MQTTError.unreachable(reason: "Connection refused", errno: 111)
    let line = log.failed(error, at: local, retryIn: .seconds(1)).line
    #expect(
      line == """
        the broker cannot be reached: Connection refused (is a broker running here? sudo apt install mosquitto; sudo \
        systemctl enable --now mosquitto); trying again in 1.0 s
        """)
    #expect(
      error.hint(at: MQTTBroker(host: host, port: 1884))
        == "check mqtt.port (usual: 1883, with TLS 8883); is a broker running here? sudo systemctl enable --now mosquitto"
    )
    #expect(
      !log.failed(.unreachable(reason: "No route to host", errno: 113), at: local, retryIn: nil).line
        .contains(
          "apt install"))
  }

  @Test func aRefusedRemoteConnectionHasAnotherHint() {
    var log = OutageLog([broker])
    let error = MQTTError.unreachable(reason: "Connection refused", errno: 111)
    let line = log.failed(error, at: broker, retryIn: .seconds(1)).line
    #expect(line.contains("check mqtt.host and mqtt.port") && line.contains("listens on the network"))
    #expect(!line.contains("apt install"))
  }

  @Test func ofSeveralBrokersEachIsNamed() {
    let brokers = [MQTTBroker(host: "one"), MQTTBroker(host: "fd00::2", port: 8883)]
    var log = OutageLog(brokers)
    let error = MQTTError.timedOut(.connect)
    let first = log.failed(error, at: brokers[0], retryIn: .zero)
    #expect(
      first == (
        .warning,
        "one:1883: the broker cannot be reached: no answer (check mqtt.host and mqtt.port, and the network: "
          + "ping one); trying the next broker"
      ))
    let second = log.failed(error, at: brokers[1], retryIn: .seconds(1))
    #expect(second.level == .warning && second.line.hasPrefix("[fd00::2]:8883: "))
    #expect(log.failed(error, at: brokers[0], retryIn: .zero).level == .debug)
    #expect(log.connected(to: brokers[1]).line == "connected again to [fd00::2]:8883")
  }

  @Test func theFirstConnectionIsNotLoggedAsAReconnect() {
    var log = OutageLog([broker])
    #expect(log.connected(to: broker) == (.info, "connected to broker:1883"))
  }

  @Test func whatIsSentAgainIsNotSaidToBeDropped() throws {
    let topic = try #require(TopicName("t"))
    var log = OutageLog([broker])
    #expect(log.refused(topic, "why").line == "a message to t was dropped: why")
    let kept = [RefusedMessage.kept, .returned(MQTTMessage(topic: topic, payload: []))]
    for fate in kept {
      #expect(log.refused(topic, "why", fate).line == "a message to t is refused, and sent again later: why")
    }
  }

  @Test func warningsOfRefusedTopicsAreBounded() throws {
    var log = OutageLog([broker])
    let levels = try (0..<200).map { log.refused(try #require(TopicName("t/\($0)")), "why").level }
    #expect(levels.count { $0 == .warning } == 100)
    #expect(log.refused(try #require(TopicName("t/0")), "why").level == .debug)
  }

  @Test func refusedSubscriptionsAreLoggedOnceUntilAConnectionHasLasted() {
    var log = OutageLog([broker])
    func lines(_ filters: Int) -> [String] {
      _ = log.connected(to: broker)
      let entries = (0..<filters).map { log.refused(subscription: TopicFilter("t/\($0)")!, "why") }
      return entries.filter { $0.level == .error }.map(\.line)
    }
    #expect(lines(2) == (0..<2).map { "the broker refused the subscription to t/\($0): why" })
    #expect(lines(2).isEmpty)
    let more = lines(50)
    #expect(more.count == 8 && more.last?.hasSuffix("t/9: why; others are not logged") == true)
    #expect(lines(50).isEmpty)
    _ = log.lasted(at: broker)
    #expect(lines(50).count == 10)
  }

  @Test func errorLinesBecomeAReason() {
    #expect(MosquittoText.reason(ofLines: []) == nil)
    #expect(
      MosquittoText.reason(ofLines: [
        "Error: host name verification failed.",
        "OpenSSL Error[0]: error:0A000086:SSL routines::certificate verify failed",
      ]) == "host name verification failed; certificate verify failed")
    #expect(
      MosquittoText.reason(ofLines: ["Error: Unable to load client key file \"/k\".", " \n"])
        == "Unable to load client key file \"/k\"")
  }

  @Test func socketResetIsReported() {
    let lines = ["OpenSSL Error[0]: error:80000068:system library::Connection reset by peer"]
    func error(isTLSHandshake: Bool) -> MQTTError {
      MosquittoText.error(8 /* MOSQ_ERR_TLS */, errno: 0, lines: lines, isTLSHandshake: isTLSHandshake)
    }
    #expect(error(isTLSHandshake: true) == .tlsClosed)
    #expect(error(isTLSHandshake: false) == .connectionLost(reason: "Connection reset by peer"))
  }

  /// libmosquitto 2.0.11 says EPROTO, later ones that there is an error of TLS.
  @Test(arguments: [(14, 71), (8, 71)] as [(Int32, Int32)])
  func endOfAConnectionWithTLSIsReported(_ code: Int32, _ errno: Int32) {
    func error(_ lines: [String], isTLSHandshake: Bool) -> MQTTError {
      MosquittoText.error(code, errno: errno, lines: lines, isTLSHandshake: isTLSHandshake)
    }
    #expect(error([], isTLSHandshake: false) == .connectionLost(reason: "closed by the other end"))
    #expect(error([], isTLSHandshake: true) == .tlsClosed)
    let eof = "OpenSSL Error[0]: error:0A000126:SSL routines::unexpected eof while reading"
    #expect(error([eof], isTLSHandshake: true) == .tlsClosed)
    let version = "OpenSSL Error[0]: error:0A00010B:SSL routines::wrong version number"
    #expect(error([version], isTLSHandshake: true) == .tls(reason: "wrong version number"))
  }

  @Test(
    arguments: [
      (1, .unsupportedProtocol), (132, .unsupportedProtocol),
      (4, .notAuthorised(reasonCode: 4, reason: "bad user name or password")),
      (5, .notAuthorised(reasonCode: 5, reason: "not authorised")),
      (134, .notAuthorised(reasonCode: 134, reason: "Bad User Name or Password")),
      (3, .refused(reasonCode: 3, reason: "server unavailable")),
      (137, .refused(reasonCode: 137, reason: "Server busy")),
    ] as [(Int32, MQTTError)])
  func refusalCodesAreMappedToErrors(_ code: Int32, _ error: MQTTError) {
    #expect(MosquittoText.refusal(code) == error)
    #expect(error.needsChange)
  }
}
