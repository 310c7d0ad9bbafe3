extension JSONValue {
  /// The value as text, without white space.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(128)
    append(to: &bytes)
    return bytes
  }

  /// ``bytes`` as a string.
  package var written: String { String(decoding: bytes, as: UTF8.self) }

  /// A string without quotes, everything else as it is written.
  package var plain: String { text ?? written }

  /// The value as text for people: an array or object is on one line if it fits, else each element or member has its
  /// own.
  /// - Parameter expanded: of how many levels each element and member has its own line, even if all would fit.
  package func text(indent: Int = 0, expanded: Int = 0) -> String {
    let line = written
    if expanded == 0 || isEmpty, indent + line.utf8.count <= 100 { return line }
    let space = String(repeating: " ", count: indent)
    func lines(_ parts: [String]) -> String {
      parts.map { "\n  \(space)\($0)" }.joined(separator: ",") + "\n\(space)"
    }
    switch self {
    case .null, .bool, .integer, .number, .string: return line
    case .array(let elements):
      return "[\(lines(elements.map { $0.text(indent: indent + 2, expanded: max(0, expanded - 1)) }))]"
    case .object(let object):
      let members = object.members.map { member in
        let value = member.value.text(indent: indent + 2, expanded: max(0, expanded - 1))
        return "\(JSONValue.string(member.name).written): \(value)"
      }
      return "{\(lines(members))}"
    }
  }

  private var isEmpty: Bool { self == [] || self == [:] }

  private func append(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .bool(let value): bytes += (value ? "true" : "false").utf8
    case .integer(let value): bytes += String(value).utf8
    // JSON cannot express infinity and NaN.
    case .number(let value): bytes += (value.isFinite ? "\(value)" : "null").utf8
    case .string(let value): JSONValue.append(value, to: &bytes)
    case .array(let elements):
      var separator = UInt8(ascii: "[")
      for element in elements {
        bytes.append(separator)
        element.append(to: &bytes)
        separator = UInt8(ascii: ",")
      }
      if elements.isEmpty { bytes.append(separator) }
      bytes.append(UInt8(ascii: "]"))
    case .object(let object):
      var separator = UInt8(ascii: "{")
      for member in object.members {
        bytes.append(separator)
        JSONValue.append(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.append(to: &bytes)
        separator = UInt8(ascii: ",")
      }
      if object.members.isEmpty { bytes.append(separator) }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// Appends `text` as a JSON string, in quotes.
  package static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    var native = text
    let isPlain = native.withUTF8 { utf8 in
      let isPlain = utf8.allSatisfy { byte in
        (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
      }
      if isPlain { bytes.append(contentsOf: utf8) }
      return isPlain
    }
    if !isPlain { for scalar in text.unicodeScalars { bytes += scalar.inJSON.utf8 } }
    bytes.append(UInt8(ascii: "\""))
  }
}
