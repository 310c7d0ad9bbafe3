/// BTHome, version 2: objects in the service data FCD2 of an advertisement, each an id and a value (https://bthome.io, as
/// of November 2026).
public enum BTHome {
  /// The service whose data holds the objects.
  public static let service = BluetoothUUID(short: 0xFCD2)
  /// The services of version 1, unencrypted and encrypted.
  public static let oldServices = [BluetoothUUID(short: 0x181C), BluetoothUUID(short: 0x181E)]

  /// What an object measures or reports. Several ids may be the same quantity, in another size or resolution.
  struct Quantity: Sendable {
    let name: String
    /// The name for people.
    let label: String
    var unit: String?
    let entity: HomeAssistantEntity.Kind
    let deviceClass: String?
    /// What can be measured: the largest and the smallest raw number stand for an unknown value if they are outside of it,
    /// and other numbers for a damaged frame.
    var valid: ClosedRange<Double>?
    let contents: [UInt8: Content]

    /// A battery is the device's own, and not what it measures.
    var category: HomeAssistantEntity.Category? { name == "battery" ? .diagnostic : nil }

    /// The content of an object of the quantity; all ids have the same, but for size and resolution.
    var content: Content? { contents.first?.value }
  }

  enum Content: Sendable, Hashable {
    /// A little-endian integer of so many bytes, and how many millionths one is; nil: it stays an integer.
    case number(bytes: Int, isSigned: Bool, millionths: Int?)
    case bool
    /// Seconds since 1970.
    case timestamp
    /// One byte, a word of ``words``.
    case button
    /// A byte, a word of ``words``, and how far it was turned.
    case dimmer
    /// A byte whose lowest five bits are the number of arguments, a word of ``words``, and the arguments.
    case command
    /// A byte with the length comes first.
    case text, raw
    /// About the frame or the device: no property has it.
    case information(bytes: Int)

    /// The words of an event by their numbers.
    var words: [Int: String] {
      switch self {
      case .button:
        [
          1: "press", 2: "double_press", 3: "triple_press", 4: "long_press", 5: "long_double_press",
          6: "long_triple_press", 0x80: "hold_press", 0x81: "hold_release",
        ]
      case .dimmer: [1: "rotate_left", 2: "rotate_right"]
      case .command: [0: "off", 1: "on", 2: "toggle", 3: "step_up", 4: "step_down"]
      case .number, .bool, .timestamp, .text, .raw, .information: [:]
      }
    }

    /// The names of the fields of an event that is more than a word.
    var fields: [String]? {
      switch self {
      case .dimmer: ["event_type", "steps"]
      case .command: ["event_type", "arguments"]
      case .number, .bool, .timestamp, .button, .text, .raw, .information: nil
      }
    }
  }

  // MARK: The table

  private static func u(_ bytes: Int, _ millionths: Int? = nil) -> Content {
    .number(bytes: bytes, isSigned: false, millionths: millionths)
  }

  private static func s(_ bytes: Int, _ millionths: Int? = nil) -> Content {
    .number(bytes: bytes, isSigned: true, millionths: millionths)
  }

  private static func sensor(
    _ name: String, _ contents: [UInt8: Content], label: String? = nil, unit: String? = nil,
    deviceClass: String? = nil, _ stateClass: HomeAssistantEntity.StateClass? = .measurement,
    valid: ClosedRange<Double>? = nil
  ) -> Quantity {
    Quantity(
      name: name, label: label ?? name.label, unit: unit, entity: .sensor(stateClass),
      deviceClass: deviceClass, valid: valid, contents: contents)
  }

  private static let percent = 0.0...100.0
  /// No such sensor measures below −100 °C; its largest number is a possible temperature.
  private static let degrees = -100.0...4000.0

