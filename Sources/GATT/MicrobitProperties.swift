extension Property {
  /// The temperature of the micro:bit's chip, a few degrees above that of the room, in whole °C: int8.
  ///
  /// The micro:bit notifies every sample, changed or not, so that it also shows that the link is alive.
  public static let microbitTemperature = Property(
    name: "temperature", service: .microbitTemperatureService, characteristic: .microbit(0x9250),
    access: [.read, .notify], codec: .int8, unit: "°C", isAutomatic: true,
    homeAssistant: [
      HomeAssistantEntity(.sensor(.measurement), name: "Temperature", deviceClass: "temperature")
    ])

  /// The time between two samples of the temperature, in ms: uint16, little-endian, 1000 after a reset.
  ///
  /// The firmware keeps any value, in RAM: it neither clamps nor rounds, and at 0 it samples in every idle pass. A
  /// period of a few ms causes hundreds of notifications per second, which leave no radio time for other peripherals;
  /// hence the range. Writes of fewer than two bytes are ignored.
  public static let microbitPeriod = settableTime(
    "period", name: "Measuring interval", .microbitTemperatureService, 0x1B25, range: 20...0xFFFF,
    isAutomatic: true)

  /// A time in ms that can be set: uint16, little-endian.
  private static func settableTime(
    _ property: String, name: String, _ service: BluetoothUUID, _ characteristic: UInt16,
    range: ClosedRange<Double>, settle: Duration? = nil, isAutomatic: Bool = false
  ) -> Property {
    Property(
      name: property, service: service, characteristic: .microbit(characteristic), access: [.read, .write],
      settle: settle, codec: .uint16, unit: "ms", range: range, isAutomatic: isAutomatic,
      homeAssistant: [
        HomeAssistantEntity(.number(.box), name: name, deviceClass: "duration", category: .config)
      ])
  }

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
      codec: words([0: "press_end", 1: "press_start", 2: "long_press_start"]), isAutomatic: true,
      homeAssistant: [HomeAssistantEntity(.event, name: name, deviceClass: "button")])
  }

  private static func words(_ words: [Int: String]) -> Codec {
    Codec(builtIn: .scalar(Codec.Scalar(.uint8, values: words)))
  }

  private static let axes = Codec(builtIn: .record(["x", "y", "z"].map { Codec.Field($0, .int16) }))

  /// The acceleration along three axes in thousandths of g: three int16, little-endian.
  ///
  /// The micro:bit notifies every sample: 50 times a second, unless ``microbitAccelerometerPeriod`` was set.
  public static let microbitAccelerometer = Property(
    name: "accelerometer", service: .microbitAccelerometerService, characteristic: .microbit(0xCA4B),
    access: [.read, .notify], codec: axes, unit: "mg",
    report: Report(minInterval: .seconds(1), change: 20), isAutomatic: true,
    homeAssistant: [HomeAssistantEntity(.sensor(.measurement), name: "Acceleration", isEnabled: false)])

  /// The time between two samples of the acceleration, in ms: uint16, little-endian, 20 after a reset.
  ///
  /// The firmware uses the next longer period that its sensor supports, or the longest: on a V2 one of 2, 5, 10, 20,
  /// 40, 100 and 1000. At 0 a V2 samples every 617 µs, and at 1 a V1.3 crashes (lancaster-university/microbit-dal#300).
  public static let microbitAccelerometerPeriod = settableTime(
    "accelerometer_period", name: "Accelerometer period", .microbitAccelerometerService, 0xFB24,
    range: 2...0xFFFF)

  /// A text that scrolls over the LEDs: UTF-8, at most 20 bytes; the font has ASCII 32 to 126. A new text interrupts
  /// the previous one; the end of scrolling is not reported.
  public static let microbitLEDText = Property(
    name: "led_text", service: .microbitLEDService, characteristic: .microbit(0x93EE), kind: .event,
    access: .write, writeMode: .request, codec: .utf8, maxLength: 20, isAutomatic: true,
    homeAssistant: [
      HomeAssistantEntity(.text, name: "LED text"),
      HomeAssistantEntity(.notify, key: "notify", name: "LED text"),
    ])

  /// The LEDs that are on, five rows of five: a byte for each row, with bit 4 for the LED at the left. A write
  /// clears all LEDs first (`stopAnimation` in `MicroBitLEDService.cpp`).
  ///
  /// Reading returns what the display shows, including what the program on the micro:bit draws. This may differ from
  /// the value just written: then the result is `adjusted`. Writing stops a running animation, and loses the
  /// brightness.
  public static let microbitLEDMatrix = Property(
    name: "led", service: .microbitLEDService, characteristic: .microbit(0x7B77), access: [.read, .write],
    codec: Codec(builtIn: .scalar(.bits(rows: 5, columns: 5))),
    homeAssistant: [
      HomeAssistantEntity(.text, name: "LED matrix"),
      HomeAssistantEntity(.image, key: "image", name: "LED matrix"),
    ])

  /// The time for each column of a scrolling text, in ms: uint16, little-endian, 120 after a reset. The firmware
  /// accepts 0, and then does not scroll.
  public static let microbitScrollDelay = settableTime(
    "scroll_delay", name: "Scroll delay", .microbitLEDService, 0x0D2D, range: 1...0xFFFF)

  // MARK: Magnetometer

  /// The magnetic field along three axes: three int16, little-endian. The firmware casts nT to 16 bits, which overflow
  /// beyond ±32.7 µT, less than the Earth's field (lancaster-university/microbit-dal#472): use ``microbitBearing``.
  public static let microbitMagnetometer = Property(
    name: "magnetometer", service: .microbitMagnetometerService, characteristic: .microbit(0xFB11),
    access: [.read, .notify], codec: axes, report: Report(minInterval: .seconds(1)),
    homeAssistant: [HomeAssistantEntity(.sensor(.measurement), name: "Magnetic field", isEnabled: false)])

  /// The bearing in degrees from north: uint16, little-endian. Notified only by a micro:bit that is calibrated: see
  /// ``microbitCalibration``. The notification follows that of the field, and is often lost (the firmware's queue has
  /// one place), so the bearing is polled instead. Until it is calibrated, 0 is read: that counts as unknown, also on the one degree
  /// that is north.
  public static let microbitBearing = Property(
    name: "bearing", service: .microbitMagnetometerService, characteristic: .microbit(0x9715),
    access: [.read, .notify], codec: Codec(builtIn: .scalar(Codec.Scalar(.uint16, unknown: [0]))), unit: "°",
    poll: .seconds(1), report: Report(minInterval: .seconds(1), change: 1), isAutomatic: true,
    homeAssistant: [HomeAssistantEntity(.sensor(.measurement), name: "Bearing", isEnabled: false)])

  /// The time between two samples of the magnetic field, in ms: uint16, little-endian. A V2 has 10, 20, 50 and 100.
  /// Until the chip is configured, what was written is read back (`samplePeriodUpdateNeeded` in
  /// `MicroBitMagnetometerService.cpp`): on a V1 for up to the previous period.
  public static let microbitMagnetometerPeriod = settableTime(
    "magnetometer_period", name: "Magnetometer period", .microbitMagnetometerService, 0x386C,
    range: 2...0xFFFF,
    settle: .seconds(2))

  /// Starts a calibration, and notifies its result. A person has to tilt the micro:bit meanwhile, and its program is
  /// blocked. Whether it is calibrated cannot be read (lancaster-university/microbit-dal#425), and 0, which says that this is not
  /// known, is never notified.
  public static let microbitCalibration = Property(
    name: "calibration", service: .microbitMagnetometerService, characteristic: .microbit(0xB358),
    kind: .event, access: [.notify, .write], writeMode: .request,
    codec: words([1: "start", 2: "done", 3: "failed"]),
    homeAssistant: [HomeAssistantEntity(.event, name: "Calibration", category: .diagnostic)])

  // MARK: Pins

  /// The firmware's numbers: 17 and 18 are P19 and P20 (`MicroBitIOPinService.cpp`). For any other number a V2 uses P0,
  /// and a V1 reads beyond its array.
  private static let pins = Dictionary(
    uniqueKeysWithValues: (0...18).map { ($0, "P\($0 < 17 ? $0 : $0 + 2)") })
  private static let pinField = Codec.Field("pin", Codec.Scalar(.uint8, values: pins))

  /// The values of input pins, notified when they change, and the values to write to output pins: at most ten pairs of
  /// a pin and a byte. Digital pins have 0 and 1, analogue pins 0 to 255. A value for an input pin is ignored.
  public static let microbitPins = Property(
    name: "pins", service: .microbitPinService, characteristic: .microbit(0x8D00), kind: .event,
    access: [.notify, .write], writeMode: .request,
    codec: Codec(builtIn: .list(of: .record([pinField, Codec.Field("value", .uint8)]))), maxLength: 20,
    homeAssistant: ["P0", "P1", "P2"].map { pin in
      func set(_ value: Int) -> Value { .list([.record([.text(pin), .integer(value)])]) }
      return HomeAssistantEntity(
        .switch(on: set(1), off: set(0)), key: pin.lowercased(), name: "Pin \(pin)")
    })

  /// The names of the analogue pins: a bit for each, P19 and P20 at 17 and 18; uint32, little-endian. Kept in RAM, also after a
  /// disconnect. A write of fewer than four bytes is ignored.
  public static let microbitAnalogPins = Property(
    name: "analog_pins", service: .microbitPinService, characteristic: .microbit(0x5899),
    access: [.read, .write], codec: Codec(builtIn: .flags(.uint32, pins)))

  /// The input pins, in the format of ``microbitAnalogPins``.
  public static let microbitInputPins = Property(
    name: "input_pins", service: .microbitPinService, characteristic: .microbit(0xB9FE),
    access: [.read, .write], codec: Codec(builtIn: .flags(.uint32, pins)))

  /// Pulse-width modulation of one or two pins: pin, value (0 to 1023) and period in µs (1 to 262143 on a V2). The
  /// firmware ignores larger ones, and every other length.
  public static let microbitPWM = Property(
    name: "pwm", service: .microbitPinService, characteristic: .microbit(0xD822), kind: .event,
    access: .write, writeMode: .request,
    codec: Codec(
      builtIn: .list(of: .record([pinField, Codec.Field("value", .uint16), Codec.Field("period", .uint32)]))),
    maxLength: 14)

  // MARK: UART

  /// Text from the micro:bit, one value for each line, in indications of at most 20 bytes. MakeCode's `uart write line`
  /// ends a line with a line feed; text without one is published 0.5 s after its last piece. Firmware that is built
  /// with `MICROBIT_BLE_NORDIC_STYLE_UART` exchanges the two characteristics.
  public static let microbitUARTReceived = Property(
    name: "uart_rx", service: .microbitUARTService, characteristic: .microbitUART(0x0002),
    alternative: .microbitUART(0x0003), kind: .event, access: .notify, codec: .utf8, frame: "\n",
    isAutomatic: true)

  /// Text for the micro:bit, each value a line, in pieces of 20 bytes. MakeCode's `on data received` waits for the end of
  /// a line. It buffers 60 bytes: text that the program does not read in time is lost without notice.
  public static let microbitUARTSent = Property(
    name: "uart_tx", service: .microbitUARTService, characteristic: .microbitUART(0x0003),
    alternative: .microbitUART(0x0002), kind: .event, access: .write, writeMode: .request, codec: .utf8,
    maxLength: Codec.longestValue, frame: "\n", chunk: 20, isAutomatic: true,
    homeAssistant: [HomeAssistantEntity(.notify, name: "UART")])

  // MARK: Events

  private static let event = Codec.Description.record([
    Codec.Field("type", .uint16), Codec.Field("value", .uint16),
  ])

  /// Events of the micro:bit that ``microbitEventFilter`` names: their source and value, each uint16, little-endian.
  /// The numbers of events differ between V1 and V2 (docs/microbit.md).
  public static let microbitEvent = Property(
    name: "event", service: .microbitEventService, characteristic: .microbit(0x9775), kind: .event,
    access: .notify, codec: Codec(builtIn: .list(of: event)))

  /// Raises an event in the micro:bit's program.
  public static let microbitSendEvent = Property(
    name: "send_event", service: .microbitEventService, characteristic: .microbit(0x5404), kind: .event,
    access: .write, writeMode: .request, codec: Codec(builtIn: event))

  /// The events that the micro:bit is to send on this link; a value of 0 means any. A V2 accepts one event with each
  /// write (`MicroBitEventService.cpp`).
  public static let microbitEventFilter = Property(
    name: "event_filter", service: .microbitEventService, characteristic: .microbit(0x23C4), access: .write,
    writeMode: .request, codec: Codec(builtIn: .list(of: event)), maxLength: 64, chunk: 4)

  /// An event that the micro:bit's program wants to receive. Unless it is read, the firmware keeps the filter of a link
  /// that has ended.
  public static let microbitEventRequirement = Property(
    name: "event_requirement", service: .microbitEventService, characteristic: .microbit(0xB84C),
    access: .read, codec: Codec(builtIn: .list(of: event)))
}
