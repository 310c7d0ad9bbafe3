import TestSupport
import Testing

/// What the log shows at the level `debug`, and at no other.
@Suite struct DebugLogTests {
  @Test("Readings, commands and answers, from the moment on when it is asked for")
  func atRunTime() async throws {
    try await withHouse { house in
      let id = try await house.id()
      try await house.online(id)
      #expect(try await house.setPeriod(id, "60")["status"]?.string == "applied")
      #expect(try house.lines(with: " debug ").isEmpty)

      try await house.done("log_level", #"{"level":"debug"}"#)
      let reading = try await house.gateway.line(within: House.patience) { $0.contains("gateway: reading") }
      #expect(reading.contains(/reading device=[0-9a-f]{12} property=temperature value=-?\d+ sequence=\d+$/))
      #expect(
        try await house.setPeriod(id, #"{"value":70,"transaction":"t-1"}"#)["status"]?.string == "applied")
      try await house.logged(
        #"gateway: received topic=microbit/\#(id)/period/set payload="{\"value\":70,\"transaction\":\"t-1\"}""#
      )
      try await house.logged(
        #"gateway: replied topic=microbit/\#(id)/period/result payload="{\"status\":\"applied\""#)
      // Of a long payload the beginning only.
      let long = #"{"transaction":""# + String(repeating: "x", count: 3000) + #""}"#
      _ = try await house.request("devices", long)
      try await house.logged("request/devices")
      #expect(try house.lines(with: "request/devices").allSatisfy { $0.utf8.count < 300 })

      try await house.done("log_level", #"{"level":"info"}"#)
      let before = try house.lines(with: " debug ").count
      try await house.moreReadings(id, 5)
      #expect(try house.lines(with: " debug ").count == before)
    }
  }

  @Test("What a micro:bit offers, and what is subscribed to")
  func atStart() async throws {
    var plan = Plan()
    plan.absent = [.gateway]
    try await withHouse(plan) { house in
      try house.startGateway(["--log-level", "debug"])
      let id = try await house.id()
      try await house.online(id)
      for (uuid, flags, property) in [
        ("e95d9250", "read,notify", "temperature"), ("e95d1b25", "read,write", "period"),
        ("00002a26", "read", "-"),
      ] {
        let lines = try house.lines(with: " uuid=\(uuid)")
        #expect(lines.count == 1)
        #expect(lines.first?.contains("characteristic device=\(id) service=") == true)
        #expect(lines.first?.hasSuffix(" flags=\(flags) property=\(property)") == true, "\(lines)")
      }
      try await house.logged("mqtt: subscribed to microbit/\(House.bridge)/request/#")
      try await house.logged("mqtt: subscribed to microbit/\(id)/+/set")
    }
  }
}