  private static let sensors: [Quantity] = [
    sensor("battery", [0x01: u(1)], unit: "%", deviceClass: "battery", valid: percent),
    sensor(
      "temperature", [0x02: s(2, 10_000), 0x45: s(2, 100_000), 0x57: s(1), 0x58: s(1, 350_000)], unit: "°C",
      deviceClass: "temperature", valid: degrees),
    sensor(
      "humidity", [0x03: u(2, 10_000), 0x2E: u(1)], unit: "%", deviceClass: "humidity", valid: percent),
    sensor("pressure", [0x04: u(3, 10_000)], unit: "hPa", deviceClass: "atmospheric_pressure"),
    sensor("illuminance", [0x05: u(3, 10_000)], unit: "lx", deviceClass: "illuminance"),
    sensor("mass", [0x06: u(2, 10_000)], unit: "kg", deviceClass: "weight"),
    sensor("mass_lb", [0x07: u(2, 10_000)], label: "Mass", unit: "lb", deviceClass: "weight"),
    sensor("dew_point", [0x08: s(2, 10_000)], unit: "°C", deviceClass: "temperature", valid: degrees),
    sensor("count", [0x09: u(1), 0x3D: u(2), 0x3E: u(4), 0x59: s(1), 0x5A: s(2), 0x5B: s(4)]),
    sensor(
      "energy", [0x0A: u(3, 1000), 0x4D: u(4, 1000)], unit: "kWh", deviceClass: "energy", .totalIncreasing),
    sensor("power", [0x0B: u(3, 10_000), 0x5C: s(4, 10_000)], unit: "W", deviceClass: "power"),
    sensor("voltage", [0x0C: u(2, 1000), 0x4A: u(2, 100_000)], unit: "V", deviceClass: "voltage"),
    sensor("pm2_5", [0x0D: u(2)], label: "PM2.5", unit: "µg/m³", deviceClass: "pm25"),
    sensor("pm10", [0x0E: u(2)], label: "PM10", unit: "µg/m³", deviceClass: "pm10"),
    sensor("co2", [0x12: u(2)], label: "CO2", unit: "ppm", deviceClass: "carbon_dioxide"),
    sensor("tvoc", [0x13: u(2)], label: "TVOC", unit: "µg/m³", deviceClass: "volatile_organic_compounds"),
    sensor(
      "moisture", [0x14: u(2, 10_000), 0x2F: u(1)], unit: "%", deviceClass: "moisture", valid: percent),
    sensor("rotation", [0x3F: s(2, 100_000)], unit: "°"),
    sensor("distance_mm", [0x40: u(2)], label: "Distance", unit: "mm", deviceClass: "distance"),
    sensor("distance", [0x41: u(2, 100_000)], unit: "m", deviceClass: "distance"),
    sensor("duration", [0x42: u(3, 1000)], unit: "s", deviceClass: "duration"),
    sensor("current", [0x43: u(2, 1000), 0x5D: s(2, 1000)], unit: "A", deviceClass: "current"),
    sensor("speed", [0x44: u(2, 10_000), 0x62: s(4, 1)], unit: "m/s", deviceClass: "speed"),
    sensor("uv", [0x46: u(1, 100_000)], label: "UV index"),
    sensor(
      "volume", [0x47: u(2, 100_000), 0x4E: u(4, 1000)], unit: "L", deviceClass: "volume", .totalIncreasing),
    sensor("volume_ml", [0x48: u(2)], label: "Volume", unit: "mL", deviceClass: "volume", .totalIncreasing),
    sensor("volume_flow", [0x49: u(2, 1000)], unit: "m³/h", deviceClass: "volume_flow_rate"),
    sensor("gas", [0x4B: u(3, 1000), 0x4C: u(4, 1000)], unit: "m³", deviceClass: "gas", .totalIncreasing),
    sensor("water", [0x4F: u(4, 1000)], unit: "L", deviceClass: "water", .totalIncreasing),
    sensor("timestamp", [0x50: .timestamp], deviceClass: "timestamp", nil),
    sensor("acceleration", [0x51: u(2, 1000), 0x63: s(4, 1)], unit: "m/s²"),
    sensor("gyroscope", [0x52: u(2, 1000)], label: "Rotation rate", unit: "°/s"),
    sensor("text", [0x53: .text], nil),
    sensor("raw", [0x54: .raw], nil),
    sensor(
      "volume_storage", [0x55: u(4, 1000)], label: "Stored volume", unit: "L", deviceClass: "volume_storage"),
    sensor("conductivity", [0x56: u(2)], unit: "µS/cm", deviceClass: "conductivity"),
    sensor("direction", [0x5E: u(2, 10_000)], unit: "°"),
    sensor("precipitation", [0x5F: u(2, 100_000)], unit: "mm", deviceClass: "precipitation"),
    sensor("channel", [0x60: u(1)], nil),
    sensor("rotational_speed", [0x61: u(2)], unit: "rpm"),
    sensor("light_level", [0x64: u(1)]),
    sensor("settings_revision", [0x65: u(1)], nil),
  ]

  private static let flags: [Quantity] = {
    let all: [(UInt8, String, deviceClass: String?)] = [
      (0x0F, "generic", nil), (0x10, "powered", "power"), (0x11, "opening", "opening"),
      (0x15, "battery_low", "battery"), (0x16, "charging", "battery_charging"),
      (0x17, "carbon_monoxide", "carbon_monoxide"), (0x18, "cold", "cold"),
      (0x19, "connected", "connectivity"),
      (0x1A, "door", "door"), (0x1B, "garage_door", "garage_door"), (0x1C, "gas_detected", "gas"),
      (0x1D, "heat", "heat"), (0x1E, "light", "light"), (0x1F, "lock", "lock"), (0x20, "wet", "moisture"),
      (0x21, "motion", "motion"), (0x22, "moving", "moving"), (0x23, "occupancy", "occupancy"),
      (0x24, "plug", "plug"), (0x25, "presence", "presence"), (0x26, "problem", "problem"),
      (0x27, "running", "running"), (0x28, "safety", "safety"), (0x29, "smoke", "smoke"),
      (0x2A, "sound", "sound"), (0x2B, "tamper", "tamper"), (0x2C, "vibration", "vibration"),
      (0x2D, "window", "window"),
    ]
    return all.map { id, name, deviceClass in
      Quantity(
        name: name, label: name.label, entity: .binarySensor, deviceClass: deviceClass, contents: [id: .bool])
    }
  }()

  private static let events: [Quantity] = [
    (UInt8(0x3A), "button", Content.button), (0x3B, "command", .command), (0x3C, "dimmer", .dimmer),
  ]
  .map { id, name, content in
    Quantity(
      name: name, label: name.label, entity: .event, deviceClass: content == .button ? "button" : nil,
      contents: [id: content])
  }

  /// All that a property can have.
  static let quantities = sensors + flags + events

  /// The packet id, the type of the device, its firmware in four numbers or three.
  private static let information: [UInt8: Content] = [
    0x00: .information(bytes: 1), 0xF0: .information(bytes: 2), 0xF1: .information(bytes: 4),
    0xF2: .information(bytes: 3),
  ]

  /// The objects by their ids; without a quantity where no property has it.
  static let objects: [UInt8: (content: Content, quantity: Quantity?)] = {
    var objects: [UInt8: (content: Content, quantity: Quantity?)] = information.mapValues { ($0, nil) }
    for quantity in quantities {
      for (id, content) in quantity.contents { objects[id] = (content, quantity) }
    }
    return objects
  }()

  private static let byName = Dictionary(uniqueKeysWithValues: quantities.map { ($0.name, $0) })

  /// The quantity of this name.
  static func quantity(_ name: String) -> Quantity? { byName[name] }
}
