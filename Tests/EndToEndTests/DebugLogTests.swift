import TestSupport
import Testing

/// What is logged at the level `debug` only.
@Suite struct DebugLogTests {
  @Test("At the level debug, readings, commands, replies, characteristics and subscriptions are logged")
  func levels() async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      try fixture.startGateway(["--log-level", "debug"])
      let id = try await fixture.id()
      try await fixture.online(id)
      for (uuid, flags, property) in [
        ("e95d9250", "read,notify", "temperature"), ("e95d1b25", "read,write", "period"),
        ("00002a26", "read", "-"),
      ] {
        try await fixture.logged(" uuid=\(uuid)")
        let lines = try fixture.lines(with: " uuid=\(uuid)")
        #expect(lines.count == 1)
        #expect(lines.first?.contains("characteristic device=\(id) address=") == true)
        #expect(lines.first?.hasSuffix(" flags=\(flags) property=\(property)") == true, "\(lines)")
      }
      try await fixture.logged("mqtt: subscribed to microbit/\(fixture.bridge)/request/#")
      try await fixture.logged("mqtt: subscribed to microbit/\(id)/+/set")

      // The level can be changed at run time.
      #expect(try await fixture.perform("log_level", #"{"level":"info"}"#)["level"]?.string == "info")
      // What is logged before it has arrived when it has.
      func refuse(_ id: String) async throws {
        _ = try await fixture.refusal("device/remove", #"{"id":"\#(id)"}"#)
        try await fixture.logged("no device is called \(id)")
      }
      try await refuse("nobody")
      let before = try fixture.lines(with: " debug ").count
      try await fixture.moreReadings(id, 5)
      #expect(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
      try await refuse("none")
      #expect(try fixture.lines(with: " debug ").count == before)

      try await fixture.perform("log_level", #"{"level":"debug"}"#)
      let reading = try await fixture.gateway.line(within: Fixture.patience) {
        $0.contains("gateway: reading")
      }
      #expect(
        reading.contains(
          /reading device=[0-9a-f]{12} address=[0-9A-F:]{17} property=temperature value=-?\d+ sequence=\d+$/))
      #expect(
        try await fixture.setPeriod(id, #"{"value":70,"transaction":"t-1"}"#)["status"]?.string == "applied")
      try await fixture.logged(
        #"gateway: received topic=microbit/\#(id)/period/set payload="{\"value\":70,\"transaction\":\"t-1\"}""#
      )
      try await fixture.logged(
        #"gateway: replied topic=microbit/\#(id)/period/result payload="{\"status\":\"applied\""#)
      // Long payloads are truncated.
      let long = #"{"transaction":""# + String(repeating: "x", count: 3000) + #""}"#
      _ = try await fixture.request("devices", long)
      try await fixture.logged("request/devices")
      #expect(try fixture.lines(with: "request/devices").allSatisfy { $0.utf8.count < 300 })
    }
  }
}
