import Glibc
import TestSupport
import Testing

/// The micro:bit's services besides temperature.
@Suite struct MicrobitServiceTests {
  private static let buttonA = "e95dda90-251d-470a-a062-fa1922dfa9a8"
  private static let ledText = "e95d93ee-251d-470a-a062-fa1922dfa9a8"

  private static func plan(_ properties: String, _ keys: String = "") -> Plan {
    var plan = Plan()
    plan.simulator = ["--services", "temperature,buttons,accelerometer,led"]
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","properties":[\#(properties)]\#(keys)}"#
    return plan
  }

  private static func set(_ fixture: Fixture, _ characteristic: String, _ hex: String) async throws {
    try await fixture.simulator.control(
      #"{"op":"value","i":0,"characteristic":"\#(characteristic)","hex":"\#(hex)"}"#)
  }

  @Test("A button press is an unretained event and a reading, and is announced to Home Assistant")
  func button() async throws {
    try await withFixture(Self.plan(#""temperature","button_a""#)) { fixture in
      try await fixture.online("kitchen")
      for hex in ["01", "02", "00"] { try await Self.set(fixture, Self.buttonA, hex) }
      try await fixture.message("kitchen/button_a") { $0.text.contains("press_end") }
      // The reading follows its event.
      try await fixture.message("kitchen/readings") { $0.text.contains("press_end") }
      let events = try fixture.observer.messages(on: "microbit/kitchen/button_a")
      #expect(
        try events.map { try $0.json()["event_type"]?.string } == [
          "press_start", "long_press_start", "press_end",
        ])
      #expect(events.allSatisfy { !$0.retain })
      let first = try events[0].json()
      #expect(isTimestamp(first["time"]?.string) && first["run"]?.string != nil)
      let readings = try fixture.observer.messages(on: "microbit/kitchen/readings").map { try $0.json() }
        .filter { $0["property"]?.string == "button_a" }
      #expect(readings.map { $0["value"]?.string } == ["press_start", "long_press_start", "press_end"])
      #expect(readings.first?["sequence"] == first["sequence"])
      #expect(try await fixture.retained(of: "kitchen")["kitchen/button_a"] == nil)
      let document = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) { !$0.payload.isEmpty }.json()
      #expect(document["cmps"]?["button_a"]?["p"]?.string == "event")
      #expect(document["cmps"]?["button_b"] == nil)
    }
  }

  @Test("Texts that wait, and the one that is being written, get their final result when the gateway stops")
  func textsAtAStop() async throws {
    try await withFixture(Self.plan(#""temperature","led_text""#)) { fixture in
      try await fixture.online("kitchen")
      // The last operation on a new link.
      try await fixture.message("kitchen/info") { $0.text.contains("firmware") }
      let monitor = try await BusMonitor(fixture.bus)
      try fixture.simulator.process.signal(SIGSTOP)
      let mark = try fixture.observer.mark
      for text in 1...7 {
        try await fixture.observer.publish("microbit/kitchen/led_text/set", "text \(text)")
      }
      try await monitor.called("WriteValue")
      // The gateway has all of them.
      _ = try await fixture.perform("health", "{}")
      #expect(try await fixture.stopGateway() == 0)
      try await fixture.observer.synchronize()
      let results = try fixture.observer.messages(on: "microbit/kitchen/led_text/result", after: mark)
      #expect(
        try results.map { try $0.json()["status"]?.string } == ["timeout"]
          + Array(repeating: "failed", count: 6))
    }
  }

