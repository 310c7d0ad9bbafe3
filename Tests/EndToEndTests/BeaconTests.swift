import TestSupport
import Testing

/// Devices that are only heard.
@Suite struct BeaconTests {
  private static let beacon = "e67a00000000"
  private static let climate = "e67a00000001"
  private static let locked = "e67a00000002"

  /// A frame Eddystone-UID of MakeCode, of group 42.
  private static func uid(_ number: Int) -> String {
    "00ec" + "0000000000000000002a" + "00000000000\(number)"
  }

  private static func data(_ service: String, _ hex: String) -> String {
    #""service":"\#(service)","hex":"\#(hex)""#
  }

  /// The shipped profiles, as members of a configuration's `profiles`.
  static func profiles(offlineAfter: String = "") throws -> String {
    try ["eddystone", "bthome"].map { name in
      let text = String(decoding: try shipped("deploy/profiles/\(name).json"), as: UTF8.self)
      guard let first = text.firstIndex(of: "{"), let last = text.lastIndex(of: "}") else {
        throw Failure("no profile in \(name).json")
      }
      let profile = text[text.index(after: first)..<last]
      return profile.replacing(#""properties""#, with: offlineAfter + #""properties""#, maxReplacements: 1)
    }.joined(separator: ",")
  }

  /// Peripheral 0 is a micro:bit with Eddystone, 1 a sensor with BTHome, 2 one that encrypts.
  private static func plan(offlineAfter: String = "") throws -> Plan {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profiles = try profiles(offlineAfter: offlineAfter)
    plan.entries = """
      {"match":{"service":"feaa"},"profile":"eddystone"},
      {"match":{"service":"fcd2"},"profile":"bthome"}
      """
    func file(_ number: Int, _ service: String, _ hex: String) -> String {
      #"{"address":"E6:7A:00:00:00:0\#(number)","service_data":{"\#(service)":"\#(hex)"}}"#
    }
    plan.files = [
      "0.json": file(0, "feaa", "00ec" + "0000000000000000002a" + "000000000015"),
      "1.json": file(1, "fcd2", "40" + "0001" + "02ca09" + "0161"),
      "2.json": file(2, "fcd2", "41" + "a47266c95f730011223378237214"),
    ]
    return plan
  }

  private static func startSimulator(_ fixture: Fixture) async throws {
    try await fixture.startSimulator(
      (0...2).flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
  }

  private static func advertise(_ fixture: Fixture, _ index: Int, _ service: String, _ hex: String)
    async throws
  {
    try await fixture.simulator.control("advertise", index, data(service, hex))
  }

  @Test("What a beacon advertises is published and announced, each change of it, and nothing connects")
  func values() async throws {
    try await withFixture(try Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      try await fixture.message(
        "\(Self.beacon)/uid", #"{"power":-20,"namespace":"0000000000000000002a","instance":21}"#)
      try await fixture.message("\(Self.climate)/temperature", "25.06")
      try await fixture.message("\(Self.climate)/battery", "97")
      let config = try await fixture.observer.message(
        "homeassistant/device/ble_\(Self.climate)/config", within: Fixture.patience
      ) { $0.text.contains(#""temperature""#) }
      // What it does not advertise is not announced.
      #expect(config.text.contains(#""battery""#) && !config.text.contains(#""humidity""#))
      #expect(!config.text.contains("reconnect"))

      let mark = try fixture.observer.mark
      try await Self.advertise(fixture, 1, "fcd2", "40" + "0002" + "02cb09" + "03bf13" + "3a01")
      _ = try await fixture.observer.message(
        "microbit/\(Self.climate)/temperature", after: mark, within: Fixture.patience
      ) { $0.text == "25.07" }
      try await fixture.message("\(Self.climate)/humidity", "50.55")
      let press = try await fixture.observer.message(
        "microbit/\(Self.climate)/button", after: mark, within: Fixture.patience
      ) { $0.text.contains("press") }
      #expect(!press.retain)
      _ = try await fixture.observer.message(
        "homeassistant/device/ble_\(Self.climate)/config", after: mark, within: Fixture.patience
      ) { $0.text.contains(#""humidity""#) }
      let url = "10e7" + "03" + "6d6963726f6269742e6f7267"
      try await Self.advertise(fixture, 0, "feaa", url)
      try await fixture.message("\(Self.beacon)/url", "https://microbit.org")

      let listed = try #require(try await fixture.listed(Self.beacon))
      #expect(listed["session"]?.string == "listening")
      let encrypted = try #require(try await fixture.listed(Self.locked))
      #expect(encrypted["last_error"]?.string?.contains("encrypted") == true)
      for device in try await fixture.simulator.devices() { #expect(!device.isConnected) }
    }
  }

  @Test("A beacon that is not heard for the configured time is offline, until it is heard again")
  func age() async throws {
    try await withFixture(try Self.plan(offlineAfter: #""offline_after":1,"#)) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      var mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 0)
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/availability", after: mark, within: Fixture.patience
      ) { $0.text == "offline" }
      mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 0)
      try await Self.advertise(fixture, 0, "feaa", "00ec" + "0000000000000000002a" + "000000000015")
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/availability", after: mark, within: Fixture.patience
      ) { $0.text == "online" }
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/uid", after: mark, within: Fixture.patience
      ) { $0.text.contains("21") }
    }
  }

  @Test("A request that needs a link is refused")
  func requests() async throws {
    try await withFixture(try Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      for request in ["reconnect", "pair"] {
        let reason = try await fixture.refusal("device/\(request)", #"{"id":"\#(Self.beacon)"}"#)
        #expect(reason.contains("only heard"), "\(reason)")
      }
    }
  }

  @Test(
    "Of two gateways that hear a beacon the one that hears it better publishes it, until that one is killed")
  func ownership() async throws {
    let profiles = try Self.plan().profiles
    let plans = ["ground", "attic"].map { id in
      var plan = Plan.fixture(id, area: id)
      plan.profiles = profiles
      plan.entries = #"{"match":{"identifier":"\#(Cluster.address)"},"profile":"eddystone","name":"Beacon"}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("strength", 0, #""v":-50"#)
      try await Self.advertise(ground, 0, "feaa", Self.uid(1))
      try await ground.waitForOwnership(of: Cluster.id)
      try await attic.simulator.control("return", 0)
      try await attic.simulator.control("strength", 0, #""v":-80"#)
      try await Self.advertise(attic, 0, "feaa", Self.uid(1))
      // Whichever published first.
      try await attic.message("bridge/attic/devices") { message in
        let device = try? message.json().array?.first
        return device?["last_connected"] != nil && device?["owner"]?.string == "ground"
      }
      let info = try await ground.retained(of: Cluster.id)["\(Cluster.id)/info"]?.json()
      #expect(info?["owner"]?.string == "ground")
      // It is carried upstairs; the mean of some signals counts.
      var mark = try ground.observer.mark
      try await attic.simulator.control("strength", 0, #""v":-30"#)
      for _ in 0..<8 {
        for number in 2...3 { try await Self.advertise(attic, 0, "feaa", Self.uid(number)) }
      }
      try await attic.waitForOwnership(of: Cluster.id, from: "ground", after: mark)
      try await ground.message("\(Cluster.id)/uid", after: mark) { $0.text.contains(#""instance":3"#) }

      mark = try ground.observer.mark
      try await attic.killGateway()
      try await ground.waitForOwnership(of: Cluster.id, from: "attic", after: mark)
      try await Self.advertise(ground, 0, "feaa", Self.uid(4))
      try await ground.message("\(Cluster.id)/uid", after: mark) { $0.text.contains(#""instance":4"#) }
    }
  }
}
