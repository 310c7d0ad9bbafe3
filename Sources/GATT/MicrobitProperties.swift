extension Property {
  /// The temperature of the micro:bit's chip, a few degrees above that of the room, in whole °C: int8.
  ///
  /// Notified at every sample, changed or not, so that a notification is a sign of life as well.
  public static let microbitTemperature = Property(
    name: "temperature", service: .microbitTemperatureService, characteristic: .microbit(0x9250),
    access: [.read, .notify], codec: .int8, unit: "°C",
    homeAssistant: HomeAssistantEntity(
      .sensor(.measurement), name: "Temperature", deviceClass: "temperature"))

  /// The time between two samples of the temperature, in ms: uint16, little-endian, 1000 after a reset.
  ///
  /// The firmware keeps whatever it is given, in RAM: it neither clamps nor rounds, and at 0 it samples at every idle
  /// pass. A few ms make hundreds of notifications a second of a temperature that changes in minutes, which leave
  /// others no time on the radio; hence the range. It ignores writes of fewer than two bytes.
  public static let microbitPeriod = Property(
    name: "period", service: .microbitTemperatureService, characteristic: .microbit(0x1B25),
    access: [.read, .write], codec: .uint16, unit: "ms", range: 20...0xFFFF,
    homeAssistant: HomeAssistantEntity(
      .number(.box), name: "Period", deviceClass: "duration", category: .config))

  /// Button A: see ``microbitButton(_:name:_:)``.
  public static let microbitButtonA = microbitButton("button_a", name: "Button A", 0xDA90)
  /// Button B: see ``microbitButton(_:name:_:)``.
  public static let microbitButtonB = microbitButton("button_b", name: "Button B", 0xDA91)

  /// A button: uint8, notified as 1 when it is pressed, 2 when it is still held after 1.5 s, and 0 when it is released.
  private static func microbitButton(
    _ property: String, name: String, _ characteristic: UInt16
  ) -> Property {
    Property(
      name: property, service: .microbitButtonService, characteristic: .microbit(characteristic),
      kind: .event, access: .notify,
      codec: Codec(
        builtIn: .scalar(
          Codec.Scalar(.uint8, values: [0: "press_end", 1: "press_start", 2: "long_press_start"]))),
      homeAssistant: HomeAssistantEntity(.event, name: name, deviceClass: "button"))
  }

  /// The acceleration along three axes in thousandths of that of gravity: three int16, little-endian.
  ///
  /// Notified at every sample, 50 times a second unless ``microbitAccelerometerPeriod`` was set.
  public static let microbitAccelerometer = Property(
    name: "accelerometer", service: .microbitAccelerometerService, characteristic: .microbit(0xCA4B),
    access: [.read, .notify],
    codec: Codec(
      builtIn: .record([Codec.Field("x", .int16), Codec.Field("y", .int16), Codec.Field("z", .int16)])),
    unit: "mg", report: Report(minInterval: .milliseconds(200), change: 20),
    homeAssistant: HomeAssistantEntity(.sensor(.measurement), name: "Acceleration"))

  /// The time between two samples of the acceleration, in ms: uint16, little-endian, 20 after a reset.
  ///
  /// The firmware takes the next longer one that its sensor knows, or the longest: on a V2 one of 2, 5, 10, 20, 40, 100
  /// and 1000. At 0 a V2 samples every 617 µs, and at 1 a V1.3 crashes (lancaster-university/microbit-dal#300).
  public static let microbitAccelerometerPeriod = Property(
    name: "accelerometer_period", service: .microbitAccelerometerService, characteristic: .microbit(0xFB24),
    access: [.read, .write], codec: .uint16, unit: "ms", range: 2...0xFFFF,
    homeAssistant: HomeAssistantEntity(
      .number(.box), name: "Accelerometer period", deviceClass: "duration", category: .config))

  /// A text that scrolls over the LEDs: UTF-8, of which the font has ASCII 32 to 126, and 20 bytes at most. A new one
  /// interrupts the one before it; nothing tells when it is through.
  public static let microbitLEDText = Property(
    name: "led_text", service: .microbitLEDService, characteristic: .microbit(0x93EE), kind: .event,
    access: .write, writeMode: .request, codec: .utf8, maxLength: 20,
    homeAssistant: HomeAssistantEntity(.text, name: "LED text"))
}
