/// A name that a program gives to a value: it begins with a letter of any script, and may end with a unit: `temp_C`.
package struct ValueName: Hashable, Sendable {
  /// The name as the program writes it.
  package let written: String
  /// The key in topics, without the unit: `temp`.
  package let key: ValueKey
  /// The unit at the end of the name, as Home Assistant writes it.
  package let unit: String?

  /// The length of the longest name in characters.
  package static let longest = 32

  /// Units as programs write them, behind a number or at the end of a name after `_`.
  private static let units = [
    "°C": "°C", "C": "°C", "ºC": "°C", "℃": "°C", "°F": "°F", "F": "°F", "ºF": "°F", "℉": "°F",
  ].merging(
    ["%", "hPa", "kPa", "V", "mV", "mA", "ms", "mm", "cm", "kg", "Hz", "ppm", "lx", "dB"].map { ($0, $0) }
  ) { $1 }

  /// Units that programs write behind a number only: `sensor_A` is a name.
  private static let unitsBehindNumbers = units.merging([
    "Pa": "Pa", "lux": "lx", "Lux": "lx", "dBm": "dBm", "m/s": "m/s", "km/h": "km/h", "µg/m³": "µg/m³",
    "μg/m³": "µg/m³", "*C": "°C", "*F": "°F", "c": "°C", "°c": "°C", "f": "°F", "°f": "°F", "°": "°",
    "º": "°", "° C": "°C", "° F": "°F", "º C": "°C", "º F": "°F",
  ]) { $1 }
  /// Units behind a number and a space only: `5A` is a class.
  private static let unitsBehindSpaces = ["m", "s", "A", "W"]

  /// The unit that a word behind a number stands for; nil: none is known.
  /// - Parameter isApart: whether a space is between them.
  package static func unit(_ word: String, isApart: Bool) -> String? {
    isApart && unitsBehindSpaces.contains(word) ? word : unitsBehindNumbers[word]
  }

  /// Whether a value may have this unit, as Home Assistant writes it.
  package static func isUnit(_ text: String) -> Bool {
    unitsBehindNumbers.values.contains(text) || unitsBehindSpaces.contains(text)
  }

  /// Reads a name; nil for a text that cannot be one.
  /// - Parameter isApart: whether a packet has the name apart from its number: it may begin with any character.
  package init?(_ text: String, isApart: Bool = false) {
    guard text.utf8.count <= Self.longest || text.utf8.count <= 1024 && text.count <= Self.longest,
      let first = text.unicodeScalars.first, isApart || Self.isLetter(first)
    else { return nil }
    var stem = text[...]
    var unit: String?
    if let mark = text.utf8.lastIndex(of: UInt8(ascii: "_")) {
      unit = Self.units[String(text[text.utf8.index(after: mark)...])]
      if unit != nil { stem = text[..<mark] }
    }
    guard let key = ValueKey(name: stem) else { return nil }
    (written, self.key, self.unit) = (text, key, unit)
  }

  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    scalar.isASCII
      ? ("a"..."z").contains(Unicode.Scalar(UInt8(ascii: scalar) | 0x20)) : scalar.properties.isAlphabetic
  }
}
