import GATT

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
  /// The magnetic field, notified once per period, the bearing, the period, calibration.
  case magnetometer
  /// The edge connector: values of pins, what they are, pulse-width modulation.
  case pins
  /// Text in both directions.
  case uart
  /// The message bus, in both directions.
  case events
  /// The data log of a V2 (utility service).
  case log
}

extension MicroBitService {
  /// UUIDs and flags as in the Bluetooth profile of the firmware (codal-microbit-v2, `source/bluetooth`).
  fileprivate var service: GATTDatabase.Service {
    typealias Service = GATTDatabase.Service
    typealias Characteristic = GATTDatabase.Characteristic
    return switch self {
    case .temperature:
      Service(
        .microbit(0x6100), Characteristic(.microbit(0x9250), [.read, .notify], .temperature),
        Characteristic(.microbit(0x1B25), [.read, .write], .temperaturePeriod))
    case .buttons:
      Service(
        .microbit(0x9882), Characteristic(.microbit(0xDA90), [.read, .notify], .button(1), value: [0]),
        Characteristic(.microbit(0xDA91), [.read, .notify], .button(2), value: [0]))
    case .accelerometer:
      Service(
        .microbit(0x0753),
        // The initial value is that at rest, display up.
        Characteristic(.microbit(0xCA4B), [.read, .notify], .acceleration, value: [0, 0, 0, 0, 0x00, 0xFC]),
        Characteristic(.microbit(0xFB24), [.read, .write], .accelerationPeriod))
    case .led:
      Service(
        .microbit(0xD91D),
        Characteristic(.microbit(0x7B77), [.read, .write], .rows, value: [0, 0, 0, 0, 0]),
        Characteristic(.microbit(0x93EE), [.write], .stored(0...20)),
        Characteristic(.microbit(0x0D2D), [.read, .write], .stored(2...2), value: [120, 0]))
    case .magnetometer:
      Service(
        .microbit(0xF2D8),
        Characteristic(.microbit(0xFB11), [.read, .notify], .magneticField, value: [0, 0, 0, 0, 0, 0]),
        Characteristic(.microbit(0x9715), [.read, .notify], .fixed, value: [0, 0]),
        Characteristic(.microbit(0x386C), [.read, .write], .magnetometerPeriod),
        Characteristic(.microbit(0xB358), [.write, .notify], .calibration))
    case .pins:
      Service(
        .microbit(0x127B),
        Characteristic(.microbit(0x5899), [.read, .write], .stored(4...4), value: [0, 0, 0, 0]),
        Characteristic(.microbit(0xB9FE), [.read, .write], .stored(4...4), value: [0, 0, 0, 0]),
        Characteristic(.microbit(0xD822), [.write], .stored(7...14)),
        Characteristic(.microbit(0x8D00), [.read, .write, .notify], .pins))
    case .uart:
      Service(
        .microbitUART(1), Characteristic(.microbitUART(2), [.indicate], .fixed),
        Characteristic(.microbitUART(3), [.command, .write], .stored(1...20)))
    case .events:
      Service(
        .microbit(0x93AF), Characteristic(.microbit(0x9775), [.read, .notify], .event, value: [0, 0, 0, 0]),
        Characteristic(.microbit(0x5404), [.command, .write], .stored(4...4)),
        Characteristic(.microbit(0x23C4), [.write], .eventFilter),
        Characteristic(.microbit(0xB84C), [.read, .notify], .fixed))
    case .log:
      Service(
        .microbitUtilityService, Characteristic(.microbitUtility, [.command, .write, .notify], .dataLog))
    }
  }
}

extension MicroBitService {
  /// Whether the service has the property's characteristic.
  package func offers(_ property: Property) -> Bool { service.uuid == property.service }
}

extension GATTDatabase {
  package static func microBit(serial: Int, _ services: [MicroBitService]) -> GATTDatabase {
    GATTDatabase(
      [information(model: "BBC micro:bit V2", serial: String(serial), firmware: "2.1.1")]
        + services.map(\.service))
  }
}
