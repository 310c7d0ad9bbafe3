import TestSupport
import Testing

/// The micro:bit's services besides temperature.
@Suite struct MicrobitServiceTests {
  private static let buttonA = "e95dda90-251d-470a-a062-fa1922dfa9a8"
  private static let acceleration = "e95dca4b-251d-470a-a062-fa1922dfa9a8"
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

  // MARK: Buttons

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
      #expect(document["cmps"]?["button_a"]?["dev_cla"]?.string == "button")
      #expect(
        document["cmps"]?["button_a"]?["evt_typ"]?.array?.compactMap(\.string)
          == ["press_end", "press_start", "long_press_start"])
      #expect(document["cmps"]?["button_b"] == nil)
    }
  }

  @Test("A micro:bit configured with its buttons alone comes online without a temperature")
  func buttonsAlone() async throws {
    var plan = Self.plan(#""button_a","button_b""#)
    plan.simulator = ["--services", "buttons"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      try await Self.set(fixture, Self.buttonA, "01")
      try await fixture.message("kitchen/button_a") { $0.text.contains("press_start") }
      let document = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) { !$0.payload.isEmpty }
      #expect(try document.json()["cmps"]?["temperature"] == nil)
    }
  }

  @Test("Presses during a broker outage are replayed as readings, not as events")
  func pressesDuringOutage() async throws {
    try await withFixture(Self.plan(#""temperature","button_a""#)) { fixture in
      try await fixture.online("kitchen")
      try await Self.set(fixture, Self.buttonA, "01")
      try await fixture.message("kitchen/button_a") { $0.text.contains("press_start") }
      try await fixture.broker.kill()
      try await fixture.logged("trying again")
      let mark = try fixture.observer.mark
      for hex in ["00", "01", "00"] { try await Self.set(fixture, Self.buttonA, hex) }
      try await fixture.restartBroker()
      try await fixture.message("kitchen/readings", after: mark) {
        $0.text.contains(#""temperature""#) && !$0.text.contains("replayed")
      }
      let replayed = try fixture.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .map { try $0.json() }
        .filter { $0["property"]?.string == "button_a" && $0["replayed"]?.bool == true }
      // An earlier one that the broker had not acknowledged may be duplicate.
      #expect(replayed.suffix(3).map { $0["value"]?.string } == ["press_end", "press_start", "press_end"])
      #expect(try fixture.observer.messages(on: "microbit/kitchen/button_a", after: mark).isEmpty)
      try await Self.set(fixture, Self.buttonA, "01")
      try await fixture.message("kitchen/button_a", after: mark) { $0.text.contains("press_start") }
    }
  }

  // MARK: Accelerometer

  @Test("Acceleration is one JSON object, with limited rate on its topic only; its period is adjusted")
  func accelerometer() async throws {
    try await withFixture(
      Self.plan(
        #""temperature","accelerometer","accelerometer_period""#, #","desired":{"accelerometer_period":10}"#)
    ) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/accelerometer_period", "10")
      let (mark, begin) = (try fixture.observer.mark, ContinuousClock.now)
      try await Self.set(fixture, Self.acceleration, "60ff040004fc")
      try await fixture.message("kitchen/accelerometer", #"{"x":-160,"y":4,"z":-1020}"#, after: mark)
      // A change below the threshold is published as a reading only.
      try await Self.set(fixture, Self.acceleration, "61ff050004fc")
      try await fixture.message("kitchen/readings", after: mark) {
        $0.text.contains(#"{"x":-159,"y":5,"z":-1020}"#)
      }
      for step in 1...20 {
        try await Self.set(
          fixture, Self.acceleration, (step < 16 ? "100" : "10") + String(step, radix: 16) + "04000400")
      }
      try await fixture.message("kitchen/accelerometer", #"{"x":5136,"y":4,"z":4}"#, after: mark)
      let published = try fixture.observer.messages(on: "microbit/kitchen/accelerometer", after: mark)
      // At most every 200 ms, over all of them: two may be delivered closer together than they were sent.
      let end = try #require(published.last).arrived
      #expect(begin.duration(to: end) >= .milliseconds(200) * (published.count - 1))
      let readings = try fixture.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .filter { $0.text.contains("accelerometer") }
      #expect(readings.count > published.count * 3)
      let correlation = "period"
      try await fixture.publish(
        "microbit/kitchen/accelerometer_period/set", Array("15".utf8), correlation: correlation)
      let result = try await fixture.reply(to: correlation).json()
      #expect(result["status"]?.string == "adjusted" && result["actual"]?.int == 20)
      let document = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) { !$0.payload.isEmpty }.json()
      #expect(document["cmps"]?["accelerometer_x"]?["stat_t"]?.string == "microbit/kitchen/accelerometer")
      #expect(document["cmps"]?["accelerometer_z"]?["val_tpl"]?.string?.contains(".z") == true)
    }
  }

  @Test("A get command reads a property, and is answered with its value")
  func get() async throws {
    try await withFixture(Self.plan(#""temperature","period""#)) { fixture in
      try await fixture.online("kitchen")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/period/get", #"{"transaction":"g1"}"#)
      let result = try await fixture.message("kitchen/period/result", after: mark).json()
      #expect(result["status"]?.string == "read" && result["actual"]?.int == 50)
      #expect(result["transaction"]?.string == "g1")
      try await fixture.observer.publish("microbit/kitchen/colour/get", "")
      let unknown = try await fixture.message("kitchen/colour/result", after: mark).json()
      #expect(unknown["status"]?.string == "rejected")
    }
  }

  // MARK: LED text

  @Test("A text is written once or, if the micro:bit is absent, fails; it is never written again")
  func ledText() async throws {
    try await withFixture(Self.plan(#""temperature","led_text""#)) { fixture in
      func send(_ payload: String, retain: Bool = false) async throws -> JSON {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/kitchen/led_text/set", payload, retain: retain)
        return try await fixture.message("kitchen/led_text/result", after: mark).json()
      }
      func writes() async throws -> [String] {
        let answer = try await fixture.simulator.control(
          #"{"op":"writes","i":0,"characteristic":"\#(Self.ledText)"}"#)
        return answer["writes"]?.array?.compactMap(\.string) ?? []
      }
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

  // MARK: LED matrix, pins, UART, events

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

  private static func plan(services: String, _ properties: String, _ keys: String = "") -> Plan {
    var plan = plan(properties, keys)
    plan.simulator = ["--services", services]
    return plan
  }

  @Test("The LED matrix is confirmed by reading it back, and written again on every link")
  func ledMatrix() async throws {
    let heart = ".#.#./#####/#####/.###./..#.."
    try await withFixture(Self.plan(services: "temperature,led", #""temperature","led","scroll_delay""#)) {
      fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/led", "...../...../...../...../.....")
      try await Self.result(fixture, "led", heart, "applied")
      try await fixture.message("kitchen/led", heart)
      #expect(try await Self.writes(fixture, "e95d7b77-251d-470a-a062-fa1922dfa9a8") == ["0a1f1f0e04"])
      try await Self.result(fixture, "led", "no picture", "rejected")
      try await Self.result(fixture, "scroll_delay", "0", "rejected")
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"reset","i":0}"#)
      try await fixture.message("kitchen/led", heart, after: mark)
    }
  }

  @Test("Pins: their modes are desired state, their values are events with the names of the pins")
  func pins() async throws {
    try await withFixture(
      Self.plan(
        services: "temperature,pins", #""temperature","pins","pwm""#,
        #","desired":{"input_pins":["P0"],"analog_pins":["P19"]}"#)
    ) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/input_pins", #"["P0"]"#)
      try await fixture.message("kitchen/analog_pins", #"["P19"]"#)
      try await Self.set(fixture, "e95d8d00-251d-470a-a062-fa1922dfa9a8", "00011180")
      try await fixture.message("kitchen/pins") {
        $0.text.contains(#""value":[{"pin":"P0","value":1},{"pin":"P19","value":128}]"#)
      }
      try await Self.result(fixture, "pins", #"[{"pin":"P20","value":255}]"#, "accepted")
      #expect(try await Self.writes(fixture, "e95d8d00-251d-470a-a062-fa1922dfa9a8") == ["12ff"])
      try await Self.result(fixture, "pins", #"[{"pin":"P17","value":1}]"#, "rejected")
      try await Self.result(fixture, "pwm", #"[{"pin":"P1","value":512,"period":20000}]"#, "accepted")
      #expect(try await Self.writes(fixture, "e95dd822-251d-470a-a062-fa1922dfa9a8") == ["010002204e0000"])
    }
  }

  @Test(
    "UART: each line is one event, also the last without an end; a text is sent as a line, a long one in pieces"
  )
  func uart() async throws {
    let received = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
    try await withFixture(Self.plan(services: "temperature,uart", #""temperature","uart_rx","uart_tx""#)) {
      fixture in
      try await fixture.online("kitchen")
      // "temp:21\r\n" in two indications, then "light" without an end.
      for hex in ["74656d703a", "32310d0a6c69", "676874"] { try await Self.set(fixture, received, hex) }
      try await fixture.message("kitchen/uart_rx") { $0.text.contains(#""value":"temp:21""#) }
      try await fixture.message("kitchen/uart_rx") { $0.text.contains(#""value":"light""#) }
      #expect(try fixture.observer.messages(on: "microbit/kitchen/uart_rx").count == 2)
      try await Self.result(fixture, "uart_tx", "a text of more than twenty bytes", "accepted")
      var pieces = try await Self.writes(fixture, "6e400003-b5a3-f393-e0a9-e50e24dcca9e")
      #expect(pieces.map { $0.count / 2 } == [20, 13])
      for text in ["hello", "hello\n", #""hello\n""#, #"{"value":"hello\n"}"#] {
        try await Self.result(fixture, "uart_tx", text, "accepted")
      }
      let client = try ChildProcess(
        try program("microbit-gateway"),
        ["write", "kitchen", "uart_tx", "hello", "--config", fixture.folder.path + "/config.json"],
        environment: fixture.environment)
      #expect(try await client.exitStatus(within: Fixture.patience) == 0)
      pieces = try await Self.writes(fixture, "6e400003-b5a3-f393-e0a9-e50e24dcca9e")
      #expect(pieces.dropFirst(2).elementsEqual(Array(repeating: "68656c6c6f0a", count: 5)), "\(pieces)")
    }
  }

  @Test("Events: the filter is written on every link, one record per write; events go in both directions")
  func events() async throws {
    try await withFixture(
      Self.plan(
        services: "temperature,events", #""temperature","event","send_event","event_requirement""#,
        #","desired":{"event_filter":[{"type":27,"value":0},{"type":1,"value":3}]}"#)
    ) { fixture in
      let filter = "e95d23c4-251d-470a-a062-fa1922dfa9a8"
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/event_requirement", "[]")
      // Written after the configured value.
      try await Self.result(
        fixture, "event_filter", #"[{"type":1,"value":3},{"type":5,"value":0}]"#, "accepted")
      let configured = ["1b000000", "01000300"]
      let commanded = ["01000300", "05000000"]
      #expect(try await Self.writes(fixture, filter) == configured + commanded)
      try await Self.result(fixture, "send_event", #"{"type":1001,"value":2}"#, "accepted")
      #expect(try await Self.writes(fixture, "e95d5404-251d-470a-a062-fa1922dfa9a8") == ["e9030200"])
      try await Self.set(fixture, "e95d9775-251d-470a-a062-fa1922dfa9a8", "1b000b00")
      try await fixture.message("kitchen/event") { $0.text.contains(#""value":[{"type":27,"value":11}]"#) }
      let mark = try fixture.observer.mark
      try await fixture.simulator.control(#"{"op":"disconnect","i":0}"#)
      try await fixture.message("kitchen/availability", "online", after: mark)
      try await Self.result(fixture, "event_filter", "[]", "accepted")
      #expect(try await Self.writes(fixture, filter) == configured + commanded + commanded)
    }
  }

  @Test("UART characteristics in Nordic's order are identified by their flags")
  func nordicUART() async throws {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.entries = #"{"match":{"name":"Nordic"},"id":"kitchen","properties":["uart_rx","uart_tx"]}"#
    plan.files["nordic.json"] = """
      {"name":"Nordic","address":"E6:7A:00:00:00:01","services":[{"uuid":"6e400001-b5a3-f393-e0a9-e50e24dcca9e",
       "characteristics":[
         {"uuid":"6e400002-b5a3-f393-e0a9-e50e24dcca9e","flags":["write"]},
         {"uuid":"6e400003-b5a3-f393-e0a9-e50e24dcca9e","flags":["indicate"]}]}]}
      """
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", "\(fixture.folder.path)/nordic.json"])
      try await fixture.online("kitchen")
      try await Self.set(fixture, "6e400003-b5a3-f393-e0a9-e50e24dcca9e", "6f6e0a")
      try await fixture.message("kitchen/uart_rx") { $0.text.contains(#""value":"on""#) }
      try await Self.result(fixture, "uart_tx", "off", "accepted")
      #expect(try await Self.writes(fixture, "6e400002-b5a3-f393-e0a9-e50e24dcca9e") == ["6f66660a"])
    }
  }

  // MARK: Magnetometer

  @Test(
    "The magnetometer's period is read back once the chip has applied it; calibration is reported by events")
  func magnetometer() async throws {
    try await withFixture(
      Self.plan(
        services: "temperature,magnetometer",
        #""temperature","magnetometer","bearing","magnetometer_period","calibration""#)
    ) { fixture in
      try await fixture.online("kitchen")
      try await fixture.message("kitchen/magnetometer_period", "100")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/kitchen/magnetometer_period/set", "30")
      let result = try await fixture.message("kitchen/magnetometer_period/result", after: mark).json()
      #expect(result["status"]?.string == "adjusted" && result["actual"]?.int == 50)
      try await fixture.message("kitchen/magnetometer_period", "50", after: mark)
      try await Self.result(fixture, "magnetometer_period", "20", "applied")
      try await Self.set(fixture, "e95dfb11-251d-470a-a062-fa1922dfa9a8", "e80330f8409c")
      try await fixture.message("kitchen/magnetometer", #"{"x":1000,"y":-2000,"z":-25536}"#)
      try await Self.set(fixture, "e95d9715-251d-470a-a062-fa1922dfa9a8", "0f01")
      try await fixture.message("kitchen/bearing", "271")
      let calibration = "e95db358-251d-470a-a062-fa1922dfa9a8"
      try await Self.result(fixture, "calibration", "start", "accepted")
      #expect(try await Self.writes(fixture, calibration) == ["01"])
      try await Self.set(fixture, calibration, "02")
      try await fixture.message("kitchen/calibration") { $0.text.contains(#""event_type":"done""#) }
    }
  }
}
