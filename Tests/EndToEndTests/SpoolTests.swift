import Glibc
import TestSupport
import Testing

/// Readings through outages of the broker and ends of the gateway.
@Suite struct SpoolTests {
  private static let count = 4
  /// `SPOOL_READINGS` and `SPOOL_SEED` make it longer, and repeat it.
  private static let readings = environmentNumber("SPOOL_READINGS") ?? 4000
  private static let randomCount = readings > 20_000 ? 20 : count

  @Test("A gateway that is stopped in an outage publishes its readings after the next start")
  func stopInOutage() async throws {
    try await withFixture(Plan(devices: Self.count, period: 20)) { fixture in
      let id = try await fixture.id()
      let run = try await fixture.reading(id) { $0.sequence == 10 }.run
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      try await fixture.simulator.waitUntil(0, hasSent: 100)
      // What is notified during a stop is lost, and on a busy machine what was notified before may still be on its way:
      // it has arrived when a read is answered.
      let sent = try await fixture.simulator.control("silent", 0).sent
      try #require(try await fixture.command(["read", id, "temperature"]).status == 0)
      try #require(try await fixture.stopGateway() == 0)
      try await fixture.restartBrokerAlone()
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.reading(id, after: mark) { $0.run == run && $0.sequence == sent }
      try fixture.requireAll(of: id, run: run)
      try #require(try fixture.lines(with: "did not end normally").isEmpty)
    }
  }

  @Test("A gateway that is killed in an outage loses the readings of the last second at most")
  func killInOutage() async throws {
    try await withFixture(Plan(devices: Self.count, period: 20)) { fixture in
      let id = try await fixture.id()
      let run = try await fixture.reading(id) { $0.sequence == 10 }.run
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      // Eight seconds of outage, however late it was noticed.
      let before = try await fixture.simulator.devices()[0].sent
      try await fixture.simulator.waitUntil(0, hasSent: before + 400)
      let sent = try await fixture.simulator.devices()[0].sent
      try await fixture.killGateway()
      try await fixture.restartBrokerAlone()
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      // The last second is lost, the time to write, and as much for a slow machine: five of eight seconds.
      try await fixture.reading(id, after: mark) { $0.run == run && $0.sequence >= sent - 250 }
      try await fixture.reading(id, after: mark) { $0.run != run }
      try fixture.requireAll(of: id, run: run)
    }
  }

