import TestSupport
import Testing

/// More micro:bits than links.
@Suite struct TurnTests {
  private static let links = 3

  private static func bluetooth(stay: Int) -> String { #""links": \#(links), "stay": \#(stay)"# }

  private static func plan(devices: Int, stay: Int) -> Plan {
    var plan = Plan(devices: devices)
    plan.bluetooth = bluetooth(stay: stay)
    return plan
  }

  /// The micro:bits that are connected at one moment.
  private static func connected(_ fixture: Fixture) async throws -> Set<Int> {
    Set(try await fixture.simulator.devices().enumerated().filter(\.element.isConnected).map(\.offset))
  }

  @Test("Ten micro:bits share three links: each publishes in its turn, and stays online in between")
  func turns() async throws {
    let devices = 10
    try await withFixture(Self.plan(devices: devices, stay: 1)) { fixture in
      var ids: [String] = []
      for device in 0..<devices { ids.append(try await fixture.id(device)) }
      var marks: [Int] = []
      for id in ids { marks.append(try await fixture.online(id).number) }
      for (id, mark) in zip(ids, marks) {
        // Its turn is over, it waits, and it is connected again.
        let waiting = try await fixture.message("\(id)/info", after: mark) { message in
          guard let info = try? message.json(), info["connected_since"] == nil else { return false }
          return info["turn"]?["position"]?.int != nil && info["turn"]?["next"]?.string != nil
        }
        let position = try #require(try waiting.json()["turn"]?["position"]?.int)
        #expect((1...devices - Self.links).contains(position))
        let again = try await fixture.message("\(id)/info", after: waiting.number) { message in
          (try? message.json()).map { $0["connected_since"] != nil && $0["turn"] == nil } == true
        }
        try await fixture.message("\(id)/readings", after: again.number)
        #expect(try fixture.stayedOnline(id, after: mark))
        #expect(try await Self.connected(fixture).count <= Self.links)
      }
    }
  }

  @Test("Of 25 with 7 links each has its first value, however long later turns are")
  func firstValues() async throws {
    var plan = Plan(devices: 25, period: 1000)
    plan.bluetooth = #""links": 7,"stay": 3600"#
    plan.simulator = ["--connect-ms", "200", "--disconnect-ms", "200"]
    try await withFixture(plan) { fixture in
      for device in 0..<25 {
        try await fixture.message("\(fixture.id(device))/temperature")
      }
      // From now on each keeps its link for its time.
      #expect(try await Self.connected(fixture).count <= 7)
    }
  }

  @Test("A command and a get for a waiting micro:bit are carried out long before its turn")
  func commands() async throws {
    let devices = 5
    try await withFixture(Self.plan(devices: devices, stay: 3600)) { fixture in
      // Each has had its first turn.
      for device in 0..<devices { try await fixture.message("\(fixture.id(device))/temperature") }
      try await eventually("the others wait") {
        let all = try await fixture.perform("devices").array ?? []
        return all.count { $0["session"]?.string == "live" } == Self.links
          && all.count { $0["turn"] != nil } == devices - Self.links
      }
      let waiting =
        try await fixture.perform("devices").array?.filter { $0["turn"] != nil }
        .compactMap { $0["id"]?.string } ?? []
      #expect(waiting.count == devices - Self.links)
      let (status, text) = try await fixture.command(["read", waiting[0], "temperature"])
      #expect(status == 0, "\(text)")
      for id in waiting.dropFirst() {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/\(id)/temperature/get", "")
        let read = try await fixture.message("\(id)/temperature/result", after: mark).json()
        #expect(read["status"]?.string == "read")
      }
      // Those that gave up their links for it.
      for device in 0..<devices where try await !fixture.simulator.device(device).isConnected {
        let id = try await fixture.id(device)
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/\(id)/period/set", "700")
        let result = try await fixture.message("\(id)/period/result", after: mark) {
          !$0.text.contains("pending")
        }
        #expect(try result.json()["status"]?.string == "applied")
        #expect(try await fixture.simulator.device(device).period == 700)
      }
    }
  }

  @Test("A micro:bit that is to be connected always keeps its link, and gets the next one")
  func lastingLinks() async throws {
    var plan = Plan(devices: 6)
    plan.bluetooth = Self.bluetooth(stay: 1)
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"door","connect":"always"},"# + plan.entries
    try await withFixture(plan) { fixture in
      let online = try await fixture.online("door")
      // The others take turns with the links that are left.
      for device in 1..<6 {
        let id = try await fixture.id(device)
        let mark = try await fixture.online(id).number
        let turn = try await fixture.message("\(id)/info", after: mark) { $0.text.contains(#""turn":"#) }
        try await fixture.message("\(id)/info", after: turn.number) { $0.text.contains("connected_since") }
      }
      let sequence = try fixture.observer.messages(on: "microbit/door/readings", after: online.number)
        .compactMap { try? $0.json()["sequence"]?.int }
      let first = try #require(sequence.first)
      #expect(sequence == Array(first..<(first + sequence.count)))
      let infos = try fixture.observer.messages(on: "microbit/door/info", after: online.number)
      #expect(infos.allSatisfy { $0.text.contains("connected_since") && !$0.text.contains("turn") })
    }
  }

  @Test("A visit waits in the same queue, and gets the only link in its turn")
  func visits() async throws {
    var plan = Plan(devices: 2)
    plan.bluetooth = #""links": 1, "stay": 1"#
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"meter","connect":"on_demand","every":5},"#
      + plan.entries
    try await withFixture(plan) { fixture in
      let other = try await fixture.id(1)
      let mark = try await fixture.online(other).number
      let first = try await fixture.online("meter").number
      var last = first
      for _ in 1...2 {
        last = try await fixture.message("meter/info", after: last) { $0.text.contains(#""turn":"#) }.number
        last = try await fixture.message("meter/readings", after: last).number
        try await fixture.message("\(other)/readings", after: last)
      }
      #expect(try fixture.stayedOnline(other, after: mark) && fixture.stayedOnline("meter", after: first))
    }
  }
}
