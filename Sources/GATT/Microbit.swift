extension BluetoothUUID {
  /// A UUID of the micro:bit's own: `e95dxxxx-251d-470a-a062-fa1922dfa9a8` (codal-microbit-v2, Bluetooth
  /// profile; the same in microbit-dal for the V1).
  public static func microbit(_ number: UInt16) -> BluetoothUUID {
    BluetoothUUID(high: 0xE95D_0000_251D_470A | UInt64(number) << 32, low: 0xA062_FA19_22DF_A9A8)
  }
}

extension Profile {
  /// The BBC micro:bit, V1 and V2.
  public static let microbit = Profile(
    name: "microbit",
    manufacturer: "micro:bit Educational Foundation",
    model: "BBC micro:bit",
    identifyingService: .microbitTemperatureService,
    missingHint: """
      its program has no Bluetooth temperature service (add it, in MakeCode the block \
      "bluetooth temperature service"), or it is in pairing mode (press reset)
      """,
    properties: [.microbitTemperature, .microbitPeriod]
  )
}

extension BluetoothUUID {
  /// The temperature service (MicroBitTemperatureService.cpp of codal-microbit-v2 and microbit-dal).
  public static let microbitTemperatureService = BluetoothUUID.microbit(0x6100)
}

extension Property {
  /// The temperature of the micro:bit's chip, a few degrees above that of the room, in whole °C: int8.
  ///
  /// Notified at every sample, changed or not, so that a notification is a sign of life as well.
  public static let microbitTemperature = Property(
    name: "temperature", service: .microbitTemperatureService, characteristic: .microbit(0x9250),
    codec: .int8, access: [.read, .notify], unit: "°C",
    homeAssistant: HomeAssistantEntity(
      .sensor(.measurement), name: "Temperature", deviceClass: "temperature"))

  /// The time between two samples of the temperature, in ms: uint16, little-endian, 1000 after a reset.
  ///
  /// The firmware keeps whatever it is given, in RAM: it neither clamps nor rounds, and at 0 it samples at every idle
  /// pass. A few ms make hundreds of notifications a second of a temperature that changes in minutes, which leave
  /// others no time on the radio; hence the range. It ignores writes of fewer than two bytes.
  public static let microbitPeriod = Property(
    name: "period", service: .microbitTemperatureService, characteristic: .microbit(0x1B25),
    codec: .uint16, access: [.read, .write], unit: "ms", range: 20...0xFFFF,
    homeAssistant: HomeAssistantEntity(
      .number(.box), name: "Period", deviceClass: "duration", category: .config))
}
