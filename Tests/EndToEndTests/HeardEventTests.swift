import Glibc
import TestSupport
import Testing

/// Events of devices that are only heard are told once.
@Suite struct HeardEventTests {
  private static let words = ["press", "double_press", "triple_press", "long_press"]

  /// A button with BTHome that counts its frames.
  private static func plan(_ id: String, in folder: TemporaryFolder) throws -> Plan {
    try folder.write(
      #"{"address":"\#(Cluster.address)","service_data":{"fcd2":"440161"}}"#, to: "button.json")
    var plan = Plan(
      id: id, devices: 0,
      entries: #"{"match":{"identifier":"\#(Cluster.address)"},"profile":"bthome","name":"Button"}"#)
    plan.profilesDirectory = repositoryPath("deploy/profiles")
    plan.simulator = ["--peripheral", folder.path + "/button.json"]
    return plan
  }

  private static func word(_ press: Int) -> String { words[press % words.count] }

  /// Press number `press` is on the air near this gateway, until another one is.
  private static func press(_ press: Int, near fixture: Fixture) async throws {
    let id = UInt8(truncatingIfNeeded: press)
    let hex = [0x44, 0x00, id, 0x3A, UInt8(press % words.count + 1)]
      .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try await fixture.simulator.control("advertise", 0, #""service":"fcd2","hex":"\#(hex)""#)
  }

  /// Waits until this press was told.
  private static func told(_ press: Int, _ fixture: Fixture, after mark: Int) async throws {
    try await fixture.message("\(Cluster.id)/button", after: mark) { $0.text.contains(#""\#(word(press))""#) }
  }

  /// The words of all presses that were told; when the device is removed, its topics are cleared.
  private static func told(_ fixture: Fixture) throws -> [String?] {
    try fixture.observer.messages(on: "microbit/\(Cluster.id)/button").filter { !$0.payload.isEmpty }.map {
      try $0.json()["event_type"]?.string
    }
  }

  @Test("A press that is still on the air is told once, whatever is restarted or set meanwhile")
  func onceWhateverIsRestarted() async throws {
    let folder = try TemporaryFolder()
    try await withFixture(Self.plan("ground", in: folder)) { fixture in
      try await fixture.online(Cluster.id)
      let number = Counter()
      func press(_ what: String) async throws {
        let mark = try fixture.observer.mark
        try await Self.press(number.next(), near: fixture)
        try await Self.told(number.last, fixture, after: mark)
        // A gateway that is killed between the event and its `info` tells the event again.
        try await fixture.message("\(Cluster.id)/info", after: mark) {
          (try? $0.json()["told"]?.array?.last?["packet"]?.int) == number.last
        }
        let told = try Self.told(fixture)
        #expect(told == (1...number.last).map(Self.word), "after \(what)")
      }
      func restarts(_ end: () async throws -> Void) async throws {
        let mark = try fixture.observer.mark
        try await end()
        try fixture.startGateway()
        try await fixture.online(Cluster.id, after: mark)
      }
      try await press("nothing")
      try await restarts { _ = try await fixture.stopGateway() }
      try await press("a restart")
      try await restarts {
        try await fixture.killGateway()
      }
      try await press("a kill")
      for entry in [#""area":"Hall""#, #""properties":["button","battery"]"#] {
        let mark = try fixture.observer.mark
        try fixture.configure(entries: fixture.plan.entries.dropLast() + ",\(entry)}")
        try fixture.gateway.signal(SIGHUP)
        try await fixture.message("\(Cluster.id)/info", after: mark)
        try await press(entry)
      }
      let mark = try fixture.observer.mark
      _ = try await fixture.perform("device/remove", #"{"id":"\#(Cluster.id)"}"#)
      _ = try await fixture.perform("device/add", #"{"identifier":"\#(Cluster.address)"}"#)
      try await fixture.online(Cluster.id, after: mark)
      try await press("remove and add")
      try await fixture.simulator.control(#"{"op":"restart","how":"kill","ms":50}"#)
      try await press("a restart of bluetoothd")
    }
  }

  private final class Counter: @unchecked Sendable {
    // @unchecked: used by one task.
    private(set) var last = 0
    func next() -> Int {
      last += 1
      return last
    }
  }

  @Test(
    "A button carried between gateways: each of a hundred presses is told once, in order", arguments: [2, 3])
  func carried(gateways: Int) async throws {
    let folder = try TemporaryFolder()
    let plans = try ["attic", "garden", "ground"].prefix(gateways).map { try Self.plan($0, in: folder) }
    let seed = UInt64.random(in: 1...1_000_000)
    print("HeardEventTests: seed \(seed)")
    try await withCluster(plans) { cluster in
      var random = SplitMix64(state: seed)
      let observer = cluster[0]
      for fixture in cluster.fixtures {
        try await fixture.simulator.control("return", 0)
        try await fixture.message("bridge/\(fixture.plan.id)/devices") {
          (try? $0.json().array?.first)?["heard_per_minute"] != nil || $0.text.contains("last_connected")
        }
      }
      for number in 1...100 {
        let mark = try observer.observer.mark
        // Near one of them; each of the others hears it at once, later, or not at all.
        let near = number / 10 % gateways
        let others = (0..<gateways).filter { $0 != near && Bool.random(using: &random) }
        let order = ([near] + others).shuffled(using: &random)
        for gateway in order {
          try await Self.press(number, near: cluster[gateway])
          if Bool.random(using: &random) {
            try await Task.sleep(for: .milliseconds(Int.random(in: 1...60, using: &random)))
          }
        }
        try await Self.told(number, observer, after: mark)
        for gateway in order { try await cluster[gateway].synchronizeGateway() }
      }
      let told = try Self.told(observer)
      #expect(told == (1...100).map(Self.word))
    }
  }
}
