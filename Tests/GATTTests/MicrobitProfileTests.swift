import GATT
import Testing

/// The expected values are those of the micro:bit's firmware (codal-microbit-v2, microbit-dal).
@Suite struct MicrobitProfileTests {
  let profile = Profile.microbit

  /// Name, service, characteristic; `e95d` and the rest of the micro:bit's UUIDs are left out.
  static let characteristics: [(String, String, String)] = [
    ("temperature", "6100", "9250"), ("period", "6100", "1b25"), ("button_a", "9882", "da90"),
    ("button_b", "9882", "da91"), ("accelerometer", "0753", "ca4b"), ("accelerometer_period", "0753", "fb24"),
    ("led_text", "d91d", "93ee"), ("led", "d91d", "7b77"), ("scroll_delay", "d91d", "0d2d"),
    ("magnetometer", "f2d8", "fb11"), ("bearing", "f2d8", "9715"), ("magnetometer_period", "f2d8", "386c"),
    ("calibration", "f2d8", "b358"), ("pins", "127b", "8d00"), ("analog_pins", "127b", "5899"),
    ("input_pins", "127b", "b9fe"), ("pwm", "127b", "d822"), ("event", "93af", "9775"),
    ("send_event", "93af", "5404"), ("event_filter", "93af", "23c4"), ("event_requirement", "93af", "b84c"),
  ]

  @Test(arguments: characteristics)
  func hasTheCharacteristicsOfTheFirmware(name: String, service: String, characteristic: String) throws {
    let property = try #require(profile.property(named: name))
    #expect(property.service.description == "e95d\(service)-251d-470a-a062-fa1922dfa9a8")
    #expect(property.characteristic.description == "e95d\(characteristic)-251d-470a-a062-fa1922dfa9a8")
  }

  @Test(arguments: [("uart_rx", "0002"), ("uart_tx", "0003")])
  func hasNordicsUART(name: String, characteristic: String) throws {
    let property = try #require(profile.property(named: name))
    #expect(property.service.description == "6e400001-b5a3-f393-e0a9-e50e24dcca9e")
    #expect(property.characteristic.description == "6e40\(characteristic)-b5a3-f393-e0a9-e50e24dcca9e")
  }

  @Test func hasNoOtherProperties() {
    let known = Self.characteristics.map(\.0) + ["uart_rx", "uart_tx"]
    #expect(Set(profile.properties.map(\.name)) == Set(known))
  }

