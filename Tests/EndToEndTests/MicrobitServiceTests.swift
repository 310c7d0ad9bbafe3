import TestSupport
import Testing

/// The micro:bit beyond its temperature: buttons, accelerometer, LED text.
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

  private static func set(_ house: House, _ characteristic: String, _ hex: String) async throws {
    try await house.simulator.control(
      #"{"op":"value","i":0,"characteristic":"\#(characteristic)","hex":"\#(hex)"}"#)
  }

  // MARK: Buttons

  @Test("A press is an event: on its topic unretained, on the readings, and for Home Assistant")
  func button() async throws {
    try await withHouse(Self.plan(#""temperature","button_a""#)) { house in
      try await house.online("kitchen")
      for hex in ["01", "02", "00"] { try await Self.set(house, Self.buttonA, hex) }
      try await house.message("kitchen/button_a") { $0.text.contains("press_end") }
      // The reading follows its event.
      try await house.message("kitchen/readings") { $0.text.contains("press_end") }
      let events = try house.observer.messages(on: "microbit/kitchen/button_a")
      #expect(
        try events.map { try $0.json()["event_type"]?.string } == [
          "press_start", "long_press_start", "press_end",
        ])
      #expect(events.allSatisfy { !$0.retain })
      let first = try events[0].json()
      #expect(isTimestamp(first["time"]?.string) && first["run"]?.string != nil)
      let readings = try house.observer.messages(on: "microbit/kitchen/readings").map { try $0.json() }
        .filter { $0["property"]?.string == "button_a" }
      #expect(readings.map { $0["value"]?.string } == ["press_start", "long_press_start", "press_end"])
      #expect(readings.first?["sequence"] == first["sequence"])
      #expect(try await house.retained(of: "kitchen")["kitchen/button_a"] == nil)
      let document = try await house.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: House.patience
      ) { !$0.payload.isEmpty }.json()
      #expect(document["cmps"]?["button_a"]?["p"]?.string == "event")
      #expect(document["cmps"]?["button_a"]?["dev_cla"]?.string == "button")
      #expect(
        document["cmps"]?["button_a"]?["evt_typ"]?.array?.compactMap(\.string)
          == ["press_end", "press_start", "long_press_start"])
      #expect(document["cmps"]?["button_b"] == nil)
    }
  }

  @Test("A micro:bit that is configured with its buttons alone stays online without readings")
  func buttonsAlone() async throws {
    var plan = Self.plan(#""button_a","button_b""#)
    plan.simulator = ["--services", "buttons"]
    try await withHouse(plan) { house in
      try await house.online("kitchen")
      try await Self.set(house, Self.buttonA, "01")
      try await house.message("kitchen/button_a") { $0.text.contains("press_start") }
      let document = try await house.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: House.patience
      ) { !$0.payload.isEmpty }
      #expect(try document.json()["cmps"]?["temperature"] == nil)
    }
  }

  @Test("Presses while the broker is away are on the readings alone")
  func pressesInAnOutage() async throws {
    try await withHouse(Self.plan(#""temperature","button_a""#)) { house in
      try await house.online("kitchen")
      try await Self.set(house, Self.buttonA, "01")
      try await house.message("kitchen/button_a") { $0.text.contains("press_start") }
      try await house.broker.kill()
      try await house.logged("trying again")
      let mark = try house.observer.mark
      for hex in ["00", "01", "00"] { try await Self.set(house, Self.buttonA, hex) }
      try await house.broker.start()
      try await house.message("kitchen/readings", after: mark) {
        $0.text.contains(#""temperature""#) && !$0.text.contains("replayed")
      }
      let replayed = try house.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .map { try $0.json() }
        .filter { $0["property"]?.string == "button_a" && $0["replayed"]?.bool == true }
      // One before them that the broker had not acknowledged may come twice.
      #expect(replayed.suffix(3).map { $0["value"]?.string } == ["press_end", "press_start", "press_end"])
      #expect(try house.observer.messages(on: "microbit/kitchen/button_a", after: mark).isEmpty)
      try await Self.set(house, Self.buttonA, "01")
      try await house.message("kitchen/button_a", after: mark) { $0.text.contains("press_start") }
    }
  }

  // MARK: Accelerometer

  @Test(
    "A record stays whole; its topic is bounded, the readings are not; its period is adjusted as the firmware does"
  )
  func accelerometer() async throws {
    try await withHouse(
      Self.plan(
        #""temperature","accelerometer","accelerometer_period""#, #","desired":{"accelerometer_period":10}"#)
    ) { house in
      try await house.online("kitchen")
      try await house.message("kitchen/accelerometer_period", "10")
      let mark = try house.observer.mark
      try await Self.set(house, Self.acceleration, "60ff040004fc")
      try await house.message("kitchen/accelerometer", #"{"x":-160,"y":4,"z":-1020}"#, after: mark)
      // A change that is too small is a reading, and no more.
      try await Self.set(house, Self.acceleration, "61ff050004fc")
      try await house.message("kitchen/readings", after: mark) {
        $0.text.contains(#"{"x":-159,"y":5,"z":-1020}"#)
      }
      for step in 1...20 {
        try await Self.set(
          house, Self.acceleration, (step < 16 ? "0" : "") + String(step, radix: 16) + "1004000400")
      }
      try await house.message("kitchen/accelerometer", #"{"x":4116,"y":4,"z":4}"#, after: mark)
      let published = try house.observer.messages(on: "microbit/kitchen/accelerometer", after: mark)
      for (earlier, later) in zip(published, published.dropFirst()) {
        #expect(earlier.arrived.duration(to: later.arrived) > .milliseconds(150))
      }
      let readings = try house.observer.messages(on: "microbit/kitchen/readings", after: mark)
        .filter { $0.text.contains("accelerometer") }
      #expect(readings.count > published.count * 3)
      let correlation = "period"
      try await house.ask(
        "microbit/kitchen/accelerometer_period/set", Array("15".utf8), correlation: correlation)
      let result = try await house.reply(to: correlation).json()
      #expect(result["status"]?.string == "adjusted" && result["actual"]?.int == 20)
      let document = try await house.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: House.patience
      ) { !$0.payload.isEmpty }.json()
      #expect(document["cmps"]?["accelerometer_x"]?["stat_t"]?.string == "microbit/kitchen/accelerometer")
      #expect(document["cmps"]?["accelerometer_z"]?["val_tpl"]?.string?.contains(".z") == true)
    }
  }

  @Test("A get reads a property now, and answers with its value")
  func get() async throws {
    try await withHouse(Self.plan(#""temperature","period""#)) { house in
      try await house.online("kitchen")
      let mark = try house.observer.mark
      try await house.observer.publish("microbit/kitchen/period/get", #"{"transaction":"g1"}"#)
      let result = try await house.message("kitchen/period/result", after: mark).json()
      #expect(result["status"]?.string == "read" && result["actual"]?.int == 50)
      #expect(result["transaction"]?.string == "g1")
      try await house.observer.publish("microbit/kitchen/colour/get", "")
      let unknown = try await house.message("kitchen/colour/result", after: mark).json()
      #expect(unknown["status"]?.string == "rejected")
    }
  }

  // MARK: LED text

  @Test("A text is written once: accepted, or failed where the micro:bit is absent; never repeated")
  func ledText() async throws {
    try await withHouse(Self.plan(#""temperature","led_text""#)) { house in
      func send(_ payload: String, retain: Bool = false) async throws -> JSON {
        let mark = try house.observer.mark
        try await house.observer.publish("microbit/kitchen/led_text/set", payload, retain: retain)
        return try await house.message("kitchen/led_text/result", after: mark).json()
      }
      func writes() async throws -> [String] {
        let answer = try await house.simulator.control(
          #"{"op":"writes","i":0,"characteristic":"\#(Self.ledText)"}"#)
        return answer["writes"]?.array?.compactMap(\.string) ?? []
      }
      try await house.online("kitchen")
      #expect(try await send("Hello")["status"]?.string == "accepted")
      #expect(try await send(#"{"value":"Hé","transaction":"t"}"#)["transaction"]?.string == "t")
      #expect(try await writes() == ["48656c6c6f", "48c3a9"])
      let long = try await send(String(repeating: "x", count: 21))
      #expect(long["status"]?.string == "rejected" && long["reason"]?.string?.contains("20") == true)
      #expect(try await send("kept", retain: true)["status"]?.string == "rejected")
      try await house.observer.publish("microbit/kitchen/led_text/set", "", retain: true)
      try await house.vanish(0, "kitchen")
      #expect(try await send("nobody")["status"]?.string == "failed")
      let mark = try house.observer.mark
      try await house.observer.publish("microbit/kitchen/led_text/set", #"{"value":"later","ttl":60}"#)
      try await house.message("kitchen/led_text/result", after: mark) { $0.text.contains("pending") }
      try await house.simulator.control("return", 0)
      try await house.message("kitchen/led_text/result", after: mark) { $0.text.contains("accepted") }
      try await house.simulator.control("reset", 0)
      try await house.online("kitchen", after: house.offline("kitchen", after: mark).number)
      // Of what was written before nothing is written again.
      #expect(try await send("last")["status"]?.string == "accepted")
      #expect(try await writes().last == "6c617374")
      #expect(try await writes().count { $0 == "6c61746572" } == 1)
      #expect(try await house.retained(of: "kitchen")["kitchen/led_text"] == nil)
    }
  }
}
