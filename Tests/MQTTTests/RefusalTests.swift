import Log
import Synchronization
import TestSupport
import Testing

@testable import MQTT

/// Brokers that refuse or do not answer, and servers that are no brokers.
@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
  private func guardedBroker() async throws -> MosquittoBroker {
    let folder = try TemporaryFolder()
    let tool = try ChildProcess(
      "/usr/bin/mosquitto_passwd", ["-c", "-b", folder.path + "/passwords", "gateway", "s3cret ü"])
    #expect(try await tool.exitStatus() == 0, "\(tool.text)")
    try folder.write("user gateway\ntopic readwrite allowed/#\n", to: "acl")
    return try await MosquittoBroker(folder: folder) { folder in
      "allow_anonymous false\npassword_file \(folder)/passwords\nacl_file \(folder)/acl"
    }
  }

  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func onlyAValidLoginIsAccepted(_ version: MQTTOptions.ProtocolVersion) async throws {
    let broker = try await guardedBroker()
    var options = MQTTOptions.local(broker.port, version)
    options.username = "gateway"
    options.password = "s3cret ü"
    let accepted = await TestClient(options)
    try await accepted.connected()

    options = .local(broker.port, version)
    for (user, password) in [("gateway", "wrong"), ("nobody", "s3cret ü"), (nil, nil)] {
      options.username = user
      options.password = password
      let rejected = await TestClient(options)
      let error = try await rejected.connectFailed()
      #expect(error.needsChange)
      guard case .notAuthorised = error else {
        Issue.record("\(error)")
        continue
      }
      // It keeps trying, and logs it once.
      _ = try await rejected.connectFailed()
      #expect(rejected.lines.elements.count { $0.level == .error } == 1)
    }
  }

  @Test func thePasswordIsReadForEachAttempt() async throws {
    let broker = try await guardedBroker()
    let attempts = Mutex(0)
    var options = MQTTOptions.local(broker.port)
    options.username = "gateway"
    options.readPassword = { () throws(MQTTError) in
      let attempt = attempts.withLock { count in
        count += 1
        return count
      }
      switch attempt {
      case 1: throw .file(path: "/secret", reason: "No such file or directory")
      case 2: return "wrong"
      default: return "s3cret ü"
      }
    }
    let client = await TestClient(options)
    #expect(
      try await client.connectFailed() == .file(path: "/secret", reason: "No such file or directory"))
    #expect(try await client.connectFailed().needsChange)
    try await client.connected()
  }

  @Test func forbiddenMessageIsDoneAndCounted() async throws {
    let broker = try await guardedBroker()
    var options = MQTTOptions.local(broker.port)
    options.username = "gateway"
    options.password = "s3cret ü"
    let client = await TestClient(options) { $0.subscribe([filter("allowed/#")]) }
    try await client.connected()
    await client.publish(MQTTMessage(topic: topic("forbidden/x"), payload: []))
    await client.publish(MQTTMessage(topic: topic("allowed/x"), payload: []))
    #expect(try await client.message().topic == topic("allowed/x"))
    #expect(await client.client.statistics.rejected == 1)
  }

  @Test func aRefusedSubscriptionIsRepeatedOnTheSameConnection() async throws {
    // CONNACK, and the SUBACK of the first SUBSCRIBE: not authorized.
    let server = try StubServer(sending: [0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 0x87])
    let client = await TestClient(.local(server.port)) { $0.subscribe([filter("refused")]) }
    _ = try await client.events.next("a refusal") { if case .subscriptionRefused = $0 { true } else { nil } }
    #expect(await client.client.isolated { $0.refusedSubscription { _ in false } == nil })
    #expect(
      await client.client.isolated { $0.refusedSubscription { _ in true }?.reason } == .notAuthorized)
    await client.client.isolated { $0.subscribeRefusedAgain() }
    var text = ""
    while text.ranges(of: "refused").count < 2 {
      text += String(decoding: try await server.received.next("bytes") { $0 }, as: UTF8.self)
    }
    #expect(client.connections == 1)
  }

  @Test(
    arguments: [
      (0x80, false), (0x83, false), (0x87, false), (0x97, true), (0x90, false), (0x95, false), (0x99, false),
    ] as [(Int32, Bool)])
  func theReasonTellsWhetherTheBrokerTakesAMessageLater(_ code: Int32, _ isQuota: Bool) {
    #expect((MosquittoText.refusal(ofMessage: code) == .quotaExceeded) == isQuota)
  }

  @Test func passwordNeedsAUserNameWithMQTT311() async throws {
    var options = MQTTOptions.local(1883, .v311)
    options.password = "x"
    let error = try await TestClient(options).connectFailed()
    guard case .invalidOption = error else { throw error }
    #expect(error.hint(at: MQTTBroker(host: "a")) == "correct mqtt in config.json")
  }

  @Test(arguments: [false, true])
  func closedPortIsReportedAsUnreachable(_ usesTLS: Bool) async throws {
    let port = try ReservedPort()
    var options = MQTTOptions.local(port.number)
    if usesTLS { options.tls = MQTTOptions.TLS() }
    let client = await TestClient(options)
    for _ in 0..<3 {
      let error = try await client.connectFailed()
      #expect(error == .unreachable(reason: "Connection refused", errno: 111))
    }
  }

  /// `localhost` is ::1 first on many machines, and the broker listens on 127.0.0.1 alone.
  @Test func theOtherAddressFamilyIsTried() async throws {
    let broker = try await MosquittoBroker()
    var options = MQTTOptions.local(broker.port)
    options.brokers = [MQTTBroker(host: "localhost", port: broker.port)]
    let client = await TestClient(options)
    try await client.connected()
  }

  @Test func unresolvableHostNameIsReported() async throws {
    var options = MQTTOptions.local(1883)
    options.brokers = [MQTTBroker(host: "no-such-host.invalid")]
    let client = await TestClient(options)
    let error = try await client.failure()
    guard case .lookUpFailed(let host, let reason) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(host == "no-such-host.invalid" && !reason.isEmpty)
  }

  @Test(arguments: [false, true])
  func unresponsiveHostTimesOut(_ usesTLS: Bool) async throws {
    let blackHole = try BlackHole()
    var options = MQTTOptions.local(blackHole.port)
    options.connectTimeout = .milliseconds(300)
    if usesTLS { options.tls = MQTTOptions.TLS() }
    let client = await TestClient(options)
    #expect(try await client.failure() == .timedOut(.connect))
    _ = try await client.connectFailed()
    // A stop in the middle of an attempt does not wait for it.
    let stopping = client.client
    try await deadline(patience, "the end of stop") { await stopping.stop(deadline: .seconds(3600)) }
  }

  @Test(arguments: [false, true])
  func silentServerTimesOut(_ usesTLS: Bool) async throws {
    let server = try StubServer()
    var options = MQTTOptions.local(server.port)
    options.connectTimeout = .seconds(1)
    if usesTLS { options.tls = MQTTOptions.TLS() }
    let client = await TestClient(options)
    let error = try await client.failure(after: [.lookUp, .connect])
    #expect(error == .timedOut(usesTLS ? .tls : .connack))
    _ = try await server.received.next("a CONNECT or ClientHello") {
      $0.first == (usesTLS ? 0x16 : 0x10) ? $0 : nil
    }
    _ = try await client.connectFailed()
  }

  @Test func serverThatClosesIsAConnectionLoss() async throws {
    let server = try StubServer(thenCloses: true)
    let client = await TestClient(.local(server.port))
    #expect(try await client.connectFailed() == .connectionLost(reason: "closed by the other end"))
  }

  @Test(arguments: [
    Array("HTTP/1.1 400 Bad Request\r\n\r\n<html><body>What do you want?</body></html>\r\n".utf8)
      + [UInt8](repeating: 0x40, count: 100),
    Array("220 mail.example ESMTP\r\n".utf8) + [UInt8](repeating: 0x20, count: 200),
    // PUBLISH before CONNACK, a CONNACK cut in half, one with an invalid property, a length that does not end.
    [0x30, 0x04, 0x00, 0x01, 0x61, 0x00], [0x20, 0x01, 0x00], [0x20, 0x05, 0x00, 0x00, 0x02, 0x77, 0x01],
    [0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x00, 0x00], [0xF0, 0x00], [0x20, 0x00],
    // CONNACK, then SUBACK without a body, PUBACK of packet 0.
    [0x20, 0x03, 0x00, 0x00, 0x00, 0x90, 0x00], [0x20, 0x03, 0x00, 0x00, 0x00, 0x40, 0x02, 0x00, 0x00],
  ])
  func invalidPacketsAreAProtocolViolation(_ bytes: [UInt8]) async throws {
    let server = try StubServer(sending: bytes)
    let client = await TestClient(.local(server.port))
    let error = try await client.events.next("an error") { event -> MQTTError? in
      switch event {
      case .connectFailed(let error), .disconnected(.some(let error)): error
      case .connected, .disconnected, .message, .subscriptionRefused, .publicationRefused, .undelivered,
        .completed:
        nil
      }
    }
    if case .protocolViolation = error { return }
    Issue.record("\(error)")
  }

  @Test func receiveMaximumOfZeroIsInvalid() async throws {
    let server = try StubServer(sending: [0x20, 0x06, 0x00, 0x00, 0x03, 0x21, 0x00, 0x00])
    let client = await TestClient(.local(server.port))
    #expect(try await !client.connectFailed().needsChange)
    #expect(client.connections == 0)
  }

  @Test func longReasonInAConnackIsNoObstacle() async throws {
    // 60 000 bytes of a Reason String, after it the length of all properties, of the packet, and the two bytes between.
    let reason = [31, 0xEA, 0x60] + [UInt8](repeating: 0x61, count: 60000)
    let properties = [0xE3, 0xD4, 0x03] + reason
    let server = try StubServer(sending: [0x20, 0xE8, 0xD4, 0x03, 0, 0] + properties)
    let client = await TestClient(.local(server.port))
    try await client.connected()
  }

  @Test func theBrokersWordsAreReported() async throws {
    let long = String(repeating: "é", count: 50)
    // A Reason String, of which only the first 100 characters that can be printed are kept, and a Server Reference.
    let reason = Array("moved\u{202E} \(long)\(long)".utf8)
    let properties = [31, 0, UInt8(reason.count)] + reason + [28, 0, 13] + Array("other.example".utf8)
    // The lengths of all properties, and of the packet, are of two bytes.
    let (low, rest) = (UInt8(properties.count - 128), properties.count + 4 - 128)
    let connack = [0x20, UInt8(rest) | 0x80, 1, 0, 0x9C, low | 0x80, 1] + properties
    let server = try StubServer(sending: connack)
    let client = await TestClient(.local(server.port))
    let words = "Use another server: moved \(long)\(long.dropLast(6)): other.example"
    #expect(try await client.connectFailed() == .refused(reasonCode: 156, reason: words))
  }

  @Test func brokerWithOnlyMQTT311IsUnsupported() async throws {
    // What a 3.1.1 broker answers to MQTT 5: CONNACK, unacceptable protocol version.
    let server = try StubServer(sending: [0x20, 0x02, 0x00, 0x01])
    let client = await TestClient(.local(server.port))
    #expect(try await client.connectFailed() == .unsupportedProtocol)
  }

  /// The broker acknowledges nothing.
  @Test func sentMessageWaitsForTheBrokersReceiveMaximum() async throws {
    // CONNACK with a Receive Maximum of 2.
    let server = try StubServer(sending: [0x20, 6, 0, 0, 3, 0x21, 0, 2])
    let client = await TestClient(.local(server.port))
    try await client.connected()
    for name in ["a", "b"] { await client.publish(MQTTMessage(topic: topic(name), payload: [])) }
    await client.client.isolated { $0.send(MQTTMessage(topic: topic("barrier"), payload: [])) }
    await client.publish(MQTTMessage(topic: topic("the-end"), payload: [], qos: .atMostOnce))
    var text = ""
    while !text.contains("the-end") {
      text += String(decoding: try await server.received.next("bytes") { $0 }, as: UTF8.self)
    }
    #expect(!text.contains("barrier"))
  }
}
