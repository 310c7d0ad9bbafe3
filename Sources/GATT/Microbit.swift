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
  /// The service of the LED matrix (MicroBitLEDService.cpp of both).
  public static let microbitLEDService = BluetoothUUID.microbit(0xD91D)
}

extension Profile {
  /// The BBC micro:bit, V1 and V2.
  ///
  /// Which services there are depends on the program that runs on it. It needs the temperature service where the
  /// temperature or its period is used (see ``limited(to:)``), and none otherwise.
  public static let microbit: Profile = {
    do {
      return try Profile(
        name: "microbit",
        manufacturer: "micro:bit Educational Foundation",
        model: "BBC micro:bit",
        requires: [.microbitTemperatureService],
        missingHint: """
          its program has no Bluetooth temperature service (add it, in MakeCode the block \
          "bluetooth temperature service"), or it is in pairing mode (press reset)
          """,
        alive: "temperature",
        alivePeriod: "period",
        defaultProperties: ["temperature", "period"],
        properties: [
          .microbitTemperature, .microbitPeriod, .microbitButtonA, .microbitButtonB, .microbitAccelerometer,
          .microbitAccelerometerPeriod, .microbitLEDText,
        ])
    } catch {
      preconditionFailure("\(error)")
    }
  }()
}
