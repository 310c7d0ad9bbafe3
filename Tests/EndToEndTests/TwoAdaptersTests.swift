import TestSupport
import Testing

/// One gateway with two adapters.
@Suite struct TwoAdaptersTests {
  @Test("scan names the adapter that it would use, if that is not the configured one")
  func onlyAdapterIsOff() async throws {
    try await withFixture(Plan(simulator: ["--adapters", "2"], absent: [.gateway, .observer])) { fixture in
      try await fixture.simulator.control(#"{"op":"plug","on":false}"#)
      try await fixture.simulator.control(#"{"op":"power","adapter":1,"on":false}"#)
      let (status, text) = try await fixture.command(["scan", "--timeout", "1"])
      #expect(status == 69 && text.contains("the adapter hci1 is off"), "\(text)")
    }
  }

  private static let plan = Plan(
    simulator: ["--adapters", "2"], bluetooth: #""adapters": ["hci0", "hci1"]"#, absent: [.gateway])

  @Test("Without the state database, doctor and scan take the adapter that the gateway has locked")
  func renamedAdapterIsFound() async throws {
    try await withFixture(Plan(simulator: ["--adapters", "2"], absent: [.gateway])) { fixture in
      try await fixture.simulator.control(#"{"op":"plug","on":false}"#)
      // Nobody has chosen a name: the only adapter is used as hci0, and its address is stored.
      try fixture.startGateway()
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      #expect(try await fixture.stopGateway() == 0)
      let named = fixture.configuration(fixture.plan.entries)
        .replacing(#""bluetooth": {"#, with: #""bluetooth": {"adapters": ["hci0"], "#)
      try fixture.folder.write(named, to: "config.json")
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.online(device.id, after: mark)
      let environment = fixture.environment.merging(["STATE_DIRECTORY": fixture.folder.path + "/none"]) { $1 }
      func text(of command: [String]) async throws -> String {
        let process = try ChildProcess(
          try program("microbit-gateway"), command + ["--config", fixture.folder.path + "/config.json"],
          environment: environment)
        try await process.exitStatus(within: Fixture.patience)
        return process.text
      }
      let doctor = try await text(of: ["doctor"])
      #expect(doctor.contains("is on, and used as hci0"), "\(doctor)")
      let scan = try await text(of: ["scan", "--timeout", "1"])
      #expect(scan.contains(device.address), "\(scan)")
    }
  }

  /// Waits until the list of devices names this adapter, after `mark`.
  private static func wait(for adapter: String, in fixture: Fixture, after mark: Int = 0) async throws {
    try await fixture.message("bridge/\(fixture.plan.id)/devices", after: mark) { message in
      (try? message.json())?.array?.first?["adapter"]?.string == adapter
    }
  }

  @Test("The adapter with the best signal connects; when it is unplugged, the other one takes over")
  func adapterIsUnplugged() async throws {
    try await withFixture(Self.plan) { fixture in
      let simulator = try fixture.simulator
      try await simulator.control("strength", 0, #""adapter":0,"v":-80"#)
      try await simulator.control("strength", 0, #""adapter":1,"v":-50"#)
      try fixture.startGateway()
      let id = try await fixture.id()
      try await fixture.online(id)
      try await Self.wait(for: "hci1", in: fixture)
      #expect(try await simulator.device(0).adapter == 1)
      try await fixture.message("bridge/\(fixture.plan.id)/info") { message in
        let adapters = (try? message.json())?["adapters"]?.array
        return adapters?.map { $0["name"]?.string } == ["hci0", "hci1"]
          && adapters?.allSatisfy { $0["state"]?.string == "on" } == true
      }

      let mark = try fixture.observer.mark
      try await simulator.control(#"{"op":"plug","adapter":1,"on":false}"#)
      let offline = try await fixture.offline(id, after: mark)
      let online = try await fixture.online(id, after: offline.number)
      try await fixture.reading(id, after: online.number) { _ in true }
      try await Self.wait(for: "hci0", in: fixture, after: mark)
      let health = try await fixture.perform("health")
      #expect(health["healthy"]?.bool == false)
      #expect(health["problems"]?.array?.map { $0.string } == ["there is no Bluetooth adapter hci1"])
      #expect(health["adapters"]?.array?.map { $0["state"]?.string } == ["on", "absent"])

      let state = try await fixture.perform("adapter/state", #"{"adapter":"hci1"}"#)
      #expect(state["state"]?.string == "absent")
      for request in ["adapter/state", "adapter/reset"] {
        #expect(try await fixture.refusal(request).contains("uses hci0 and hci1: name one of them"))
      }

      // The adapter is back: it scans again, and the link is not moved to it.
      let back = try fixture.observer.mark
      try await simulator.control(#"{"op":"plug","adapter":1,"on":true}"#)
      try await fixture.message("bridge/\(fixture.plan.id)/info", after: back) { message in
        (try? message.json())?["adapters"]?.array?.allSatisfy { $0["state"]?.string == "on" } == true
      }
      let sent = try await simulator.device(0).sent
      try await simulator.waitUntil(0, hasSent: sent + 40)
      #expect(try await simulator.device(0).adapter == 0)
      #expect(try fixture.observer.messages(on: "microbit/\(id)/availability", after: back).isEmpty)
    }
  }
}