  @Test("What was kept is published at its rate, and new readings do not wait for it")
  func rate() async throws {
    var plan = Plan(period: 20)
    plan.more = #""spool": {"rate": 20}"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.reading(id) { $0.sequence == 10 }
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      try await fixture.simulator.waitUntil(0, hasSent: 150)
      let mark = try fixture.observer.mark
      try await fixture.restartBroker()
      let live = try await fixture.reading(id, after: mark) { !$0.isReplayed }
      try await fixture.reading(id, after: mark) { $0.sequence == live.sequence - 1 }
      let readings = try fixture.readings(id, after: mark)
      let replayed = readings.filter(\.isReplayed).count
      // 50 new readings a second, beside the 20.
      try #require(readings.count - replayed > replayed, "\(readings.count) of which \(replayed) replayed")
      try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        (try? $0.json())?["spool"]?["messages"]?.int == 0
      }
    }
  }

  @Test("Presses of an outage are replayed in order on readings, and none is published as an event")
  func events() async throws {
    let button = "e95dda90-251d-470a-a062-fa1922dfa9a8"
    var plan = Plan()
    plan.simulator = ["--services", "buttons"]
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","properties":["button_a"]}"#
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await fixture.press(button, 1...1)
      let first = try await fixture.message("kitchen/button_a")
      let sequence = try #require(try first.json()["sequence"]?.int)
      try await fixture.message("kitchen/readings")
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      let mark = try fixture.observer.mark
      try await fixture.press(button, 2...500)
      // The gateway is notified of this after the last press.
      try await fixture.simulator.control("disconnect", 0)
      try await fixture.logged("offline device=kitchen")
      try await fixture.restartBroker()
      let end = sequence + 499
      try await fixture.message("kitchen/readings", after: mark) {
        (try? $0.json())?["sequence"]?.int == end
      }
      let replayed = try fixture.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .map { try $0.json() }
      let sequences = replayed.compactMap { $0["sequence"]?.int }
      #expect(sequences.suffix(499) == Array((sequence + 1)...end)[...])
      #expect(replayed.allSatisfy { $0["replayed"]?.bool == true })
      // The first was a press, the next its release.
      let types = sequences.map { ($0 - sequence) % 2 == 0 ? "press_start" : "press_end" }
      #expect(replayed.compactMap { $0["value"]?.string } == types)
      // The next press is an event again, and the only one since.
      try await fixture.online("kitchen", after: mark)
      try await fixture.press(button, 501...501)
      let next = try await fixture.message("kitchen/button_a", after: mark)
      #expect(try next.json()["sequence"]?.int == end + 1)
      #expect(try fixture.observer.messages(on: "microbit/kitchen/button_a", after: mark).count == 1)
    }
  }

  @Test("With a file that cannot be used, the readings are kept in memory")
  func unusableFile() async throws {
    var plan = Plan(period: 20)
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      // A folder of that name.
      let state = fixture.folder.path + "/state"
      for folder in [state, "\(state)/\(Fixture.gatewayID).spool"] { try #require(mkdir(folder, 0o700) == 0) }
      try fixture.startGateway()
      let id = try await fixture.id()
      try await fixture.reading(id) { $0.sequence == 10 }
      try await fixture.logged("cannot use the spool")
      let problems = try await fixture.perform("health")["problems"]?.array?.compactMap(\.string) ?? []
      #expect(problems.contains { $0.hasPrefix("the spool cannot be used") }, "\(problems)")
      #expect(try await fixture.command(["doctor"]).text.contains("undelivered readings are in memory"))
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      try await fixture.simulator.waitUntil(0, hasSent: 150)
      let mark = try fixture.observer.mark
      try await fixture.restartBroker()
      let live = try await fixture.reading(id, after: mark) { !$0.isReplayed && $0.sequence > 150 }
      try await fixture.reading(id) { $0.sequence == live.sequence - 1 }
      try fixture.requireAll(of: id, run: live.run)
      try await fixture.killBroker()
      let sent = try await fixture.simulator.device(0).sent
      try await fixture.simulator.waitUntil(0, hasSent: sent + 50)
      _ = try await fixture.stopGateway()
      #expect(try fixture.lines(with: "undelivered readings are lost: they could not be stored").count == 1)
    }
  }

  @Test("Random outages, kills and stops: nothing is lost but what was under way when the gateway was killed")
  func randomFaults() async throws {
    let seed = UInt64(environmentNumber("SPOOL_SEED") ?? Int.random(in: 1...1_000_000))
    print("SpoolTests: seed \(seed)")
    var plan = Plan(isLong: true, devices: Self.randomCount, period: 20)
    plan.more = #""spool": {"rate": 10000}"#
    try await withFixture(plan) { fixture in
      let ids = try await fixture.ids(Self.randomCount)
      for id in ids { try await fixture.reading(id) { $0.sequence == 5 } }
      var random = SplitMix64(state: seed)
      var killed: Set<String> = []
      var sent = 0
      // The most that a micro:bit has notified while the gateway was frozen: that arrives all at once.
      var frozen = 0
      func counting(_ freeze: () async throws -> Void) async throws {
        let before = try await fixture.simulator.devices()[0].sent
        try await freeze()
        let after = try await fixture.simulator.devices()[0].sent
        frozen = max(frozen, after - before)
      }
      while sent < Self.readings {
        let isDown = Bool.random(using: &random)
        if isDown { try await counting { try await fixture.killBroker() } }
        let more = Int.random(in: 10...150, using: &random)
        let now = try await fixture.simulator.devices()[0].sent
        try await fixture.simulator.waitUntil(0, hasSent: now + more)
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          let gateway = try fixture.gateway
          gateway.signal(SIGKILL)
          _ = try await gateway.exitStatus(within: Fixture.patience)
          if let run = try fixture.readings(ids[0]).last(where: { !$0.isReplayed })?.run {
            killed.insert(run)
          }
          if isDown { try await fixture.restartBrokerAlone() }
          try fixture.startGateway()
        case 1:
          try #require(try await fixture.stopGateway() == 0)
          if isDown { try await fixture.restartBrokerAlone() }
          try fixture.startGateway()
        default: if isDown { try await counting { try await fixture.restartBroker() } }
        }
        let mark = try fixture.observer.mark
        for id in ids { try await fixture.reading(id, after: mark) { !$0.isReplayed } }
        sent = try fixture.observer.messages.count { $0.topic.hasSuffix("/readings") }
      }
      try #require(try await fixture.stopGateway() == 0)
      try fixture.startGateway()
      let mark = try fixture.observer.mark
      try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        let info = try? $0.json()
        return info?["spool"]?["messages"]?.int == 0 && info?["broker"]?["connected"]?.bool == true
      }
      var (readings, runs, missing) = (0, 0, 0)
      for id in ids {
        let byRun = Dictionary(grouping: try fixture.readings(id), by: \.run)
        runs = byRun.count
        for (run, received) in byRun {
          let sequences = Set(received.map(\.sequence))
          readings += sequences.count
          let lost = (sequences.max() ?? 0) - sequences.count
          missing += lost
          // Some of the in-flight ones may have arrived, and those before not.
          #expect(
            lost == 0 || killed.contains(run) && lost <= 64 + frozen,
            "\(run): \(lost) of \(sequences.max() ?? 0), \(frozen) in a freeze")
        }
      }
      print("SpoolTests: \(readings) readings in \(runs) runs, \(killed.count) killed, \(missing) missing")
    }
  }
}

extension Fixture {
  /// Starts the broker, while there is no gateway.
  fileprivate func restartBrokerAlone() async throws {
    try await broker.start()
    try await observer.synchronize()
  }

  /// Presses (odd numbers) and releases (even ones) a button of the first micro:bit.
  fileprivate func press(_ characteristic: String, _ numbers: ClosedRange<Int>) async throws {
    for start in stride(from: numbers.lowerBound, through: numbers.upperBound, by: 100) {
      let batch = start...min(start + 99, numbers.upperBound)
      try await simulator.notify(0, characteristic, batch.map { "0\($0 % 2)" })
    }
  }

  /// Every reading of the run up to the last one has arrived.
  fileprivate func requireAll(of id: String, run: String) throws {
    let sequences = Set(try readings(id).filter { $0.run == run }.map(\.sequence))
    try #require(sequences == Set(1...(sequences.max() ?? 1)), "\(sequences.sorted())")
  }

  fileprivate func ids(_ count: Int) async throws -> [String] {
    var ids: [String] = []
    for index in 0..<count { ids.append(try await id(index)) }
    return ids
  }
}
