import GATT
import Testing

/// The facts are those of the micro:bit's firmware (codal-microbit-v2, microbit-dal).
@Suite struct MicrobitProfileTests {
  let profile = Profile.microbit

  static let characteristics = [
    ("temperature", "6100", "9250"), ("period", "6100", "1b25"), ("button_a", "9882", "da90"),
    ("button_b", "9882", "da91"), ("accelerometer", "0753", "ca4b"), ("accelerometer_period", "0753", "fb24"),
    ("led_text", "d91d", "93ee"),
  ]

  @Test(arguments: characteristics)
  func hasItsCharacteristics(name: String, service: String, characteristic: String) throws {
    let property = try #require(profile.property(named: name))
    #expect(property.service.description == "e95d\(service)-251d-470a-a062-fa1922dfa9a8")
    #expect(property.characteristic.description == "e95d\(characteristic)-251d-470a-a062-fa1922dfa9a8")
    #expect(property.homeAssistant != nil)
  }

  @Test func hasNoOthers() {
    #expect(profile.properties.map(\.name) == Self.characteristics.map(\.0))
  }

  @Test func temperatureAndPeriod() throws {
    let temperature = Property.microbitTemperature
    #expect(temperature.codec == .int8 && temperature.unit == "°C" && temperature.kind == .state)
    #expect(temperature.access == [.read, .notify])
    #expect(
      temperature.homeAssistant
        == HomeAssistantEntity(.sensor(.measurement), name: "Temperature", deviceClass: "temperature"))
    let period = Property.microbitPeriod
    #expect(period.codec == .uint16 && period.unit == "ms" && period.writeMode == .confirm)
    #expect(period.access == [.read, .write] && period.range == 20...65535)
    for value in [0, 1, 19, 65536] {
      #expect(error(of: CodecError.self) { try period.encode(.integer(value)) } != nil)
    }
    #expect(try period.encode(.integer(1000)) == [0xE8, 0x03])
    #expect(
      period.homeAssistant
        == HomeAssistantEntity(.number(.box), name: "Period", deviceClass: "duration", category: .config))
  }

  @Test(arguments: [Property.microbitButtonA, .microbitButtonB])
  func buttonsAreEvents(button: Property) throws {
    #expect(button.kind == .event && button.access == .notify && button.initial == nil)
    #expect(try button.codec.decode([0]) == .text("press_end"))
    #expect(try button.codec.decode([1]) == .text("press_start"))
    #expect(try button.codec.decode([2]) == .text("long_press_start"))
    #expect(try button.codec.decode([3]) == .integer(3))
    #expect(button.homeAssistant?.kind == .event)
  }

  @Test func accelerometer() throws {
    let accelerometer = Property.microbitAccelerometer
    #expect(accelerometer.access == [.read, .notify] && accelerometer.unit == "mg")
    #expect(accelerometer.codec.fields == ["x", "y", "z"])
    #expect(
      try accelerometer.codec.decode([0xF0, 0xFF, 4, 0, 4, 0xFC])
        == .record([.integer(-16), .integer(4), .integer(-1020)]))
    #expect(accelerometer.report == Property.Report(minInterval: .milliseconds(200), change: 20))
    #expect(
      accelerometer.homeAssistantParts.map(\.key) == [
        "accelerometer_x", "accelerometer_y", "accelerometer_z",
      ])
    let period = Property.microbitAccelerometerPeriod
    #expect(period.access == [.read, .write] && period.writeMode == .confirm && period.unit == "ms")
    // 0 samples every 617 µs, 1 crashes a V1.3.
    for value in [0, 1, 65536] {
      #expect(error(of: CodecError.self) { try period.encode(.integer(value)) } != nil)
    }
    #expect(try period.encode(.integer(2)) == [2, 0])
    #expect(try period.encode(.integer(65535)) == [0xFF, 0xFF])
  }

  @Test func ledText() throws {
    let text = Property.microbitLEDText
    #expect(text.kind == .event && text.access == .write && text.writeMode == .request)
    #expect(try text.encode(.text("12345678901234567890")).count == 20)
    #expect(throws: CodecError.tooLong(count: 21, most: 20)) {
      try text.encode(.text("123456789012345678901"))
    }
    #expect(text.homeAssistant?.kind == .text)
  }

  @Test func usesTheTemperatureUnlessOthersAreNamed() throws {
    #expect(profile.defaultProperties == ["temperature", "period"])
    let used = profile.limited(to: Set(profile.defaultProperties))
    #expect(used.properties == [.microbitTemperature, .microbitPeriod])
    #expect(used.requires == [.microbitTemperatureService])
    #expect(used.missingHint == profile.missingHint && used.missingHint != nil)
    let alive = try #require(used.alive)
    #expect(used.properties[alive.property].name == "temperature")
    #expect(alive.period == 1)
  }

  @Test func needsNoTemperatureServiceForItsButtons() {
    let buttons = profile.limited(to: ["button_a"])
    #expect(buttons.properties == [.microbitButtonA])
    #expect(buttons.requires == [] && buttons.missingHint == nil && buttons.alive == nil)
    #expect(profile.limited(to: ["button_a", "temperature"]).requires == [.microbitTemperatureService])
  }
}
