/// What the name of a value says about it. What is not sure is left out: MakeCode's levels of light and sound are 0 to
/// 255, not lux or decibels.
struct ValueMeaning: Equatable, Sendable {
  /// For people: `Soil moisture`.
  let name: String
  let unit: String?
  /// Home Assistant's.
  let deviceClass: String?

  /// A unit at the end, after `_`: `temp_C`, `pressure_hPa`.
  private static let suffixes: [String: (unit: String, deviceClass: String?)] = [
    "C": ("°C", "temperature"), "F": ("°F", "temperature"), "%": ("%", nil), "hPa": ("hPa", "pressure"),
    "kPa": ("kPa", "pressure"), "V": ("V", "voltage"), "mV": ("mV", "voltage"), "mA": ("mA", "current"),
    "ms": ("ms", "duration"), "mm": ("mm", "distance"), "cm": ("cm", "distance"), "kg": ("kg", "weight"),
    "Hz": ("Hz", "frequency"), "ppm": ("ppm", nil), "lx": ("lx", nil), "dB": ("dB", nil),
  ]

  /// Whole names, in topics.
  private static let names: [String: (unit: String, deviceClass: String)] = [
    "temperature": ("°C", "temperature"), "humidity": ("%", "humidity"),
  ]

  /// - Parameter written: the name as the program writes it.
  init(_ written: String) {
    let parts = written.split(separator: "_")
    let suffix = parts.count > 1 ? parts.last.flatMap { Self.suffixes[String($0)] } : nil
    let words = suffix == nil ? parts : Array(parts.dropLast())
    let text = words.joined(separator: " ")
    name = text.prefix(1).uppercased() + text.dropFirst()
    let known = ValueLine.key(of: words.joined(separator: "_")).flatMap { Self.names[$0.description] }
    guard let suffix else {
      (unit, deviceClass) = (known?.unit, known?.deviceClass)
      return
    }
    unit = suffix.unit
    deviceClass = suffix.deviceClass ?? (known?.unit == suffix.unit ? known?.deviceClass : nil)
  }
}
