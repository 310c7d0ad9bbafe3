import EventLoop
import Glibc
import Store
import TestSupport
import Testing

/// Whoever may publish at the broker neither ends the gateway nor makes it large or slow.
@Suite struct HostileMessagesTests {
  // MARK: Traps

  /// An `info` of a gateway that is online, for a device that this one has.
  private static func info(_ owner: String, _ address: String, _ more: String) -> String {
    #"{"identifier":"\#(address)","owner":"\#(owner)","last_connected":"2999-01-01T00:00:00.000Z","#
      + #""connected_since":"2999-01-01T00:00:00.000Z",\#(more)}"#
  }

  @Test(
    "What another gateway says of a device is left out where it is wrong",
    arguments: [
      ##""values":{"+":{"name":"x"}}"##, ##""values":{"a/#":{"name":"x"}}"##,
      ##""values":{"a\u0000":{"name":"x"}}"##, ##""values":{"":{"name":"x"}}"##,
      ##""properties":["+","a/#","","a\u0000","values/#"]"##,
      #""rssi":9223372036854775807,"revision":9223372036854775807"#,
      #""rssi":-9223372036854775808,"revision":-9223372036854775808"#,
      ##""desired":{"+":1,"period":9223372036854775807},"configured":["#/"]"##,
    ])
  func ownedElsewhere(more: String) async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      let observer = try fixture.observer
      try await observer.publish("microbit/bridge/attic/state", "online", retain: true)
      try await observer.publish(
        "microbit/\(device.id)/info", Self.info("attic", device.address, more), retain: true)
      for _ in 1...2 {
        let mark = observer.mark
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: mark)
        try await fixture.simulator.waitUntil(0, "it is connected") { $0.isConnected }
        try await observer.publish(
          "microbit/\(device.id)/info", Self.info("attic", device.address, more), retain: true)
        try await fixture.synchronizeGateway()
        #expect(try await fixture.stopGateway() == 0)
      }
    }
  }

  @Test("A strength that no receiver can have does not end a gateway that hears the device")
  func strength() async throws {
    var plan = Plan(devices: 0)
    plan.profilesDirectory = repositoryPath("deploy/profiles")
    plan.entries = #"{"match":{"service":"fcd2"},"profile":"bthome","id":"shed"}"#
    plan.files = [
      "0.json": #"{"address":"E6:7A:00:00:00:00","service_data":{"fcd2":"40000102ca090161"}}"#
    ]
    plan.absent = [.simulator, .gateway]
    try await withFixture(plan) { fixture in
      let observer = try fixture.observer
      try await observer.publish("microbit/bridge/attic/state", "online", retain: true)
      for rssi in [Int.max, Int.max - 5, Int.min, 128] {
        try await observer.publish(
          "microbit/shed/info", Self.info("attic", "E6:7A:00:00:00:00", #""rssi":\#(rssi)"#), retain: true)
        if rssi == .max {
          try await fixture.startSimulator(["--peripheral", "\(fixture.folder.path)/0.json"])
          try fixture.startGateway()
          try await fixture.bridgeOnline()
        }
        try await fixture.synchronizeGateway()
      }
      #expect(try await fixture.perform("health")["run"] != nil)
    }
  }

  /// Notes what a run notes that dies of a retained message of the topic.
  @LoopActor private static func die(handling topic: String, _ note: String) {
    CrashNote(path: note).setHandling(topic)
  }

  @Test("After three runs that died of what others retain, the gateway does without it, and says so")
  func crashLoop() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      let observer = try fixture.observer
      try await observer.publish("microbit/bridge/attic/state", "online", retain: true)
      let topic = "microbit/\(device.id)/info"
      func start() async throws {
        try await observer.publish(topic, Self.info("attic", device.address, #""rssi":-60"#), retain: true)
        let mark = observer.mark
        try fixture.startGateway()
        try await fixture.bridgeOnline(after: mark)
      }
      // Kills are no deaths of a message, unless it is being handled just then.
      for _ in 1...4 {
        try await start()
        try await fixture.logged("owned by another gateway")
        try await fixture.synchronizeGateway()
        try await fixture.killGateway()
      }
      let note = "\(fixture.folder.path)/state/\(Fixture.gatewayID).crash"
      for _ in 1...3 { await Self.die(handling: topic, note) }
      let mark = observer.mark
      try await start()
      try await fixture.message("\(device.id)/info", after: mark) {
        $0.text.contains(#""owner":"\#(Fixture.gatewayID)""#)
      }
      let text = "the last 3 runs died while they handled what others have retained"
      try await fixture.logged(text)
      #expect(try fixture.lines(with: "owned by another gateway").isEmpty)
      let problems = try await fixture.perform("health")["problems"]?.array?.compactMap(\.string) ?? []
      #expect(problems.contains { $0.hasPrefix(text) }, "\(problems)")
      #expect(try await fixture.command(["doctor"]).text.contains(text))
      // However it ends, the next one tries again.
      try await fixture.killGateway()
      try await start()
      #expect(try fixture.lines(with: text).isEmpty)
    }
  }

  // MARK: Bounds

  struct Flood: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var more = ""
    /// In KiB, of private memory.
    var most = 32 << 10
    var entries = #"{"match":{"identifier":"E6:7A:00:00:00:01"},"id":"kitchen"}"#
    /// Topics below the base topic and their payloads, one after another.
    let messages: @Sendable () -> [(topic: String, payload: [UInt8])]

    static func names(_ count: Int, _ bytes: Int, _ salt: Int = 0) -> String {
      (0..<count).map { index in
        let name = "p\(salt)_\(index)"
        return "\"\(name)\(String(repeating: "x", count: max(0, bytes - name.count)))\""
      }.joined(separator: ",")
    }

    static func address(_ number: Int) -> String {
      let digits = Array(String(number + 0x100000, radix: 16))
      return "D0:5A:00:"
        + stride(from: 0, to: 6, by: 2).map { String(digits[$0..<$0 + 2]) }.joined(separator: ":")
    }

    static func entries(_ count: Int) -> String {
      (0..<count).map { #"{"match":{"identifier":"\#(address($0))"}}"# }.joined(separator: ",")
    }

    static func fleet(of count: Int, version: Int = 1) -> [UInt8] {
      Array(#"{"version":\#(version),"devices":[\#(entries(count))]}"#.utf8)
    }

    static func info(_ owner: String, _ names: String) -> [UInt8] {
      Array(
        #"{"identifier":"E6:7A:00:00:00:01","owner":"\#(owner)","properties":[\#(names)]}"#.utf8)
    }
  }

  private static let floods = [
    Flood(testDescription: "ten info of 1.6 MB that name this gateway") {
      (0..<10).map { ("far-\($0)/info", Flood.info(Fixture.gatewayID, Flood.names(80_000, 17, $0))) }
    },
    Flood(testDescription: "200 info of 60 kB that name this gateway") {
      (0..<200).map { ("far-\($0)/info", Flood.info(Fixture.gatewayID, Flood.names(900, 60, $0))) }
    },
    Flood(testDescription: "ten info of 0.5 MB of a device here, each with other names") {
      (0..<10).map { ("kitchen/info", Flood.info("attic", Flood.names(20_000, 20, $0))) }
    },
    Flood(testDescription: "50 info of 60 kB of a device here, each with other names") {
      (0..<50).map { ("kitchen/info", Flood.info("attic", Flood.names(900, 60, $0))) }
    },
    Flood(testDescription: "a fleet of 14,000 addresses", more: #""fleet": true"#) {
      [("fleet/config", Flood.fleet(of: 14_000))]
    },
    // With the devices themselves: a thousand.
    Flood(testDescription: "a fleet of 4,096 addresses", more: #""fleet": true"#, most: 48 << 10) {
      [("fleet/config", Flood.fleet(of: 4096))]
    },
    Flood(testDescription: "a fleet message of small numbers", more: #""fleet": true"#) {
      let numbers = Array(repeating: "1", count: 260_000).joined(separator: ",")
      return [("fleet/config", Array(#"{"version":1,"devices":[\#(numbers)]}"#.utf8))]
    },
    Flood(
      testDescription: "an info with many names for each of 250 devices", most: 8 << 10,
      entries: Flood.entries(250)
    ) {
      (0..<250).map { number in
        let id = Flood.address(number).lowercased().filter { $0 != ":" }
        let info = #"{"owner":"attic","properties":[\#(Flood.names(128, 60, number))]}"#
        return ("\(id)/info", Array(info.utf8))
      }
    },
    Flood(testDescription: "5000 gateways") {
      (0..<5000).map { ("bridge/g\($0)/state", Array("online".utf8)) }
    },
    Flood(testDescription: "requests, commands, states and responses of 2 MB") {
      let large = Array(
        #"{"transaction":[\#(Array(repeating: "1", count: 1_000_000).joined(separator: ","))]}"#.utf8)
      return [
        "bridge/\(Fixture.gatewayID)/request/device/add", "bridge/\(Fixture.gatewayID)/request/health",
        "bridge/\(Fixture.gatewayID)/response/health", "bridge/\(Fixture.gatewayID)/info",
        "bridge/\(Fixture.gatewayID)/state", "bridge/attic/state", "kitchen/availability",
        "kitchen/period/set",
        "all/period/set", "kitchen/period/get", "kitchen/values/a/set",
      ].map { ($0, large) }
    },
  ]

  @Test(
    "Whatever arrives, private memory stays below 32 MiB over the idle figure", .serialized, arguments: floods
  )
  func memory(flood: Flood) async throws {
    var plan = Plan(devices: 0)
    (plan.entries, plan.more) = (flood.entries, flood.more)
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let observer = try fixture.observer
      try fixture.startGateway()
      try await fixture.bridgeOnline()
      try await fixture.synchronizeGateway()
      let idle = try fixture.peakKilobytes
      // Sanitizers keep several times as much (scripts/sanitize).
      let most = flood.most * (getenv("ASAN_OPTIONS") == nil ? 1 : 5)
      // While it runs.
      var unsent = 0
      for (topic, payload) in flood.messages() {
        try await observer.publish("microbit/" + topic, payload, retain: true)
        unsent += payload.count + 500
        // The observer's own queue is bounded.
        if unsent > 1 << 18 {
          try await observer.synchronize()
          unsent = 0
        }
      }
      let begin = ContinuousClock.now
      if !flood.more.isEmpty {
        try await fixture.message("\(fixture.bridge)/info") { $0.text.contains(#""fleet":{"#) }
      }
      try await fixture.synchronizeGateway()
      let live = try fixture.peakKilobytes - idle
      let pause = ContinuousClock.now - begin
      #expect(live < most, "\(live) KiB more, at run time")
      #expect(pause < .seconds(100), "the loop stood still")
      // All at once, at the start.
      _ = try await fixture.stopGateway()
      let mark = observer.mark
      try fixture.startGateway()
      try await fixture.bridgeOnline(after: mark)
      try await fixture.synchronizeGateway()
      let start = try fixture.peakKilobytes - idle
      #expect(start < most, "\(start) KiB more, at the start")
      print("\(flood.testDescription): \(live) KiB, \(start) KiB, \(pause)")
    }
  }

  @Test("The time that a fleet message takes does not grow with the square of its length")
  func fleetTime() async throws {
    try await withFixture(Plan(devices: 0, more: #""fleet": true"#)) { fixture in
      try await fixture.bridgeOnline()
      func time(_ count: Int, version: Int) async throws -> Duration {
        let (mark, begin) = (try fixture.observer.mark, try fixture.processorTime)
        try await fixture.observer.publish(
          "microbit/fleet/config", Flood.fleet(of: count, version: version), retain: true)
        try await fixture.message("\(fixture.bridge)/info", after: mark) {
          (try? $0.json())?["fleet"]?["version"]?.int == version
        }
        try await fixture.synchronizeGateway()
        return try fixture.processorTime - begin
      }
      // The first message makes the thousand devices there can be; the later ones only name them again.
      _ = try await time(1024, version: 1)
      let quarter = try await time(1024, version: 2)
      let whole = try await time(4096, version: 3)
      #expect(whole < quarter * 6)
      print("a fleet of 1,024 addresses: \(quarter); of 4,096: \(whole)")
    }
  }
}

extension Fixture {
  /// What the gateway has used so far, which hardly depends on what else the machine does.
  fileprivate var processorTime: Duration {
    get throws {
      var (clock, time) = (clockid_t(), timespec())
      guard clock_getcpuclockid(try gateway.pid, &clock) == 0, clock_gettime(clock, &time) == 0 else {
        throw Failure("the processor time of the gateway: errno \(errno)")
      }
      return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
  }
}
