import Glibc
import TestSupport
import Testing

/// The broker is absent, restarts, rejects the login, or is no broker.
@Suite struct BrokerTests {
  @Test("A broker that starts after the gateway receives all readings from the first on")
  func absentAtStart() async throws {
    try await withFixture(Plan(devices: 2, period: 20, absent: [.broker])) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      try await fixture.logged("the broker cannot be reached")
      for index in 0..<2 { try await fixture.simulator.waitUntil(index, hasSent: 20) }
      try await fixture.freezingGateway {
        try await fixture.broker.start()
        try await fixture.startObserver()
      }
      for id in ids {
        let live = try await fixture.reading(id) { !$0.isReplayed }
        try await fixture.reading(id) { $0.isReplayed && $0.sequence == live.sequence - 1 }
        let replayed = try fixture.readings(id).filter(\.isReplayed)
        try #require(live.sequence > 20)
        try #require(replayed.map(\.sequence) == Array(1..<live.sequence))
        try await fixture.online(id)
        try await fixture.message("\(id)/period", "20")
      }
      try await fixture.bridgeOnline()
      try await fixture.logged("connected again")
      try #require(try fixture.lines(with: "the broker cannot be reached").count == 1)
      try #require(try fixture.lines(with: "connected again").count == 1)
    }
  }

  @Test("After an outage, readings are replayed in order and retained state is published again")
  func killedAndBack() async throws {
    try await withFixture(Plan(devices: 2, period: 20)) { fixture in
      let ids = [try await fixture.id(0), try await fixture.id(1)]
      for id in ids {
        try await fixture.online(id)
        _ = try await fixture.readings(id, upTo: 10)
      }
      try await fixture.message("bridge/\(Fixture.gatewayID)/devices") { $0.text.contains("live") }
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      let sent = try await fixture.simulator.devices().map(\.sent)
      for index in 0..<2 { try await fixture.simulator.waitUntil(index, hasSent: sent[index] + 20) }
      let mark = try fixture.observer.mark
      try await fixture.restartBroker()
      for (index, id) in ids.enumerated() {
        let during = sent[index] + 2
        let live = try await fixture.reading(id, after: mark) { !$0.isReplayed }
        try await fixture.reading(id, after: mark) { $0.sequence == live.sequence - 1 }
        let replayed = try fixture.readings(id, after: mark).filter(\.isReplayed).map(\.sequence)
        // A reading that the broker had delivered but not yet acknowledged may be duplicate.
        let before = try fixture.readings(id).filter { $0.message.number < mark }.map(\.sequence)
        try #require(replayed == Array((replayed.first ?? 0)..<live.sequence))
        try #require((replayed.first ?? 0) <= (before.last ?? 0) + 1 && replayed.contains(during + 5))
      }
      let kept = try await fixture.retained()
      for id in ids {
        #expect(kept["\(id)/availability"]?.text == "online")
        #expect(kept["\(id)/period"]?.text == "20")
        #expect(kept["\(id)/temperature"] != nil)
        #expect(kept["\(id)/info"] != nil)
      }
      #expect(kept["bridge/\(Fixture.gatewayID)/state"]?.text == "online")
      try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        (try? $0.json())?["broker"]?["connects"]?.int == 2
      }
      // Commands work again.
      try #require(try await fixture.setPeriod(ids[0], "60")["status"]?.string == "applied")
    }
  }

  /// User `fixture` with the password `secret`, as written by mosquitto_passwd.
  private static let passwords = """
    fixture:$7$101$HE8HDFYMmlF1Jpv/$jtvTvbBwb4XrHEBlv1b4aHopv4zB2qLLGRR042T2g2UHmpbHpEFos+wFv4LSo+A7/r5qCtHbh5m4qzBEIFVM3w==

    """

  private static func planWithLogin(password: String) -> Plan {
    var plan = Plan()
    plan.absent = [.gateway]
    plan.access = { folder in "allow_anonymous false\npassword_file \(folder)/passwords" }
    plan.files = ["passwords": passwords, "password": password]
    plan.observer = ("fixture", "secret")
    plan.mqtt = #""username":"fixture","password_file":"password""#
    return plan
  }

  @Test("A missing password file and a wrong password are logged once; with the right one it connects")
  func login() async throws {
    var plan = Self.planWithLogin(password: "")
    plan.files["password"] = nil
    try await withFixture(plan) { fixture in
      let gateway = try fixture.startGateway()
      try await fixture.logged("/password: No such file or directory (check mqtt.password_file")
      // Bluetooth is unaffected.
      try await fixture.simulator.waitUntil(0, hasSent: 5)
      let (_, doctor) = try await fixture.command(["doctor"])
      try #require(
        doctor.contains("the running gateway is not connected to the broker: cannot use")
          && doctor.contains("mqtt.password_file: "), "\(doctor)")
      try fixture.folder.write("Secret\n", to: "password")
      try await fixture.logged("(set mqtt.username and mqtt.password_file, or correct them)")
      for _ in 0..<2 {
        try await fixture.broker.logLine(within: Fixture.patience) { $0.contains("not authorised") }
      }
      try #require(try fixture.lines(with: "the broker rejected").count == 1)
      try fixture.folder.write("secret\n", to: "password")
      try await fixture.online(try await fixture.id())
      try #require(fixture.gateway.pid == gateway.pid)
      try #require(try fixture.lines(with: "No such file or directory").count == 1)
      for password in ["secret", "Secret"] { try #require(!gateway.text.contains(password)) }
    }
  }

  @Test("A server that is no broker is logged once and retried, until a broker replaces it")
  func brokerReplacesOtherServer() async throws {
    try await withFixture(Plan(absent: [.broker, .gateway])) { fixture in
      do {
        let server = try StubServer(port: fixture.broker.port, sending: Array("hello".utf8))
        try fixture.startGateway()
        // A CONNECT of each attempt.
        _ = try await server.received.first(3)
        try await fixture.logged("trying again")
        try #require(try fixture.lines(with: " mqtt: ").count == 1)
        try #require(try fixture.lines(with: "trying again").count == 1)
        try await fixture.simulator.waitUntil(0, hasSent: 5)
        try #require(server.received.count >= 3)
      }
      try await fixture.broker.start()
      try await fixture.startObserver()
      try await fixture.bridgeOnline()
      try await fixture.online(try await fixture.id())
    }
  }
}
