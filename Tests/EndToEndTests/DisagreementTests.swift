import Glibc
import TestSupport
import Testing

/// Two gateways know one device by different ids, or by other entries: one publishes it, the other says what to do, and
/// messages end.
@Suite struct DisagreementTests {
  private static let window = "window"

  /// The first gateway knows the device by the id made of its address, the second one as `window`.
  private static func plans(_ options: String, names: [String?] = [nil, nil]) throws -> [Plan] {
    let profiles = try BeaconTests.profiles()
    return zip(["ground", "attic"], zip(["", #","id":"window""#], names)).map { gateway, entry in
      var plan = Plan.fixture(gateway, area: gateway)
      plan.profiles = profiles
      let name = entry.1.map { #","name":"\#($0)""# } ?? ""
      plan.entries = #"{"match":{"identifier":"\#(Cluster.address)"}\#(entry.0)\#(name)\#(options)}"#
      return plan
    }
  }

  /// The device is in range, and says something.
  private static func advertise(at fixture: Fixture) async throws {
    try await fixture.simulator.control("return", 0)
    let frame = "00ec" + "0000000000000000002a" + "000000000001"
    try await fixture.simulator.control("advertise", 0, #""service":"feaa","hex":"\#(frame)""#)
  }

  /// Waits until nobody has published anything for some seconds about the device but its values.
  /// - Returns: how many documents there were after `mark`.
  private static func rest(of cluster: Cluster, after mark: Int) async throws -> Int {
    let observer = try cluster[0].observer
    let topics = [Cluster.id, window].flatMap { ["microbit/\($0)/info", "microbit/\($0)/availability"] }
    func messages() -> [Observer.Message] {
      observer.messages.filter { $0.number > mark && (topics + [Cluster.discovery]).contains($0.topic) }
    }
    let deadline = ContinuousClock.now + Fixture.patience
    for fixture in cluster.fixtures where try fixture.gateway.isRunning {
      try await fixture.synchronizeGateway()
    }
    while true {
      let before = messages().count
      // There is no event of silence. A gateway repeats a document after a second.
      try await Task.sleep(for: .seconds(3))
      if messages().count == before { break }
      guard ContinuousClock.now < deadline else {
        throw Failure("no end: \(messages().map { "\($0.topic) \($0.text)" })")
      }
    }
    return messages().count { $0.topic == Cluster.discovery }
  }

  /// One id alone has topics, and the gateway that publishes it is the one that announces it.
  private static func expect(_ owner: Fixture, _ id: String) async throws {
    let kept = try await owner.retained()
    let other = id == window ? Cluster.id : window
    #expect(kept.keys.filter { $0.hasPrefix("\(other)/") } == [])
    #expect(try kept["\(id)/info"]?.json()["owner"]?.string == owner.plan.id)
    #expect(kept[Cluster.discovery]?.text.contains("microbit/\(id)/availability") == true)
    #expect(kept[Cluster.discovery]?.text.contains("bridge/\(owner.plan.id)/state") == true)
  }

  private static func findings(_ fixture: Fixture) async throws -> [String] {
    try await fixture.perform("health")["findings"]?.array?.compactMap { finding in
      finding["text"]?.string.map { "\($0) → \(finding["remedy"]?.string ?? "")" }
    }.filter { $0.contains("the gateway") } ?? []
  }

  @Test("A beacon is published under the id that was chosen, also after restarts, and under one alone")
  func heard() async throws {
    try await withCluster(try Self.plans(#","profile":"eddystone""#)) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await Self.advertise(at: ground)
      try await ground.waitForOwnership(of: Cluster.id)
      try await ground.announced(by: ground)
      try await Self.advertise(at: attic)
      try await attic.waitForOwnership(of: Self.window)
      try await ground.announced(by: attic)
      // One of each, and the owner's again if both have announced it at once.
      #expect(try await Self.rest(of: cluster, after: 0) <= 3)
      try await Self.expect(attic, Self.window)
      let known = "the gateway attic knows it as window"
      // It is said when it has lasted.
      try await ground.logged(known)
      #expect(try ground.lines(with: known).count == 1)
      let findings = try await Self.findings(ground)
      #expect(findings.count == 1 && findings[0].contains(known))
      #expect(findings.first?.contains("microbit-gateway rename \(Cluster.id) window") == true)
      #expect(try await Self.findings(attic) == [])

      // The other one takes over, and gives it back.
      var mark = try ground.observer.mark
      try await attic.killGateway()
      try await ground.waitForOwnership(of: Cluster.id, after: mark)
      try await ground.announced(by: ground, after: mark)
      #expect(try await Self.rest(of: cluster, after: mark) == 1)
      mark = try ground.observer.mark
      try attic.startGateway()
      try await attic.bridgeOnline(after: mark)
      try await Self.advertise(at: attic)
      try await attic.waitForOwnership(of: Self.window, after: mark)
      try await ground.announced(by: attic, after: mark)
      #expect(try await Self.rest(of: cluster, after: mark) <= 2)
      try await Self.expect(attic, Self.window)

      // A restart of the silent one, and of the broker, which loses everything.
      mark = try ground.observer.mark
      try await ground.killGateway()
      try ground.startGateway()
      try await ground.bridgeOnline(after: mark)
      try await Self.advertise(at: ground)
      #expect(try await Self.rest(of: cluster, after: mark) <= 1)
      try await Self.expect(attic, Self.window)
      mark = try ground.observer.mark
      try await ground.broker.kill()
      try await ground.broker.start()
      for fixture in cluster.fixtures { try await fixture.bridgeOnline(after: mark) }
      try await ground.announced(by: attic, after: mark)
      // As at the beginning, when nobody knew the owner either.
      #expect(try await Self.rest(of: cluster, after: mark) <= 3)
      try await Self.expect(attic, Self.window)

      mark = try ground.observer.mark
      try await ground.perform("device/rename", #"{"id":"\#(Cluster.id)","to":"window"}"#)
      #expect(try await Self.rest(of: cluster, after: mark) <= 1)
      #expect(try await Self.findings(ground) == [])
    }
  }

  @Test("One id for two micro:bits is a fault at the gateway that gives way, until one is renamed")
  func oneIDForTwo() async throws {
    let plans = [("ground", "C5:A1:B2:C3:D4:E5"), ("attic", "C5:A1:B2:C3:D4:E6")].map { gateway, address in
      var plan = Plan.fixture(gateway, area: gateway)
      plan.simulator = ["--address", "0=\(address)"]
      plan.entries = #"{"match":{"identifier":"\#(address)"},"id":"window"}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      let uses = "uses this id for another device: the values of both are mixed"
      @Sendable func count() async throws -> [Int] {
        var all: [String] = []
        for fixture in cluster.fixtures {
          all += try await Self.findings(fixture).filter { $0.contains(uses) }
        }
        return [all.count, all.count { $0.contains("microbit-gateway rename window NAME") }]
      }
      for fixture in cluster.fixtures { try await fixture.simulator.control("return", 0) }
      try await eventually("the fault is said") { try await count() == [1, 1] }
      try await cluster[1].perform("device/rename", #"{"id":"window","to":"door"}"#)
      try await eventually("it is mended") { try await count() == [0, 0] }
    }
  }

  @Test("A device on demand is visited, published and announced by the first gateway alone")
  func onDemand() async throws {
    try await withCluster(try Self.plans(#","connect":"on_demand","every":8"#)) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("return", 0)
      try await ground.waitForOwnership(of: Cluster.id)
      try await attic.simulator.control("return", 0)
      try await attic.logged("the gateway ground knows it as \(Cluster.id)")
      #expect(try await Self.rest(of: cluster, after: 0) <= 3)
      #expect(try await Self.findings(attic).count == 1)
      let kept = try await ground.retained()
      #expect(kept.keys.filter { $0.hasPrefix("window/") } == [])
    }
  }

  @Test("A micro:bit that moves is published under the id of the gateway that has its link")
  func linked() async throws {
    try await withCluster(try Self.plans("", names: ["Lamp", "Window"])) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("return", 0)
      try await ground.waitForOwnership(of: Cluster.id)
      try await ground.announced(by: ground)
      for (from, to, id) in [(ground, attic, Self.window), (attic, ground, Cluster.id)] {
        let mark = try ground.observer.mark
        try await cluster.move(from: from, to: to)
        try await to.waitForOwnership(of: id, after: mark)
        try await ground.announced(by: to, after: mark)
        #expect(try await Self.rest(of: cluster, after: mark) == 1)
        try await Self.expect(to, id)
        try await eventually("a finding") { try await Self.findings(from).count == 1 }
        #expect(try await Self.findings(to) == [])
      }
    }
  }

  @Test("Another name or profile at another gateway is said once")
  func otherEntries() async throws {
    var plans = try Self.plans("", names: ["Lamp", "Window"])
    plans[1].entries = plans[1].entries.replacing(#","id":"window""#, with: #","profile":"eddystone""#)
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("return", 0)
      try await ground.waitForOwnership(of: Cluster.id)
      let text = "the gateway ground has another name and profile for it"
      try await attic.logged(text)
      #expect(try await Self.findings(attic).contains { $0.contains(text) })
      // It is heard here, and has a link there.
      try await Self.advertise(at: attic)
      #expect(try await Self.rest(of: cluster, after: 0) <= 3)
      #expect(try attic.lines(with: text).count == 1)
      #expect(try await ground.retained()["\(Cluster.id)/info"]?.json()["owner"]?.string == "ground")
    }
  }

  @Test(
    "Where another gateway announces a device again and again, one of them gives in",
    arguments: ["attic", "zoo"])
  func documentsAlone(other: String) async throws {
    try await withFixture(Plan(simulator: ["--address", "0=\(Cluster.address)"])) { fixture in
      try await fixture.online(Cluster.id)
      var document = try await fixture.observer.message(
        Cluster.discovery, within: Fixture.patience
      ) { _ in true }
      let foreign = document.text.replacing("bridge/fixture/state", with: "bridge/\(other)/state")
      // It answers each document of this gateway. The first by the alphabet is answered once.
      for _ in 1...(other == "attic" ? 1 : 3) {
        try await fixture.observer.publish(Cluster.discovery, Array(foreign.utf8), retain: true)
        document = try await fixture.observer.message(
          Cluster.discovery, after: document.number, within: Fixture.patience
        ) { $0.text.contains("bridge/fixture/state") }
      }
      try await fixture.observer.publish(Cluster.discovery, Array(foreign.utf8), retain: true)
      try await fixture.logged("the gateway \(other) announces it to Home Assistant too")
      #expect(
        try await Self.findings(fixture).contains { $0.contains("let a bridge between brokers pass on") })
      #expect(try fixture.lines(with: "announces it to Home Assistant too").count == 1)
      // The other one gets its own prefix, and removes what it has announced under this one.
      let mark = try fixture.observer.mark
      try await fixture.observer.publish(Cluster.discovery, [], retain: true)
      _ = try await fixture.observer.message(Cluster.discovery, after: mark, within: Fixture.patience) {
        $0.text.contains("bridge/fixture/state")
      }
      #expect(try await Self.findings(fixture) == [])
      #expect(try fixture.lines(with: "deleted in Home Assistant").isEmpty)
    }
  }
}