  @Test("A text is written once or, if the micro:bit is absent, fails; it is never written again")
  func ledText() async throws {
    try await withFixture(Self.plan(#""temperature","led_text""#)) { fixture in
      func send(_ payload: String, retain: Bool = false) async throws -> JSON {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/kitchen/led_text/set", payload, retain: retain)
        return try await fixture.message("kitchen/led_text/result", after: mark).json()
      }
      func writes() async throws -> [String] { try await Self.writes(fixture, Self.ledText) }
      try await fixture.online("kitchen")
      #expect(try await send("Hello")["status"]?.string == "accepted")
      #expect(try await send(#"{"value":"Hé","transaction":"t"}"#)["transaction"]?.string == "t")
      #expect(try await writes() == ["48656c6c6f", "48c3a9"])
      let long = try await send(String(repeating: "x", count: 21))
      #expect(long["status"]?.string == "rejected" && long["reason"]?.string?.contains("20") == true)
      #expect(try await send("kept", retain: true)["status"]?.string == "rejected")
      try await fixture.observer.publish("microbit/kitchen/led_text/set", "", retain: true)
      try await fixture.vanish(0, "kitchen")
      #expect(try await send("nobody")["status"]?.string == "failed")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/led_text/set", #"{"value":"later","ttl":60}"#)
      try await fixture.message("kitchen/led_text/result", after: mark) { $0.text.contains("pending") }
      try await fixture.simulator.control("return", 0)
      try await fixture.message("kitchen/led_text/result", after: mark) { $0.text.contains("accepted") }
      try await fixture.simulator.control("reset", 0)
      try await fixture.online("kitchen", after: fixture.offline("kitchen", after: mark).number)
      // No earlier text is written again.
      #expect(try await send("last")["status"]?.string == "accepted")
      #expect(try await writes().last == "6c617374")
      #expect(try await writes().count { $0 == "6c61746572" } == 1)
      #expect(try await fixture.retained(of: "kitchen")["kitchen/led_text"] == nil)
    }
  }

  private static func writes(_ fixture: Fixture, _ characteristic: String) async throws -> [String] {
    try await fixture.simulator.control(#"{"op":"writes","i":0,"characteristic":"\#(characteristic)"}"#)[
      "writes"]?
      .array?.compactMap(\.string) ?? []
  }

  private static func result(
    _ fixture: Fixture, _ property: String, _ value: String, _ status: String
  ) async throws {
    let mark = try fixture.observer.mark
    try await fixture.observer.publish("microbit/kitchen/\(property)/set", value)
    try await fixture.message("kitchen/\(property)/result", after: mark) {
      (try? $0.json())?["status"]?.string == status
    }
  }

  /// Bytes that a characteristic notifies, and a part of the payload that is published.
  private static let notified: [(characteristic: String, hex: String, property: String, payload: String)] = [
    ("e95dca4b-251d-470a-a062-fa1922dfa9a8", "60ff040004fc", "accelerometer", #"{"x":-160,"y":4,"z":-1020}"#),
    (
      "e95dfb11-251d-470a-a062-fa1922dfa9a8", "e80330f8409c", "magnetometer",
      #"{"x":1000,"y":-2000,"z":-25536}"#
    ),
    ("e95d9715-251d-470a-a062-fa1922dfa9a8", "0f01", "bearing", "271"),
    (
      "e95d8d00-251d-470a-a062-fa1922dfa9a8", "00011180", "pins",
      #""value":[{"pin":"P0","value":1},{"pin":"P19","value":128}]"#
    ),
    ("e95d9775-251d-470a-a062-fa1922dfa9a8", "1b000b00", "event", #""value":[{"type":27,"value":11}]"#),
    ("e95db358-251d-470a-a062-fa1922dfa9a8", "02", "calibration", #""event_type":"done""#),
  ]

  private static let heart = ".#.#./#####/#####/.###./..#.."

  /// Payloads that are sent, the status of the result, and the bytes that are written last, if any.
  private static let sent: [(property: String, payload: String, status: String, written: [String: String])] =
    [
      ("led", heart, "applied", ["e95d7b77-251d-470a-a062-fa1922dfa9a8": "0a1f1f0e04"]),
      ("led", "no picture", "rejected", [:]), ("scroll_delay", "0", "rejected", [:]),
      (
        "pins", #"[{"pin":"P20","value":255}]"#, "accepted", ["e95d8d00-251d-470a-a062-fa1922dfa9a8": "12ff"]
      ),
      ("pins", #"[{"pin":"P17","value":1}]"#, "rejected", [:]),
      (
        "pwm", #"[{"pin":"P1","value":512,"period":20000}]"#, "accepted",
        ["e95dd822-251d-470a-a062-fa1922dfa9a8": "010002204e0000"]
      ),
      (
        "send_event", #"{"type":1001,"value":2}"#, "accepted",
        ["e95d5404-251d-470a-a062-fa1922dfa9a8": "e9030200"]
      ),
      ("calibration", "start", "accepted", ["e95db358-251d-470a-a062-fa1922dfa9a8": "01"]),
      // The chip rounds; the magnetometer does it after the write.
      ("accelerometer_period", "15", "adjusted", [:]), ("magnetometer_period", "30", "adjusted", [:]),
      ("magnetometer_period", "20", "applied", [:]),
    ]

  @Test("Each service's values are published, and its commands written, on this link and the next")
  func services() async throws {
    var plan = Self.plan(
      #""temperature","accelerometer","accelerometer_period","magnetometer","bearing","magnetometer_period","#
        + #""calibration","led","scroll_delay","pins","pwm","event","send_event","event_requirement""#,
      #","desired":{"input_pins":["P0"],"analog_pins":["P19"],"#
        + #""event_filter":[{"type":27,"value":0},{"type":1,"value":3}]}"#)
    plan.simulator = ["--services", "temperature,accelerometer,magnetometer,led,pins,events"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      for (property, payload) in [
        ("led", "...../...../...../...../....."), ("input_pins", #"["P0"]"#), ("analog_pins", #"["P19"]"#),
        ("event_requirement", "[]"), ("magnetometer_period", "100"),
      ] {
        try await fixture.message("kitchen/\(property)", payload)
      }
      for (characteristic, hex, property, payload) in Self.notified {
        try await Self.set(fixture, characteristic, hex)
        try await fixture.message("kitchen/\(property)") { $0.text.contains(payload) }
      }
      for (property, payload, status, written) in Self.sent {
        try await Self.result(fixture, property, payload, status)
        for (characteristic, hex) in written {
          #expect(try await Self.writes(fixture, characteristic).last == hex, "\(property)")
        }
      }
      try await fixture.message("kitchen/led", Self.heart)
      try await fixture.message("kitchen/magnetometer_period", "50")
      // The filter is one record per write; the commanded one is written on the next link.
      let filter = "e95d23c4-251d-470a-a062-fa1922dfa9a8"
      try await Self.result(
        fixture, "event_filter", #"[{"type":1,"value":3},{"type":5,"value":0}]"#, "accepted")
      let configured = ["1b000000", "01000300"]
      let commanded = ["01000300", "05000000"]
      #expect(try await Self.writes(fixture, filter) == configured + commanded)
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"reset","i":0}"#)
      try await fixture.message("kitchen/availability", "online", after: mark)
      try await fixture.message("kitchen/led", Self.heart, after: mark)
      try await Self.result(fixture, "event_filter", "[]", "accepted")
      #expect(try await Self.writes(fixture, filter).suffix(2) == commanded[...])
    }
  }

  @Test("What a program names itself has topics and entities, can be set, and is removed by request")
  func values() async throws {
    var plan = Plan()
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#
    plan.simulator = ["--generate", "values/soil_%=ramp:40:50:1@20", "--generate", "values/servo=echo"]
    try await withFixture(plan) { fixture in
      try await fixture.message("kitchen/values/soil", "40")
      try await fixture.message("kitchen/readings") {
        $0.text.hasPrefix(#"{"property":"values/soil","value":50,"unit":"%""#)
      }
      try await fixture.message("kitchen/values/soil") { $0.text != "40" }
      let document = "homeassistant/device/ble_d05a0000c0de/config"
      _ = try await fixture.observer.message(document, after: 0, within: Fixture.patience) {
        (try? $0.json())?["cmps"]?["value-soil"]?["unit_of_meas"]?.string == "%"
      }
      try await Self.result(fixture, "values/servo", "90", "applied")
      try await fixture.message("kitchen/values/servo", "90")
      // With other properties, the topic keeps its value.
      var mark = try fixture.observer.mark
      _ = try await fixture.perform("device/options", #"{"id":"kitchen","options":{"exclude":["button_a"]}}"#)
      try await fixture.message("kitchen/values/servo", "90", after: mark)
      let servo = try fixture.observer.messages(on: "microbit/kitchen/values/servo", after: mark)
      #expect(servo.map(\.text) == ["90"])
      let answer = try await fixture.perform("value/remove", #"{"id":"kitchen","property":"values/servo"}"#)
      #expect(answer["property"]?.string == "values/servo")
      try await fixture.message("kitchen/values/servo", "")
      // Another program without UART.
      mark = try fixture.observer.mark
      try await fixture.killSimulator()
      try await fixture.startSimulator(["--services", "temperature"])
      _ = try await fixture.observer.message(document, after: mark, within: Fixture.patience) {
        (try? $0.json())?["cmps"]?["value-soil"]?["avty"] != nil
      }
      // At the next start, values are off.
      mark = try fixture.observer.mark
      try fixture.configure(
        entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","values":false}"#)
      try await fixture.restartGateway()
      try await fixture.message("kitchen/values/soil", "", after: mark)
    }
  }

  @Test(
    "UART: each line is one event, also the last without an end; a text is sent as a line, a long one in pieces"
  )
  func uart() async throws {
    let received = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
    let sent = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
    var plan = Self.plan(#""temperature","uart_rx","uart_tx""#)
    plan.simulator = ["--services", "temperature,uart"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      // "temp:21\r\n" in two indications, then "light" without an end.
      try await fixture.simulator.notify(0, received, ["74656d703a", "32310d0a6c69", "676874"])
      try await fixture.message("kitchen/uart_rx") { $0.text.contains(#""value":"temp:21""#) }
      try await fixture.message("kitchen/uart_rx") { $0.text.contains(#""value":"light""#) }
      #expect(try fixture.observer.messages(on: "microbit/kitchen/uart_rx").count == 2)
      try await Self.result(fixture, "uart_tx", "a text of more than twenty bytes", "accepted")
      var pieces = try await Self.writes(fixture, sent)
      #expect(pieces.map { $0.count / 2 } == [20, 13])
      for text in ["hello", "hello\n", #""hello\n""#, #"{"value":"hello\n"}"#] {
        try await Self.result(fixture, "uart_tx", text, "accepted")
      }
      #expect(try await fixture.command(["write", "kitchen", "uart_tx", "hello"]).status == 0)
      pieces = try await Self.writes(fixture, sent)
      #expect(pieces.dropFirst(2).elementsEqual(Array(repeating: "68656c6c6f0a", count: 5)), "\(pieces)")
    }
  }

  // MARK: Magnetometer
}
