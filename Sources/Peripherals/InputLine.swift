import Configuration
import GATT
import JSON

/// A line that sets a value: `PROPERTY VALUE`.
package struct InputLine: Sendable, Equatable {
  /// The property of the profile.
  package let property: Property
  /// The property's new value.
  package let value: Value

  /// Parses a line; nil if it is empty, or a comment (`# …`).
  package init?(_ line: String, of profile: Profile) throws(PeripheralError) {
    let text = line.drop { $0 == " " || $0 == "\t" }
    guard !text.isEmpty, !text.hasPrefix("#") else { return nil }
    let words = text.split(maxSplits: 1) { $0 == " " || $0 == "\t" }
    guard let name = words.first else { return nil }
    property = try profile.served(String(name))
    let rest = words.count > 1 ? String(words[1].drop { $0 == " " || $0 == "\t" }) : ""
    guard !rest.isEmpty else {
      throw PeripheralError(
        "\(name): the value is missing (write \(name) and \(property.codec.valueDescription))")
    }
    value = try property.value(text: rest)
  }
}

extension Profile {
  /// The property of this name, if the peripheral determines its value.
  package func served(_ name: String) throws(PeripheralError) -> Property {
    guard let property = property(named: name) else {
      let hint = suggestion(for: name, among: properties.map(\.name))
      throw PeripheralError("the profile \(self.name) has no property \(Excerpt(name)) (\(hint))")
    }
    guard property.isReadable || property.isNotifying else {
      throw PeripheralError("\(name) is written by centrals, and cannot be set here")
    }
    return property
  }
}

/// Splits what is read into lines.
package struct LineBuffer: Sendable {
  /// A longer line is an error: the JSON of a value, of at most 512 bytes, is far shorter.
  package static let longest = 65_536

  /// A line with its number, from 1; nil: it was too long.
  package struct Line: Sendable, Equatable {
    package let number: Int
    package let text: String?
  }

  private var rest: [UInt8] = []
  private var number = 0
  /// The beginning of the line was too long, and has been dropped.
  private var isOverlong = false

  package init() {}

  /// The lines that `bytes` complete. With `isEnd` the last one needs no line feed.
  package mutating func lines(_ bytes: [UInt8], isEnd: Bool = false) -> [Line] {
    var lines: [Line] = []
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        lines.append(take())
      } else if rest.count == Self.longest {
        isOverlong = true
      } else {
        rest.append(byte)
      }
    }
    if isEnd, !rest.isEmpty { lines.append(take()) }
    return lines
  }

  private mutating func take() -> Line {
    if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
    defer {
      rest = []
      isOverlong = false
    }
    number += 1
    return Line(number: number, text: isOverlong ? nil : String(decoding: rest, as: UTF8.self))
  }
}
