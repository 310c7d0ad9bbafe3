import TestSupport
import Testing

/// What `inspect` shows, and the limits of what it reads.
extension TerminalTests {
  @Test("inspect shows the services of a micro:bit and of another peripheral", arguments: [true, false])
  func inspect(hasGateway: Bool) async throws {
    try await withDevice(hasGateway: hasGateway) { fixture, device in
      let (status, text) = try await fixture.command(["inspect", device.address])
      #expect(status == 0)
      #expect(text.hasPrefix(device.address) && text.contains("profile microbit: fits"), "\(text)")
      #expect(text.contains(#/read,notify +temperature +-?\d+ °C/#), "\(text)")
      #expect(text.contains(#"2.1.1""#), "\(text)")
      let decoy = try await fixture.simulator.devices()[1]
      let other = try await fixture.command(["inspect", decoy.address, "--json"])
      #expect(other.status == 0 && other.text.contains(#""fits": false"#), "\(other.text)")
      // Its link is ended; that of the gateway's device is not.
      try await fixture.simulator.waitUntil(1, "it is disconnected") { !$0.isConnected }
      #expect(try await fixture.simulator.device(0).isConnected == hasGateway)
    }
  }

  private static let station = #"""
    {"name":"Station","manufacturer_data":{"0x004c":"0215"},"service_data":{"fe95":"30"},"advertises":["181a"],
     "services":[{"uuid":"181a","characteristics":[{"uuid":"2a6e","flags":["read","notify"],"value":"d007",
       "descriptors":[{"uuid":"2901","value":"4f757473696465"},{"uuid":"2904","value":"0efe2f27010000"},
                      {"uuid":"2906","value":"0102"}]}]}]}
    """#

  @Test("inspect shows descriptors, scan the advertised data", arguments: [true, false])
  func descriptors(hasGateway: Bool) async throws {
    var plan = Self.plan(hasGateway: hasGateway)
    (plan.devices, plan.decoys) = (0, 0)
    plan.files = ["station.json": Self.station]
    plan.absent.insert(.simulator)
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", fixture.folder.path + "/station.json"])
      let address = try await fixture.simulator.device(0).address
      let scan = try await fixture.command(["scan", "--timeout", "5"])
      #expect(
        scan.text.contains("\n    services 181a  manufacturer 0x004c: 0215  service data fe95: 30"),
        "\(scan.text)")
      let json = try await fixture.command(["scan", "--timeout", "5", "--json"])
      #expect(json.text.contains(#""manufacturer_data":{"0x004c":"0215"}"#), "\(json.text)")
      let (status, text) = try await fixture.command(["inspect", address])
      #expect(status == 0)
      #expect(text.contains(#/2a6e +read,notify +- +d007/#), "\(text)")
      #expect(text.contains(#/\n    2901 +"Outside"/#), "\(text)")
      #expect(text.contains(#/\n    2904 +sint16 × 10\^-2, degree Celsius/#), "\(text)")
      #expect(text.contains(#/\n    2906 +0102/#), "\(text)")
      #expect(!text.contains("2902"), "\(text)")
    }
  }

  /// A peripheral with a service that has this many characteristics.
  private static func large(_ count: Int) -> String {
    let characteristic = #"{"uuid":"2a6e","flags":["read"],"value":"01"}"#
    let all = Array(repeating: characteristic, count: count).joined(separator: ",")
    return #"{"name":"Large","services":[{"uuid":"181a","characteristics":[\#(all)]}]}"#
  }

  @Test("inspect reads at most 200 values, and says so")
  func inspectLimit() async throws {
    var plan = Self.plan(hasGateway: false)
    (plan.devices, plan.decoys) = (0, 0)
    plan.files = ["large.json": Self.large(300)]
    plan.absent.insert(.simulator)
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", fixture.folder.path + "/large.json"])
      let (status, text) = try await fixture.command(["inspect", fixture.simulator.device(0).address])
      #expect(status == 0)
      #expect(text.hasSuffix("The other values were not read: 200 values were read"), "\(text.suffix(200))")
      // Two of them are of the GATT service.
      #expect(text.split(separator: "\n").count { $0.hasSuffix("  01") } == 198)
    }
  }

  @Test("A peripheral with 20,000 characteristics is refused, and delays nothing")
  func hugeTable() async throws {
    var plan = Self.plan(hasGateway: true)
    plan.decoys = 0
    plan.files = ["large.json": Self.large(20_000)]
    plan.entries += #",{"match":{"name":"Large"},"id":"large","profile":"large"}"#
    plan.profiles = #"""
      "large":{"properties":{"value":{"service":"181a","characteristic":"2a6e","access":["read"],"type":"uint8"}}}
      """#
    plan.absent.insert(.simulator)
    let started = plan
    try await withThreeAttempts(started) { fixture in
      try await fixture.startSimulator(
        started.simulator + ["--peripheral", fixture.folder.path + "/large.json"])
      let micro = try await fixture.id(0)
      try await fixture.online(micro)
      let slowest = try await deadline(Fixture.patience, "the refusal of the peripheral") {
        var slowest = Duration.zero
        while try !fixture.gateway.text.contains("cannot be used: it has more than 1000") {
          // How long the broker and this process take at the same time, without the gateway.
          async let here = Self.time { try await fixture.observer.synchronize() }
          let whole = try await Self.time { try await fixture.perform("log_level", #"{"level":"info"}"#) }
          slowest = max(slowest, whole - (try await here))
        }
        return slowest
      }
      let devices = try await fixture.perform("devices").array ?? []
      let large = try #require(devices.first { $0["id"]?.string == "large" })
      try #require(large["last_error"]?.string?.contains("more than 1000") == true)
      return slowest < .milliseconds(500)
    }
  }

  private static func time(_ body: @Sendable () async throws -> Void) async throws -> Duration {
    let start = ContinuousClock.now
    try await body()
    return start.duration(to: .now)
  }
}
