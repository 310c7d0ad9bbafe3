extension BluetoothUUID {
  /// A UUID of the micro:bit's own: `e95dxxxx-251d-470a-a062-fa1922dfa9a8` (codal-microbit-v2, Bluetooth
  /// profile; the same in microbit-dal for the V1).
  public static func microbit(_ number: UInt16) -> BluetoothUUID {
    BluetoothUUID(high: 0xE95D_0000_251D_470A | UInt64(number) << 32, low: 0xA062_FA19_22DF_A9A8)
  }

  /// The temperature service (MicroBitTemperatureService.cpp of codal-microbit-v2 and microbit-dal).
  public static let microbitTemperatureService = BluetoothUUID.microbit(0x6100)
  /// The button service (MicroBitButtonService.cpp of both).
  public static let microbitButtonService = BluetoothUUID.microbit(0x9882)
  /// The accelerometer service (MicroBitAccelerometerService.cpp of both).
  public static let microbitAccelerometerService = BluetoothUUID.microbit(0x0753)
  /// The magnetometer service (MicroBitMagnetometerService.cpp of both).
  public static let microbitMagnetometerService = BluetoothUUID.microbit(0xF2D8)
  /// The service of the edge connector's pins (MicroBitIOPinService.cpp of both).
  public static let microbitPinService = BluetoothUUID.microbit(0x127B)
  /// The service of the message bus (MicroBitEventService.cpp of both).
  public static let microbitEventService = BluetoothUUID.microbit(0x93AF)
  /// Nordic's UART service, with the directions exchanged (MicroBitUARTService.cpp of both).
  public static let microbitUARTService = BluetoothUUID.microbitUART(0x0001)

  /// A UUID of Nordic's UART service: `6e40xxxx-b5a3-f393-e0a9-e50e24dcca9e`.
  public static func microbitUART(_ number: UInt16) -> BluetoothUUID {
    BluetoothUUID(high: 0x6E40_0000_B5A3_F393 | UInt64(number) << 32, low: 0xE0A9_E50E_24DC_CA9E)
  }

  /// The utility service of a V2, by which its data log is read (MicroBitUtilityService.cpp of codal-microbit-v2).
  public static let microbitUtilityService = BluetoothUUID.microbit(0x0001)
  /// The characteristic of the utility service: requests are written to it, and replies notified.
  public static let microbitUtility = BluetoothUUID.microbit(0x0002)

  /// The service of the LED matrix (MicroBitLEDService.cpp of both).
  public static let microbitLEDService = BluetoothUUID.microbit(0xD91D)
}

extension Profile {
  /// How the names of micro:bits begin.
  public static let microbitNamePrefix = "BBC micro:bit"

  /// The letters in brackets of `BBC micro:bit [zugev]`.
  public static func microbitLetters(_ name: String) -> String? {
    let start = microbitNamePrefix + " ["
    guard name.hasPrefix(start), name.hasSuffix("]") else { return nil }
    let letters = name.dropFirst(start.count).dropLast()
    return letters.isEmpty ? nil : String(letters)
  }

  /// The BBC micro:bit, V1 and V2.
  ///
  /// A micro:bit's services depend on the program that runs on it. The temperature service is required only if the
  /// configuration names the temperature or its period: see ``limited(to:isAutomatic:)``. The first properties cost least on
  /// the air and in the micro:bit, and the acceleration, 50 values a second, most.
  public static let microbit: Profile = constant(
    try Profile(
      name: "microbit",
      manufacturer: "micro:bit Educational Foundation",
      model: "BBC micro:bit",
      requires: [.microbitTemperatureService],
      missingHint: MissingHint(
        problem: "its program has no Bluetooth service for the properties in use, or it is in pairing mode",
        remedy: """
          in MakeCode add a block such as "bluetooth temperature service" and download the program again; in \
          pairing mode press reset
          """),
      alive: "temperature",
      alivePeriod: "period",
      values: "uart_rx",
      valuesSet: "uart_tx",
      properties: [
        .microbitTemperature, .microbitPeriod, .microbitButtonA, .microbitButtonB, .microbitLEDText,
        .microbitLEDMatrix, .microbitScrollDelay, .microbitUARTReceived, .microbitUARTSent,
        .microbitCalibration, .microbitPins, .microbitAnalogPins, .microbitInputPins, .microbitPWM,
        .microbitEvent, .microbitSendEvent, .microbitEventFilter, .microbitEventRequirement,
        .microbitBearing, .microbitMagnetometerPeriod, .microbitMagnetometer,
        .microbitAccelerometerPeriod, .microbitAccelerometer,
      ]))
}
