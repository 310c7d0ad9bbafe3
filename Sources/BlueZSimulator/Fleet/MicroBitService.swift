/// A service of the virtual micro:bits; all have the device information in addition.
public enum MicroBitService: String, Sendable, CaseIterable {
  /// The chip's temperature, notified once per period, and the period.
  case temperature
  /// Buttons A and B: 0 released, 1 pressed, 2 held.
  case buttons
  /// Three int16 in mg, notified once per period, and the period.
  case accelerometer
  /// The LEDs, the scrolling text, and its speed per column.
  case led
}

extension MicroBitService {
  /// UUIDs and flags as in the Bluetooth profile of the firmware (codal-microbit-v2, `source/bluetooth`).
  fileprivate func service(hasPeriod: Bool) -> GATTDatabase.Service {
    typealias Characteristic = GATTDatabase.Characteristic
    switch self {
    case .temperature:
      let period = Characteristic(Self.uuid(0x1B25), ["read", "write"], .temperaturePeriod)
      return GATTDatabase.Service(
        Self.uuid(0x6100),
        [Characteristic(Self.uuid(0x9250), ["read", "notify"], .temperature)] + (hasPeriod ? [period] : []))
    case .buttons:
      return GATTDatabase.Service(
        Self.uuid(0x9882),
        [
          Characteristic(Self.uuid(0xDA90), ["read", "notify"], .stored(1...1), [0]),
          Characteristic(Self.uuid(0xDA91), ["read", "notify"], .stored(1...1), [0]),
        ])
    case .accelerometer:
      return GATTDatabase.Service(
        Self.uuid(0x0753),
        [
          // At rest, display up.
          Characteristic(Self.uuid(0xCA4B), ["read", "notify"], .acceleration, [0, 0, 0, 0, 0x00, 0xFC]),
          Characteristic(Self.uuid(0xFB24), ["read", "write"], .accelerationPeriod),
        ])
    case .led:
      return GATTDatabase.Service(
        Self.uuid(0xD91D),
        [
          Characteristic(Self.uuid(0x7B77), ["read", "write"], .rows, [0, 0, 0, 0, 0]),
          Characteristic(Self.uuid(0x93EE), ["write"], .stored(0...20)),
          Characteristic(Self.uuid(0x0D2D), ["read", "write"], .stored(2...2), [120, 0]),
        ])
    }
  }

  private static func uuid(_ number: Int) -> String {
    "e95d\(hex(number, digits: 4).lowercased())-251d-470a-a062-fa1922dfa9a8"
  }
}

extension GATTDatabase {
  static func microBit(
    serial: Int, _ services: [MicroBitService] = [.temperature], hasPeriod: Bool = true
  ) -> GATTDatabase {
    GATTDatabase(
      [information(model: "BBC micro:bit", serial: String(serial), firmware: "2.1.1")]
        + services.map { $0.service(hasPeriod: hasPeriod) })
  }
}
