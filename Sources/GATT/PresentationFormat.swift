/// The value of the descriptor 0x2904: how the bytes of a characteristic are to be read (Core Specification Vol 3,
/// Part G, 3.3.3.5).
package struct PresentationFormat: Sendable, Equatable {
  /// The number of the format.
  package let format: UInt8
  /// The value is the number times ten to this power.
  package let exponent: Int8
  package let unit: UInt16

  /// Parses the value of the descriptor; nil: its length is wrong.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == 7 else { return nil }
    format = bytes[0]
    exponent = Int8(bitPattern: bytes[1])
    unit = UInt16(bytes[2]) | UInt16(bytes[3]) << 8
  }

  /// The name of the format: `sint16`.
  package var formatName: String {
    Self.formats.indices.contains(Int(format)) ? Self.formats[Int(format)] : "format \(format)"
  }

  /// The unit in words: `degree Celsius`; nil: without one.
  package var unitName: String? {
    unit == Self.unitless ? nil : Self.units[unit] ?? "unit 0x\(Hexadecimal.text(unit, bytes: 2))"
  }

  private static let unitless: UInt16 = 0x2700

  /// The names of the formats, by number (Assigned Numbers, 2.4.1).
  private static let formats = [
    "reserved", "boolean", "uint2", "uint4", "uint8", "uint12", "uint16", "uint24", "uint32", "uint48",
    "uint64",
    "uint128", "sint8", "sint12", "sint16", "sint24", "sint32", "sint48", "sint64", "sint128", "float32",
    "float64", "medfloat16", "medfloat32", "uint16[2]", "utf8s", "utf16s", "struct",
  ]

  /// The more common ones (Assigned Numbers, 3.5).
  private static let units: [UInt16: String] = [
    0x2701: "metre", 0x2702: "kilogram", 0x2703: "second", 0x2704: "ampere", 0x2705: "kelvin", 0x2706: "mole",
    0x2707: "candela", 0x2710: "square metre", 0x2711: "cubic metre", 0x2712: "metre per second",
    0x2713: "metre per second squared", 0x2720: "radian", 0x2722: "hertz", 0x2723: "newton", 0x2724: "pascal",
    0x2725: "joule", 0x2726: "watt", 0x2727: "coulomb", 0x2728: "volt", 0x2729: "farad", 0x272A: "ohm",
    0x272D: "tesla", 0x272F: "degree Celsius", 0x2730: "lumen", 0x2731: "lux", 0x2760: "minute",
    0x2761: "hour",
    0x2762: "day", 0x2763: "degree", 0x2780: "bar", 0x27A6: "kilometre per hour", 0x27A7: "mile per hour",
    0x27A8: "revolution per minute", 0x27AB: "kilowatt hour", 0x27AC: "degree Fahrenheit", 0x27AD: "percent",
    0x27AE: "per mille", 0x27AF: "beats per minute", 0x27B0: "ampere hour", 0x27B8: "pound",
    0x27C3: "decibel", 0x27C4: "parts per million", 0x27C5: "parts per billion",
  ]
}

extension PresentationFormat: CustomStringConvertible {
  /// `sint16 × 10^-2, degree Celsius`.
  package var description: String {
    formatName + (exponent == 0 ? "" : " × 10^\(exponent)") + (unitName.map { ", \($0)" } ?? "")
  }
}
