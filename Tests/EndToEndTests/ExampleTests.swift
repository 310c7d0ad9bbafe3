import FoundationEssentials
import TestSupport
import Testing

/// Runs docs/examples.md: each example with its configuration, and with suitable virtual peripherals.
@Suite struct ExampleTests {
  /// The simulated peripherals of an example, and how to trigger its events.
  private struct Setup: Sendable {
    /// The devices that are online before the first step.
    var online: [String]
    var simulator: [String] = []
    var devices = 0
    /// Peripherals with these names, profiles of deploy/profiles, and the addresses E6:7A:00:00:00:01 and following.
    var peripherals: [(name: String, profile: String)] = []
    var events: [String: @Sendable (Fixture) async throws -> Void] = [:]
  }

  private static func keys(_ index: Int, _ hex: String) -> @Sendable (Fixture) async throws -> Void {
    { try await $0.simulator.control("value", index, #""characteristic":"ffe1","hex":"\#(hex)""#) }
  }

  private static func control(_ operation: String) -> @Sendable (Fixture) async throws -> Void {
    { _ = try await $0.simulator.control(operation, 0) }
  }

  private static let setups: [String: Setup] = [
    "A temperature": Setup(
      online: ["window"], simulator: ["--address", "0=C5:A1:B2:C3:D4:E5"], devices: 1),
    "The keys of several SensorTags": Setup(
      online: ["door", "e67a00000002"],
      peripherals: [("SensorTag", "sensortag_keys"), ("SensorTag 2.0", "sensortag_keys")],
      events: [
        "The left key of the first SensorTag is pressed.": keys(0, "02"),
        "Both keys of the second SensorTag are pressed.": keys(1, "03"),
      ]),
    "The remote control of a sound player": Setup(
      online: ["player"], peripherals: [("Sound player", "sound_player")]),
    "A counter": Setup(
      online: ["counter"],
      simulator: ["--profiles-directory", repositoryPath("deploy/profiles"), "--profile", "counter"]),
    "A peripheral from the first scan to the end": Setup(
      online: ["desk"], simulator: ["--address", "0=C5:A1:B2:C3:D4:E5", "--services", "temperature,led"],
      devices: 1,
      events: [
        "The micro:bit goes out of range.": control("vanish"), "The micro:bit returns.": control("return"),
      ]),
  ]

  private static func examples() throws -> [DocumentExample] {
    let text = try String(contentsOfFile: "docs/examples.md", encoding: .utf8)
    return DocumentExample.all(in: text.replacing("living-room", with: Fixture.gatewayID))
  }

  @Test func everyExampleHasASetup() throws {
    #expect(Set(try Self.examples().map(\.title)) == Set(Self.setups.keys))
  }

  @Test(
    "Every example works as documented",
    arguments: [
      "A temperature", "The keys of several SensorTags", "The remote control of a sound player", "A counter",
      "A peripheral from the first scan to the end",
    ])
  func example(title: String) async throws {
    let setup = try #require(Self.setups[title])
    let example = try #require(try Self.examples().first { $0.title == title })
    let configuration = try JSON.parse(example.configuration)
    var plan = Plan(devices: setup.devices)
    plan.simulator = setup.simulator
    plan.entries = try #require(configuration["devices"]).text.dropFirst().dropLast().description
    plan.profiles = configuration["profiles"].map { $0.text.dropFirst().dropLast().description } ?? ""
    plan.profilesDirectory = configuration["profiles_directory"]?.string.map(repositoryPath)
    for (index, peripheral) in setup.peripherals.enumerated() {
      let profile = try JSON.parse(shipped("deploy/profiles/\(peripheral.profile).json"))
      plan.files["\(index).json"] = """
        {"name":"\(peripheral.name)","address":"E6:7A:00:00:00:0\(index + 1)",
         "profile":\(try #require(profile[peripheral.profile]).text)}
        """
    }
    if !setup.peripherals.isEmpty { plan.absent = [.simulator] }
    try await withFixture(plan) { fixture in
      if !setup.peripherals.isEmpty {
        try await fixture.startSimulator(
          setup.peripherals.indices.flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
      }
      for id in setup.online { try await fixture.online(id) }
      for step in example.steps { try await Self.run(step, in: fixture, setup) }
    }
  }

  private static func run(_ step: DocumentExample.Step, in fixture: Fixture, _ setup: Setup) async throws {
    switch step {
    case .exchange(let exchange):
      try await exchange.run(in: fixture) { event in
        guard let trigger = setup.events[event] else { throw Failure("no trigger for the event: \(event)") }
        try await trigger(fixture)
      }
    case .command(let command, let output):
      let words = command.split(separator: " ").dropFirst().map(String.init)
      let (_, text) = try await fixture.command(words)
      let pattern = output.joined(separator: "\n")
      #expect(DocumentExample.matches(text, pattern), "\(command) printed:\n\(text)")
    }
  }
}
