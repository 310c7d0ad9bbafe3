/// Where and why a text is no JSON document.
struct JSONSyntaxError: Error, Sendable, Equatable, CustomStringConvertible {
  let position: TextPosition
  let problem: String
  /// What to do about it, for the person who edits the text; nil where that is not known.
  let hint: String?

  /// Without the hint: what a sender is told.
  var description: String { "line \(position.line), column \(position.column): \(problem)" }
}

/// Reads one JSON document: strictly RFC 8259, each name once in an object, nothing after it.
struct JSONParser {
  /// How deep lists and objects may nest: far beyond any document that means something here, far below what the
  /// stack holds.
  static let deepest = 32

  private let bytes: [UInt8]
  private var position = 0
  private var depth = 0
  /// Nil: nobody asks for them.
  private var positions: JSONPositions?

  static func parse(_ bytes: [UInt8]) throws(JSONSyntaxError) -> JSONValue {
    var parser = JSONParser(bytes: bytes)
    return try parser.document()
  }

  /// As ``parse(_:)``, for a text that a person edits: with the places of its names and values.
  static func locate(_ bytes: [UInt8]) throws(JSONSyntaxError) -> JSONDocument {
    var parser = JSONParser(bytes: bytes)
    parser.positions = JSONPositions()
    let value = try parser.document()
    return JSONDocument(value: value, positions: parser.positions ?? JSONPositions())
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  private mutating func document() throws(JSONSyntaxError) -> JSONValue {
    if let invalid = Self.firstInvalidUTF8(bytes) {
      position = invalid
      throw error("this is not UTF-8")
    }
    // A byte order mark, as some editors leave it.
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
    // A byte that no value begins with stands for the end.
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
    try enter()
    if !take("}") {
      repeat {
        skipWhiteSpace()
        let start = position
        guard peek == UInt8(ascii: "\"") else {
          throw error("expected a key in double quotes, found \(found)")
        }
        let name = try string()
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
          throw error("the key \(Excerpt(name)) is there already")
        }
        skipWhiteSpace()
      } while take(",")
      guard take("}") else { throw error("expected a comma or }, found \(found)") }
    }
    depth -= 1
    return JSONObject(members)
  }

  private mutating func array() throws(JSONSyntaxError) -> [JSONValue] {
    var elements: [JSONValue] = []
    try enter()
    if !take("]") {
      repeat {
        skipWhiteSpace()
        positions?.enter(.index(elements.count), at: position, in: bytes)
        elements.append(try value())
        positions?.leave()
        skipWhiteSpace()
      } while take(",")
      guard take("]") else { throw error("expected a comma or ], found \(found)") }
    }
    depth -= 1
    return elements
  }

  private mutating func enter() throws(JSONSyntaxError) {
    depth += 1
    guard depth <= Self.deepest else { throw error("lists and objects nest deeper than \(Self.deepest)") }
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
        return String(decoding: text, as: UTF8.self)
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
    switch position <= bytes.count ? bytes[position - 1] : 0 {
    case UInt8(ascii: "\""): text.append(UInt8(ascii: "\""))
    case UInt8(ascii: "\\"): text.append(UInt8(ascii: "\\"))
    case UInt8(ascii: "/"): text.append(UInt8(ascii: "/"))
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

  /// The scalar of `\uXXXX`, or of two that are a surrogate pair; `position` is behind the first `u`.
  private mutating func escapedScalar() -> Unicode.Scalar? {
    guard let unit = fourDigits() else { return nil }
    guard UTF16.isLeadSurrogate(unit) else { return Unicode.Scalar(unit) }
    guard take("\\u"), let trail = fourDigits(), UTF16.isTrailSurrogate(trail) else { return nil }
    return Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00))
  }

  private mutating func fourDigits() -> UInt16? {
    guard position + 4 <= bytes.count else { return nil }
    let digits = bytes[position..<position + 4]
    // UInt16(_:radix:) would take a sign.
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
    return .number(number)
  }

  /// How many digits there were.
  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
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
    while let byte = peek, Self.isWhiteSpace(byte) { position += 1 }
  }

  private static func isWhiteSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// What stands at the position, for a sentence.
  private var found: String {
    guard let byte = peek else { return "the end" }
    switch byte {
    case 0x0A, 0x0D: return "the end of the line"
    case 0x09: return "a tab"
    case 0..<0x20: return "a control character"
    case _:
      let scalars = String(decoding: bytes[position...].prefix(4), as: UTF8.self).unicodeScalars
      return "\(Excerpt(String(scalars.prefix(1))))"
    }
  }

  private func error(_ problem: String) -> JSONSyntaxError {
    let before = bytes[..<min(position, bytes.count)]
    var place = TextPosition()
    place.advance(over: before)
    return JSONSyntaxError(position: place, problem: problem, hint: hint(after: before))
  }

  /// What other kinds of JSON take, and this does not.
  private func hint(after before: ArraySlice<UInt8>) -> String? {
    let rest = bytes[before.endIndex...]
    if ["//", "/*", "#"].contains(where: { rest.starts(with: $0.utf8) }) {
      return "JSON has no comments: remove it"
    }
    let isEnd = rest.first == UInt8(ascii: "}") || rest.first == UInt8(ascii: "]")
    let isAfterComma = before.last { !Self.isWhiteSpace($0) } == UInt8(ascii: ",")
    return isEnd && isAfterComma ? "trailing comma: remove the comma before it" : nil
  }

  private static func firstInvalidUTF8(_ bytes: [UInt8]) -> Int? {
    if String(validating: bytes, as: UTF8.self) != nil { return nil }
    var parser = Unicode.UTF8.ForwardParser()
    var iterator = bytes.makeIterator()
    var valid = 0
    while case .valid(let scalar) = parser.parseScalar(from: &iterator) { valid += scalar.count }
    return valid
  }
}
