import Configuration

/// What the name of a value and the unit behind its numbers say about it. What is not sure is left out: MakeCode's levels
/// of light and sound are 0 to 255, not lux or decibels.
struct ValueMeaning: Equatable, Sendable {
  /// The name for people: `Soil moisture`.
  let name: String
  let unit: String?
  /// The device class of Home Assistant.
  let deviceClass: String?

  /// The units of values that are known by their names in topics.
  private static let units = ["temperature": "°C", "humidity": "%"]

  /// - Parameters:
  ///   - key: the name in topics.
  ///   - written: the name as the program writes it.
  ///   - unit: that behind its numbers; that in its name counts more.
  init(_ key: ValueKey, _ written: String, unit: String? = nil) {
    let own = ValueName(written, isApart: true)?.unit
    var words = written.split(separator: "_")
    if own != nil { words.removeLast() }
    let text = words.joined(separator: " ")
    name = text.prefix(1).uppercased() + text.dropFirst()
    let known = Self.units[key.description]
    // `temperature:21°` says no more than `temperature:21`.
    self.unit = own ?? (unit == "°" && known == "°C" ? known : unit ?? known)
    deviceClass = self.unit.flatMap { Self.deviceClass(unit: $0, key.description) }
  }

  private static func deviceClass(unit: String, _ key: String) -> String? {
    func contains(_ part: String) -> Bool { key.indices.contains { key[$0...].hasPrefix(part) } }
    return switch unit {
    case "°C", "°F": "temperature"
    case "%" where contains("moisture") || contains("soil"): "moisture"
    case "%" where contains("hum"): "humidity"
    case "%" where contains("bat"): "battery"
    case "Pa", "hPa", "kPa": "pressure"
    case "V", "mV": "voltage"
    case "mA", "A": "current"
    case "W": "power"
    case "m/s", "km/h": "speed"
    case "dBm": "signal_strength"
    case "lx": "illuminance"
    case "ppm" where contains("co2"): "carbon_dioxide"
    case _: nil
    }
  }
}
