import TestSupport
import Testing

/// Invalid period commands: rejected with a reason, and without any other effect.
@Suite struct BadPeriodTests {
  private static let payloads: [(name: String, payload: [UInt8], reason: String)] = [
    ("empty", [], "empty"),
    ("blank", Array(" \n".utf8), "empty"),
    ("abc", Array("abc".utf8), "abc"),
    ("negative", Array("-1".utf8), "-1"),
    ("zero", Array("0".utf8), "below"),
    ("too small", Array("19".utf8), "19 is below the smallest period, 20 ms"),
    ("too large", Array("65536".utf8), "above"),
    ("exponent", Array("1e3".utf8), "1e3"),
    ("fraction", Array("1.5".utf8), "1.5"),
    ("hexadecimal", Array("0x10".utf8), "0x10"),
    ("plus", Array("+5".utf8), "+5"),
    ("leading zero", Array("007".utf8), "007"),
    ("beyond Int", Array("99999999999999999999999999".utf8), "above"),
    ("two numbers", Array("100 200".utf8), "100 200"),
    ("NUL", Array("100\0".utf8), "100"),
    ("invalid UTF-8", [0xFF, 0xFE, 0xC0, 0x80], "not a whole number"),
    ("text in JSON", Array(#""100""#.utf8), "100"),
    ("null", Array("null".utf8), "null"),
    ("array", Array("[100]".utf8), "[100]"),
    ("value of a wrong type", Array(#"{"value":"100"}"#.utf8), "value"),
    ("value missing", Array("{}".utf8), "value"),
    ("unknown key", Array(#"{"value":100,"colour":1}"#.utf8), "colour"),
    ("wrong transaction", Array(#"{"value":100,"transaction":7}"#.utf8), "transaction"),
    ("truncated", Array(#"{"value":100"#.utf8), "JSON"),
    ("invalid UTF-8 in JSON", Array(#"{"value":100,"transaction":""#.utf8) + [0xFF] + Array(#""}"#.utf8), ""),
    (
      "10 kB of transaction",
      Array(#"{"value":100,"transaction":"\#(String(repeating: "t", count: 10_000))"}"#.utf8), ""
    ),
    ("deep", Array(repeating: UInt8(ascii: "["), count: 4000), ""),
  ]

  @Test("Every invalid payload is rejected with a reason; nothing is written, other devices are unaffected")
  func invalidPayloadIsRejected() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let id = try await fixture.id(0)
      let other = try await fixture.id(1)
      try await fixture.online(id)
      try await fixture.online(other)
      try await fixture.message("\(id)/period", "50")
      let monitor = try await BusMonitor(fixture.bus)
      for (name, payload, reason) in Self.payloads {
        try await fixture.publish("microbit/\(id)/period/set", payload, correlation: name)
        let json = try await fixture.reply(to: name).json()
        try #require(json["status"]?.string == "rejected", "\(name)")
        let text = try #require(json["reason"]?.string)
        try #require(text.contains(reason) && (1...300).contains(text.count), "\(name): \(text)")
        try #require(isTimestamp(json["time"]?.string))
        try #require(json["actual"] == nil && json["requested"] == nil, "\(name)")
      }
      try await fixture.moreReadings(id, 3)
      try await fixture.moreReadings(other, 3)
      try #require(try await fixture.simulator.device(0).period == 50)
      try #require(try fixture.observer.messages(on: "microbit/\(id)/period").map(\.text) == ["50"])
      try #require(try await monitor.calls(of: "WriteValue") == 0)
      // Each rejection is also published on the result topic, once.
      let results = try fixture.observer.messages(on: "microbit/\(id)/period/result")
      try #require(results.count == Self.payloads.count)
      try #require(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }

  @Test("A rejection includes the transaction if it can be parsed")
  func rejectionIncludesTransaction() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      for payload in [
        #"{"value":0,"transaction":"a1"}"#, #"{"value":70000,"transaction":"a1"}"#,
        #"{"value":100,"colour":1,"transaction":"a1"}"#, #"{"transaction":"a1"}"#,
      ] {
        let json = try await fixture.setPeriod(id, payload)
        try #require(json["status"]?.string == "rejected")
        try #require(json["transaction"]?.string == "a1", "\(payload)")
      }
    }
  }

  @Test("A payload of a megabyte of digits is rejected")
  func megabyte() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let digits = Array(repeating: UInt8(ascii: "7"), count: 1_000_000)
      try await fixture.publish("microbit/\(id)/period/set", digits, correlation: "digits")
      let json = try await fixture.reply(to: "digits").json()
      try #require(json["status"]?.string == "rejected")
      try #require(json["reason"]?.string?.contains("1000000") == true)
      try await fixture.moreReadings(id, 3)
      try #require(try await fixture.simulator.device(0).period == 50)
      try #require(try await fixture.setPeriod(id, "60")["status"]?.string == "applied")
    }
  }

  @Test("A command for an unknown or read-only property is rejected with the property's name")
  func unknownOrReadOnlyPropertyIsRejected() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      for property in ["temperature", "colour"] {
        try await fixture.observer.publish(
          "microbit/\(id)/\(property)/set", #"{"value":1,"transaction":"t"}"#)
        let json = try await fixture.message("\(id)/\(property)/result").json()
        try #require(json["status"]?.string == "rejected")
        try #require(json["reason"]?.string?.contains(property) == true)
        try #require(json["transaction"]?.string == "t")
      }
    }
  }

  @Test("An invalid property name is rejected for a device and ignored for a group")
  func invalidPropertyNameIsRejected() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      for (index, property) in ["PERIOD", "\u{FC}", "", "per iod", String(repeating: "p", count: 256)]
        .enumerated()
      {
        let payload = Array(#"{"value":60,"transaction":"\#(index)"}"#.utf8)
        try await fixture.publish("microbit/all/\(property)/set", payload, correlation: "all \(index)")
        try await fixture.publish("microbit/\(id)/\(property)/set", payload, correlation: "\(index)")
        let reply = try await fixture.reply(to: "\(index)").json()
        #expect(reply["status"]?.string == "rejected")
        #expect(reply["reason"]?.string?.hasPrefix("\(id) has no property ") == true)
        try await fixture.message("\(id)/\(property)/result") {
          (try? $0.json())?["transaction"]?.string == "\(index)"
        }
      }
      #expect(try fixture.observer.messages(on: "replies").count == 5)
      #expect(try await fixture.setPeriod(id, "70")["status"]?.string == "applied")
    }
  }

  @Test("Commands for unknown devices are ignored")
  func commandsForUnknownDevicesAreIgnored() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      for device in ["c5a1b2c3d4e5", "area", "bridge", "KITCHEN", "küche", ""] {
        try await fixture.observer.publish("microbit/\(device)/period/set", "60")
      }
      try #require(try await fixture.setPeriod(id, "70")["status"]?.string == "applied")
      let results = try fixture.observer.messages.filter { $0.topic.hasSuffix("/result") }
      try #require(results.map(\.topic) == ["microbit/\(id)/period/result"])
    }
  }
}
