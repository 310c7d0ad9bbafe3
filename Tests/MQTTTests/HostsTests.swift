import TestSupport
import Testing

@testable import MQTT

/// A client with two brokers. Against real ones, which are no cluster: each shows what it got.
@Suite(.timeLimit(.minutes(5))) struct HostsTests {
  private func options(_ first: UInt16, _ second: UInt16) -> MQTTOptions {
    var options = MQTTOptions.local(first)
    options.brokers = [first, second].map { MQTTBroker(host: "127.0.0.1", port: $0) }
    options.probeInterval = .milliseconds(50)
    options.returnAfter = .milliseconds(200)
    options.will = MQTTMessage(topic: topic("state"), payload: Array("offline".utf8), retain: true)
    return options
  }

  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func theFirstBrokerIsUsedAgainWithoutALostMessageOrAWill(
    _ version: MQTTOptions.ProtocolVersion
  ) async throws {
    let (first, second) = (try await MosquittoBroker(), try await MosquittoBroker())
    try await first.stop()
    var options = options(first.port, second.port)
    options.protocolVersion = version
    let client = await TestClient(options) { $0.setState(topic("state"), Array("online".utf8)) }
    _ = try await client.connectFailed()
    try await client.connected()
    #expect(await client.client.broker.port == second.port)
    let atSecond = await TestClient(.local(second.port)) { $0.subscribe([filter("#")]) }
    #expect(try await atSecond.message().text == "online")

    try await first.start()
    let atFirst = await TestClient(.local(first.port)) { $0.subscribe([filter("e"), filter("state")]) }
    try await atFirst.connected()
    var sent = 0
    repeat {
      sent += 1
      await client.publish(MQTTMessage(topic: topic("e"), payload: Array("\(sent)".utf8)))
      try await Task.sleep(for: .milliseconds(1))
    } while client.connections < 2
    await client.publish(MQTTMessage(topic: topic("e"), payload: Array("end".utf8)))
    var arrived: Set<String> = []
    while !arrived.contains("end") { arrived.insert(try await atFirst.message().text) }
    #expect(await client.client.broker.port == first.port)
    #expect(try await client.disconnected() == nil)
    // A message of its own ends what the second broker has sent.
    await atSecond.publish(MQTTMessage(topic: topic("last"), payload: Array("last".utf8)))
    var others: Set<String> = []
    while !others.contains("last") { others.insert(try await atSecond.message().text) }
    #expect(arrived.union(others).isSuperset(of: (1...sent).map { "\($0)" }))
    let lines = client.lines.elements.map(\.line)
    #expect(arrived.contains("online") && !arrived.contains("offline"), "\(sent): \(lines)")
    #expect(!others.contains("offline"), "\(sent): \(lines)")
    #expect(client.lines.elements.contains { $0.line.hasSuffix("trying the next broker") })
  }

  /// As two nodes of a cluster; and the client checks what a broker retains before it sends what waits, as the gateway does.
  @Test func aBrokerThatPassesTheProbeOnIsUsedAgain() async throws {
    let broker = try await MosquittoBroker()
    let first = try BrokerProxy(to: broker.port)
    first.cut()
    var options = options(first.port, broker.port)
    options.awaitsAdmission = true
    options.probe = MQTTMessage(topic: topic("probe"), payload: [1], qos: .atLeastOnce)
    let client = await TestClient(options) { $0.subscribe([filter("probe")]) }
    _ = try await client.connectFailed()
    try await client.connected()
    #expect(await client.client.broker.port == broker.port)
    first.restore()
    try await client.connected()
    #expect(await client.client.broker.port == first.port)
  }

  private func addresses(_ texts: [String]) -> [HostAddress] {
    texts.map { HostAddress(family: 2 /* AF_INET */, text: $0) }
  }

  /// Nothing listens on the others.
  @Test func everyAddressOfAHostIsTried() async throws {
    let broker = try await MosquittoBroker()
    let found = addresses(["127.0.0.3", "127.0.0.2", "127.0.0.1"])
    var options = MQTTOptions.local(broker.port)
    options.brokers = [MQTTBroker(host: "three.test", port: broker.port)]
    options.lookUp = { _ in found }
    let client = await TestClient(options)
    try await client.connected()
    let failures = client.events.elements.count { if case .connectFailed = $0 { true } else { false } }
    #expect(failures == 0)
    try await broker.kill()
    _ = try await client.disconnected()
    #expect(try await client.connectFailed() == .unreachable(reason: "Connection refused", errno: 111))
    try await broker.start()
    try await client.connected()
  }

  /// Nothing listens on the second.
  @Test func aSilentAddressIsLoggedBeforeAllAreTried() async throws {
    let silent = try BlackHole()
    var options = MQTTOptions.local(silent.port)
    options.connectTimeout = .seconds(1)
    let found = addresses(["127.0.0.1", "127.0.0.2"])
    options.lookUp = { _ in found }
    let client = await TestClient(options)
    #expect(try await client.failure() == .timedOut(.connect))
    // On a busy machine the look-up may take a second, too.
    let slow = MQTTError.timedOut(.lookUp).description
    let lines = client.lines.elements.filter { $0.level == .warning }.map(\.line)
      .filter { !$0.hasPrefix(slow) }
    #expect(lines.count == 1 && lines.first?.hasSuffix("; still waiting") == true, "\(lines)")
  }

  @Test func oneErrorIsReportedForAllAddresses() {
    let refused = MQTTError.unreachable(reason: "refused", errno: 111)
    let login = MQTTError.notAuthorised(reasonCode: 135, reason: "")
    var choice = AddressChoice()
    #expect(choice.failed(refused) == refused)
    // A name server may give them in another order each time.
    var found = addresses(["a", "b", "c"])
    func pick() -> String? {
      defer { found = Array(found.dropFirst() + found.prefix(1)) }
      return choice.pick(from: found)?.text
    }
    for last in [refused, .timedOut(.connack), .tlsClosed] {
      var picked: Set<String> = []
      for _ in 1...2 {
        picked.formUnion([pick()].compactMap(\.self))
        let told = choice.failed(refused)
        #expect(told == nil)
      }
      picked.formUnion([pick()].compactMap(\.self))
      let told = choice.failed(last)
      #expect(told == last, "the broker that hangs, not the address where there is none")
      #expect(picked == ["a", "b", "c"])
    }
    let good = pick()
    for _ in 1...2 {
      let told = choice.failed(login)
      #expect(told == login)
    }
    choice.connected()
    #expect(pick() == good && pick() == good, "as long as it answers")
    choice.leave()
    #expect(pick() != good, "it was of no use")
    let again = choice.failed(refused)
    #expect(again == nil)
    found = addresses(["d"])
    #expect(pick() == "d", "the name has another address")
    #expect(choice.failed(refused) == refused)
  }

  /// A name of a large pool, as of a cloud's broker.
  @Test func aFailureIsReportedThoughEachLookUpGivesAnotherAddress() {
    let refused = MQTTError.unreachable(reason: "refused", errno: 111)
    var choice = AddressChoice()
    var number = 0
    for _ in 1...2 {
      var attempts = 0
      repeat {
        attempts += 1
        number += 2
        _ = choice.pick(from: addresses(["\(number)", "\(number + 1)"]))
      } while choice.failed(refused) == nil && attempts < 100
      #expect(attempts == AddressChoice.most)
    }
  }

  @Test func addressesOfAHostAreInWords() throws {
    #expect(try HostAddress.all(of: "127.0.0.2").map(\.text) == ["127.0.0.2"])
    #expect(try HostAddress.all(of: "::1").map(\.text) == ["::1"])
  }

  /// The first broker's host has gone, or it hangs.
  @Test func aSilentBrokerIsPassedOver() async throws {
    let (silent, second) = (try BlackHole(), try await MosquittoBroker())
    var options = options(silent.port, second.port)
    options.connectTimeout = .seconds(1)
    let client = await TestClient(options)
    #expect(try await client.failure() == .timedOut(.connect))
    try await client.connected()
    #expect(client.connections == 1)
  }

  /// A broker that accepts and closes, as one that is overloaded.
  @Test func aBrokerThatDoesNotKeepTheConnectionIsPassedOver() async throws {
    let flapping = try StubServer(sending: [0x20, 3, 0, 0, 0], thenCloses: true)
    let second = try await MosquittoBroker()
    var options = options(flapping.port, second.port)
    // A probe finds the first one well.
    options.returnAfter = .seconds(60)
    let client = await TestClient(options)
    try await client.connected()
    _ = try await client.disconnected()
    try await client.connected()
    #expect(await client.client.broker.port == second.port)
  }
}
