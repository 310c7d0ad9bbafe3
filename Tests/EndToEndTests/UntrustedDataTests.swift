import TestSupport
import Testing

/// Names and values that peripherals send are untrusted.
@Suite struct UntrustedDataTests {
  private static let forged = "BBC micro:bit\n12:00:00.000 error gateway: forged"

  /// D-Bus carries neither invalid UTF-8 nor NUL, so bluetoothd passes on neither.
  private static let names = [
    "BBC micro:bit [a/b+c#]", "BBC micro:bit/../../bridge/fixture/state", forged,
    "BBC micro:bit" + String(repeating: "x", count: 235), "BBC micro:bit \u{202E}\u{1B}[31m\u{7}\r\t",
    #"BBC micro:bit "\",\"name\":1} device=forged"#, "BBC micro:bit é日本🙂\u{FFFE}",
  ]

  @Test("Hostile names are published as valid JSON, and forge neither topics nor log lines")
  func names() async throws {
    var plan = Plan(devices: Self.names.count)
    plan.simulator = Self.names.enumerated().flatMap { ["--name", "\($0)=\($1)"] }
    try await withFixture(plan) { fixture in
      let devices = try await fixture.simulator.devices()
      try #require(devices.map(\.name) == Self.names)
      for device in devices {
        try await fixture.online(device.id)
        let info = try await fixture.message("\(device.id)/info") { $0.text.contains("connected_since") }
          .json()
        try #require(info["name"]?.string == device.name)
        let result = try await fixture.setPeriod(device.id, "60")
        try #require(result["status"]?.string == "applied")
      }
      let known = Set(devices.map(\.id))
      try #require(try fixture.deviceIDs == known)
      let listing = try await fixture.message("bridge/\(Fixture.gatewayID)/devices") { message in
        let names = (try? message.json())?.array?.compactMap { $0["name"]?.string }
        return Set(names ?? []) == Set(Self.names)
      }
      try #require(listing.retain == false)
      let line = /\d\d:\d\d:\d\d\.\d{3} (debug|info|notice|warning|error) [a-z]+: [^\x00-\x1F\x7F\u202E]*/
      for text in try fixture.gateway.text.split(separator: "\n", omittingEmptySubsequences: false) {
        try #require(text.wholeMatch(of: line) != nil, "\(text)")
      }
      try #require(try !fixture.lines(with: "forged").isEmpty)
      try #require(try fixture.lines(with: "error gateway: forged").allSatisfy { $0.contains(#"\n12:00"#) })
    }
  }

  @Test("Values of the wrong length are logged once and counted; the next valid value is a reading")
  func wrongLength() async throws {
    try await withFixture(Plan(devices: 2, period: 20)) { fixture in
      let id = try await fixture.id(0)
      try await fixture.online(id)
      try await fixture.simulator.control("temp", 0, #""v":41"#)
      let before = try await fixture.reading(id) { $0.value == 41 }
      var last = before
      for (hex, value) in [("0102", 42), ("", 43), ("000102030405060708090a0b0c0d0e0f10111213", 44)] {
        let sent = try await fixture.simulator.control("value", 0, #""hex":"\#(hex)""#).sent
        try await fixture.simulator.waitUntil(0, hasSent: sent + 1)
        try await fixture.simulator.control("temp", 0, #""v":\#(value)"#)
        try await fixture.simulator.control("value", 0)
        last = try await fixture.reading(id) { $0.value == value }
      }
      // Nothing else was published, and nothing was counted as a reading.
      let after = last
      let readings = try fixture.readings(id).filter {
        (before.message.number...after.message.number).contains($0.message.number)
      }
      try #require(readings.allSatisfy { (41...44).contains($0.value) })
      try #require(readings.map(\.sequence) == Array(before.sequence...after.sequence))
      let values = try fixture.observer.messages(on: "microbit/\(id)/temperature").map(\.text)
      try #require(Set(values.drop { $0 != "41" }) == ["41", "42", "43", "44"])
      // The link was kept.
      try #require(try fixture.observer.messages(on: "microbit/\(id)/availability").last?.text == "online")
      let lines = try fixture.lines(with: "malformed value of temperature")
      try #require(lines.count == 1)
      try #require(lines[0].contains("expected 1 byte, got 2") && lines[0].contains("01 02"), "\(lines)")
      // Any change to the info publishes the counters, too.
      let mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 1)
      try await fixture.message("bridge/\(Fixture.gatewayID)/info", after: mark) {
        (try? $0.json())?["counters"]?["malformed"]?.int ?? 0 >= 3
      }
    }
  }
}