  @Test func temperatureAndPeriodMatchTheFirmware() throws {
    let temperature = Property.microbitTemperature
    #expect(temperature.codec == .int8 && temperature.unit == "°C" && temperature.kind == .state)
    #expect(temperature.access == [.read, .notify])
    #expect(
      temperature.homeAssistant
        == [HomeAssistantEntity(.sensor(.measurement), name: "Temperature", deviceClass: "temperature")])
    let period = Property.microbitPeriod
    #expect(period.codec == .uint16 && period.unit == "ms" && period.writeMode == .confirm)
    #expect(period.access == [.read, .write] && period.range == 20...65535)
    for value in [0, 1, 19, 65536] {
      #expect(error(of: CodecError.self) { try period.encode(.integer(value)) } != nil)
    }
    #expect(try period.encode(.integer(1000)).bytes == [0xE8, 0x03])
    #expect(
      period.homeAssistant
        == [
          HomeAssistantEntity(
            .number(.box), name: "Measuring interval", deviceClass: "duration", category: .config)
        ])
  }

  @Test(arguments: [Property.microbitButtonA, .microbitButtonB])
  func buttonsAreEvents(button: Property) throws {
    #expect(button.kind == .event && button.access == .notify && button.initial == nil)
    #expect(try button.codec.decode([0]) == .text("press_end"))
    #expect(try button.codec.decode([1]) == .text("press_start"))
    #expect(try button.codec.decode([2]) == .text("long_press_start"))
    #expect(try button.codec.decode([3]) == .integer(3))
    #expect(button.homeAssistant.map(\.kind) == [.event])
  }

  @Test func accelerometerAndItsPeriodMatchTheFirmware() throws {
    let accelerometer = Property.microbitAccelerometer
    #expect(accelerometer.access == [.read, .notify] && accelerometer.unit == "mg")
    #expect(accelerometer.codec.fields == ["x", "y", "z"])
    #expect(
      try accelerometer.codec.decode([0xF0, 0xFF, 4, 0, 4, 0xFC])
        == .record([.integer(-16), .integer(4), .integer(-1020)]))
    #expect(accelerometer.report == Property.Report(minInterval: .seconds(1), change: 20))
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
    #expect(try period.encode(.integer(2)).bytes == [2, 0])
    #expect(try period.encode(.integer(65535)).bytes == [0xFF, 0xFF])
  }

  @Test func ledTextIsAnEventOfAtMost20Bytes() throws {
    let text = Property.microbitLEDText
    #expect(text.kind == .event && text.access == .write && text.writeMode == .request)
    #expect(try text.encode(.text("12345678901234567890")).bytes.count == 20)
    #expect(throws: CodecError.tooLong(count: 21, most: 20)) {
      try text.encode(.text("123456789012345678901"))
    }
    #expect(text.homeAssistant.map(\.kind) == [.text, .notify])
  }

  @Test func ledMatrixIsAWritableState() throws {
    let led = Property.microbitLEDMatrix
    #expect(led.kind == .state && led.access == [.read, .write] && led.writeMode == .confirm)
    #expect(try led.encode(.text(".#.#./#####/#####/.###./..#..")).bytes == [0x0A, 0x1F, 0x1F, 0x0E, 0x04])
    // The firmware accepts 0, but then does not scroll.
    #expect(error(of: CodecError.self) { try Property.microbitScrollDelay.encode(.integer(0)) } != nil)
  }

  /// Pairs of a pin and a value; P19 and P20 have the numbers 17 and 18, and there are no others.
  @Test func pinsAreWrittenAsPairsOfNumberAndValue() throws {
    let pins = Property.microbitPins
    func value(_ names: [String]) -> Value { .list(names.map { .record([.text($0), .integer(1)]) }) }
    #expect(try pins.encode(value(["P0", "P16", "P19", "P20"])).bytes == [0, 1, 16, 1, 17, 1, 18, 1])
    #expect(try pins.codec.decode([17, 255]) == .list([.record([.text("P19"), .integer(255)])]))
    for wrong in ["P17", "P18", "P21", "0"] {
      #expect(error(of: CodecError.self) { try pins.encode(value([wrong])) } != nil, "\(wrong)")
    }
    let ten = Array(repeating: "P0", count: 10)
    #expect(try pins.encode(value(ten)).bytes.count == 20)
    #expect(throws: CodecError.tooLong(count: 22, most: 20)) { try pins.encode(value(ten + ["P1"])) }
    let pwm = Property.microbitPWM
    let record = Value.record([.text("P1"), .integer(512), .integer(20_000)])
    #expect(try pwm.encode(.list([record])).bytes == [1, 0, 2, 0x20, 0x4E, 0, 0])
    #expect(throws: CodecError.tooLong(count: 21, most: 14)) {
      try pwm.encode(.list([record, record, record]))
    }
    for modes in [Property.microbitAnalogPins, .microbitInputPins] {
      #expect(try modes.encode(.list([.text("P0"), .text("P20")])).bytes == [1, 0, 4, 0])
      #expect(error(of: CodecError.self) { try modes.encode(.list([.text("P17")])) } != nil)
    }
  }

  @Test func eventsAreRecordsOfTypeAndValue() throws {
    let event = Value.record([.integer(27), .integer(11)])
    #expect(try Property.microbitSendEvent.encode(event).bytes == [27, 0, 11, 0])
    #expect(try Property.microbitEvent.codec.decode([27, 0, 11, 0]) == .list([event]))
    let filter = Property.microbitEventFilter
    // A V2 takes one record with each write.
    #expect(filter.chunk == 4 && filter.kind == .state && filter.writeMode == .request)
    #expect(try filter.encode(.list([event, event])).bytes == [27, 0, 11, 0, 27, 0, 11, 0])
    #expect(try Property.microbitEventRequirement.codec.decode([]) == .list([]))
  }

  @Test func uartReceivesLinesAndSendsChunks() {
    #expect(Property.microbitUARTReceived.frame == "\n")
    #expect(Property.microbitUARTReceived.alternative == Property.microbitUARTSent.characteristic)
    #expect(Property.microbitUARTSent.alternative == Property.microbitUARTReceived.characteristic)
    #expect(Property.microbitUARTSent.chunk == 20 && Property.microbitUARTSent.kind == .event)
  }

  /// Those that cost least are subscribed to first, for a V1 that is short of memory.
  @Test func automaticPropertiesBeginWithTheCheapest() {
    #expect(
      profile.automaticProperties == [
        "temperature", "period", "button_a", "button_b", "led_text", "uart_rx", "uart_tx", "bearing",
        "accelerometer",
      ])
    let used = profile.limited(to: Set(profile.automaticProperties), isAutomatic: true)
    #expect(used.isAutomatic && used.requires == [])
    #expect(used.alive?.property == 0 && used.alive?.period == 1)
    for name in ["accelerometer", "bearing"] {
      #expect(used.property(named: name)?.report?.minInterval == .seconds(1))
    }
  }

  @Test func temperatureRequiresItsService() throws {
    let used = profile.limited(to: ["temperature", "period"])
    #expect(used.properties == [.microbitTemperature, .microbitPeriod])
    #expect(used.requires == [.microbitTemperatureService])
    #expect(used.missingHint == profile.missingHint && used.missingHint != nil)
    let alive = try #require(used.alive)
    #expect(used.properties[alive.property].name == "temperature")
    #expect(alive.period == 1)
  }

  @Test func buttonsNeedNoTemperatureService() {
    let buttons = profile.limited(to: ["button_a"])
    #expect(buttons.properties == [.microbitButtonA])
    #expect(buttons.requires == [] && buttons.alive == nil)
    #expect(profile.limited(to: ["button_a", "temperature"]).requires == [.microbitTemperatureService])
  }
}
