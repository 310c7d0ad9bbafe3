/// A strict parser of RFC 8259, which rejects duplicate names.
package struct JSONParser {
  /// The maximum nesting, which limits the use of the stack.
  static let maximumDepth = 32
  /// The maximum of bytes in a name: the time for ``JSONPositions`` grows with it and the number of values.
  private static let longestName = 1024

  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0
  /// How many more values there may be.
  private var remaining = Int.max
  /// The positions of names and values; nil if not requested.
  private var positions: JSONPositions?

  /// Parses a document.
  /// - Throws: the first error.
  package static func parse(_ bytes: [UInt8]) throws(JSONSyntaxError) -> JSONValue {
    var parser = JSONParser(bytes: bytes)
    return try parser.document()
  }

  /// Parses a document, and records the positions of its names and values, for error messages.
  /// - Parameter most: the maximum of values: each needs many times the memory of its text.
  /// - Throws: the first error.
  package static func locate(_ bytes: [UInt8], most: Int = .max) throws(JSONSyntaxError) -> JSONDocument {
    var parser = JSONParser(bytes: bytes)
    parser.remaining = most
    parser.positions = JSONPositions()
    let value = try parser.document()
    return JSONDocument(value: value, positions: parser.positions ?? JSONPositions())
  }

  private mutating func document() throws(JSONSyntaxError) -> JSONValue {
    if let invalid = bytes.firstInvalidUTF8 {
      position = invalid
      throw error("this is not UTF-8")
    }
    // Skip a byte order mark.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    skipWhiteSpace()
    guard position < bytes.count else { throw error("the text is empty") }
    positions?.mark(position, in: bytes)
    let value = try value()
    skipWhiteSpace()
    guard position == bytes.count else { throw error("expected the end, found \(found)") }
    return value
  }

  private mutating func value() throws(JSONSyntaxError) -> JSONValue {
    guard remaining > 0 else { throw error("there are too many values") }
    remaining -= 1
    // 0, with which no value begins, at the end of the text.
    switch peek ?? 0 {
    case UInt8(ascii: "{"): return .object(try object())
    case UInt8(ascii: "["): return .array(try array())
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case _ where take("true"): return .bool(true)
    case _ where take("false"): return .bool(false)
    case _ where take("null"): return .null
    case _: throw error("expected a value, found \(found)")
    }
  }

  // MARK: Lists and objects

  private mutating func object() throws(JSONSyntaxError) -> JSONObject {
    var members: [JSONObject.Member] = []
    var names: Set<String> = []
    var end = position
    try enter()
    if !take("}") {
      repeat {
        skipWhiteSpace()
        let start = position
        guard peek == UInt8(ascii: "\"") else {
          throw error("expected a key in double quotes, found \(found)")
        }
        let name = try string()
        guard name.utf8.count <= Self.longestName else {
          position = start
          throw error("a key has at most \(Self.longestName) bytes")
        }
        positions?.enter(.name(name), at: start, in: bytes)
        positions?.leave()
        skipWhiteSpace()
        guard take(":") else { throw error("expected a colon after the key, found \(found)") }
        skipWhiteSpace()
        positions?.enter(.key(name), at: position, in: bytes)
        let value = try value()
        positions?.leave()
        members.append(JSONObject.Member(name: name, value: value))
        guard names.insert(name).inserted else {
          position = start
          throw error("duplicate key \(Excerpt(name))")
        }
        end = position
        skipWhiteSpace()
      } while take(",")
      guard take("}") else { throw missing("a comma or }", after: end) }
    }
    depth -= 1
    return JSONObject(members)
  }

  private mutating func array() throws(JSONSyntaxError) -> [JSONValue] {
    var elements: [JSONValue] = []
    var end = position
    try enter()
    if !take("]") {
      repeat {
        skipWhiteSpace()
        positions?.enter(.index(elements.count), at: position, in: bytes)
        elements.append(try value())
        positions?.leave()
        end = position
        skipWhiteSpace()
      } while take(",")
      guard take("]") else { throw missing("a comma or ]", after: end) }
    }
    depth -= 1
    return elements
  }

  private mutating func enter() throws(JSONSyntaxError) {
    depth += 1
    guard depth <= Self.maximumDepth else {
      throw error("lists and objects nest deeper than \(Self.maximumDepth)")
    }
    position += 1
    skipWhiteSpace()
  }

  // MARK: Strings

  private mutating func string() throws(JSONSyntaxError) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        return String(decoding: text, as: UTF8.self).streamSafe
      case UInt8(ascii: "\\"):
        try escape(into: &text)
      case 0..<0x20:
        throw error("a string cannot contain \(found): close it, or write \\n")
      default:
        text.append(byte)
        position += 1
      }
    }
    position = start
    throw error("this string has no end")
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONSyntaxError) {
    let start = position
    position += 2
    let letter = position <= bytes.count ? bytes[position - 1] : 0
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      guard let scalar = escapedScalar() else {
        position = start
        throw error("this \\u names no character")
      }
      text += String(Character(scalar)).utf8
    default:
      position = start
      throw error("unknown escape: write a backslash as \\\\")
    }
  }

  /// The scalar of `\uXXXX`, or of a surrogate pair of two; `position` is after the first `u`.
  private mutating func escapedScalar() -> Unicode.Scalar? {
    guard let unit = fourDigits() else { return nil }
    guard UTF16.isLeadSurrogate(unit) else { return Unicode.Scalar(unit) }
    guard take("\\u"), let trail = fourDigits(), UTF16.isTrailSurrogate(trail) else { return nil }
    return Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00))
  }

  private mutating func fourDigits() -> UInt16? {
    guard position + 4 <= bytes.count else { return nil }
    let digits = bytes[position..<position + 4]
    // UInt16(_:radix:) would accept a sign.
    guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
    position += 4
    return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  // MARK: Numbers

  private mutating func number() throws(JSONSyntaxError) -> JSONValue {
    let start = position
    var isInteger = true
    _ = take("-")
    let leadingZero = peek == UInt8(ascii: "0")
    let digits = skipDigits()
    guard digits > 0 else { throw error("expected a digit, found \(found)") }
    guard !leadingZero || digits == 1 else {
      position = start
      throw error("a number does not begin with 0")
    }
    if take(".") {
      isInteger = false
      guard skipDigits() > 0 else { throw error("expected a digit after the point, found \(found)") }
    }
    if take("e") || take("E") {
      isInteger = false
      if !take("+") { _ = take("-") }
      guard skipDigits() > 0 else { throw error("expected a digit in the exponent, found \(found)") }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isInteger, let integer = Int(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else {
      position = start
      throw error("this number is too large")
    }
    // 1e-400 is not 0.
    guard number != 0 || isZero(text) else {
      position = start
      throw error("this number is too small")
    }
    return .number(number)
  }

  private func isZero(_ number: String) -> Bool {
    number.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }.allSatisfy { "-0.".utf8.contains($0) }
  }

  /// Returns the number of digits.
  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = peek, byte.isDigit { position += 1 }
    return position - start
  }

  // MARK: Bytes

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func take(_ text: StaticString) -> Bool {
    let isThere = text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    if isThere { position += text.utf8CodeUnitCount }
    return isThere
  }

  private mutating func skipWhiteSpace() {
    while let byte = peek, byte.isWhiteSpace { position += 1 }
  }

  /// The character at the position, for an error text.
  private var found: String { bytes.dropFirst(position).firstCharacterDescription }

  /// A missing comma belongs at the end of a line, not before what follows on a later one.
  /// - Parameter end: of the last value.
  private func missing(_ expected: String, after end: Int) -> JSONSyntaxError {
    let here = error("expected \(expected), found \(found)")
    let isClosed = peek.map { "]}:".utf8.contains($0) } ?? true
    guard !isClosed, here.hint == nil, bytes[end..<position].contains(0x0A) else { return here }
    return JSONSyntaxError("expected \(expected), found the end of the line", at: end, in: bytes)
  }

  private func error(_ problem: String) -> JSONSyntaxError {
    JSONSyntaxError(problem, at: position, in: bytes)
  }
}
