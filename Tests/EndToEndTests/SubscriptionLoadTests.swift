import TestSupport
import Testing

/// Subscriptions that fail on many micro:bits at once, and restarts of bluetoothd during a subscription.
@Suite struct SubscriptionLoadTests {
  private static let faults = [
    #""fault":"drop""#, #""fault":"error","code":14"#, #""fault":"silence","ms":200"#,
  ]

  private static func planWithManyDevices(_ method: String) -> Plan {
    var plan = Plan(devices: 30)
    plan.period = 500
    plan.bluetooth = #""notify":"\#(method)""#
    plan.absent = [.gateway]
    return plan
  }

  @Test(
    "If the subscription fails on 30 micro:bits at once, all of them are subscribed to later",
    arguments: faults,
    ["signal", "socket"])
  func allSubscriptionsFail(fault: String, method: String) async throws {
    try await withFixture(Self.planWithManyDevices(method)) { fixture in
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
    "If the subscription by socket fails on 30 micro:bits at once, all of them are polled",
    arguments: faults)
  func allSocketSubscriptionsFail(fault: String) async throws {
    try await withFixture(Self.planWithManyDevices("socket")) { fixture in
      // The first subscription, the gateway's trial, succeeds.
      try await fixture.simulator.control(#"{"op":"subscription","all":true,"skip":1,\#(fault)}"#)
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      let devices = try await fixture.simulator.devices()
      for device in devices { try await fixture.online(device.id) }
      for device in devices { try await fixture.reading(device.id) { $0.sequence >= 4 } }
      #expect(try await fixture.simulator.devices().allSatisfy { $0.armed == 0 && $0.isStuck })
      // It is alive, and nothing was requested that would end it.
      #expect(try await fixture.simulator.control(#"{"op":"counters"}"#)["crashes"]?.int == 0)
      #expect(try await monitor.calls(of: "RemoveDevice") == 0)
    }
  }

  @Test(
    "A micro:bit comes online after bluetoothd restarted during each step of a subscription",
    arguments: ["kill", "term"],
    ["signal", "socket"])
  func restarts(how: String, method: String) async throws {
    var plan = Plan()
    plan.bluetooth = #""notify":"\#(method)""#
    // Slow, so that each restart happens during an operation.
    plan.simulator = ["--attribute-ms", "500"]
    plan.absent = [.gateway]
    let steps =
      ["Connect", "ReadValue", "StartNotify"] + (method == "socket" ? ["StopNotify", "AcquireNotify"] : [])
    try await withFixture(plan) { fixture in
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.startGateway()
      for step in steps {
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
