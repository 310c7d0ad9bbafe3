import Testing

/// Subscriptions that fail on many micro:bits at once, and restarts of bluetoothd during a subscription.
@Suite struct SubscriptionLoadTests {
  private static let faults = [
    #""fault":"drop""#, #""fault":"error","code":14"#, #""fault":"silence","ms":200"#,
  ]

  @Test(
    "If the subscription fails on 30 micro:bits at once, all of them are subscribed to later",
    arguments: faults)
  func allSubscriptionsFail(fault: String) async throws {
    try await withFixture(Plan(devices: 30, period: 500, absent: [.gateway])) { fixture in
      try await fixture.simulator.control(#"{"op":"subscription","all":true,\#(fault)}"#)
      try fixture.startGateway()
      let devices = try await fixture.simulator.devices()
      for device in devices { try await fixture.online(device.id) }
      for device in devices { try await fixture.reading(device.id) { $0.sequence >= 4 } }
      let after = try await fixture.simulator.devices()
      #expect(after.allSatisfy { $0.armed == 0 && $0.isNotifying && !$0.isStuck })
    }
  }

  @Test(
    "A micro:bit comes online after bluetoothd restarted during each step of a subscription",
    arguments: ["kill", "term"])
  func restarts(how: String) async throws {
    var plan = Plan()
    // Slow, so that each restart happens during an operation.
    plan.simulator = ["--attribute-ms", "500"]
    plan.absent = [.gateway]
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      for step in ["Connect", "ReadValue", "StartNotify"] {
        try await monitor.called(step)
        try await fixture.simulator.control(#"{"op":"restart","how":"\#(how)","ms":50}"#)
      }
      let mark = try fixture.observer.mark
      let id = try await fixture.id()
      try await fixture.online(id, after: mark)
      try await fixture.moreReadings(id, 5)
      let device = try await fixture.simulator.device(0)
      #expect(device.isNotifying && !device.isStuck)
      #expect(try await fixture.simulator.control(#"{"op":"counters"}"#)["crashes"]?.int == 0)
    }
  }
}
