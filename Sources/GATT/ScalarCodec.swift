/// A compiled ``Codec/Scalar``: everything that does not depend on the value is computed once.
struct ScalarCodec: Sendable {
  private enum Form: Sendable {
    case unsigned, signed, float32, float64, decimalText, utf8, bytes
    case bool(isInverted: Bool)
    case decimalFloat(DecimalFloat)
    case bits(BitPicture)
  }

  private let form: Form
  /// The width in bytes; 0: all remaining bytes.
  let width: Int
  private let isBigEndian: Bool
  /// The range of the integer type, or of its bits; 0 for other types.
  private let integers: ClosedRange<Int>
  /// Whether the bits of the scalar can be flags.
  let isInteger: Bool
  /// The place of the value's lowest bit, and the value's bits when it is there.
  private let shift: UInt64
  private let mask: UInt64
  private let scaling: Scaling?
  let words: [Int: String]
  private let numbers: [String: Int]
  private let unknown: [Int]
  private let valid: ClosedRange<Double>?

  /// Checks and compiles the description.
  /// - Parameter container: has the bytes; nil: they are its own.
  init(_ scalar: Codec.Scalar, of container: ScalarCodec? = nil) throws(ProfileError) {
    let type = scalar.type
    form =
      switch type {
      case .uint8, .uint16, .uint24, .uint32, .uint64: .unsigned
      case .int8, .int16, .sint24, .int32, .int64: .signed
      case .float32: .float32
      case .float64: .float64
      case .bool: .bool(isInverted: scalar.isInverted)
      case .utf8: .utf8
      case .bytes: .bytes
      case .sfloat: .decimalFloat(.sfloat)
      case .float: .decimalFloat(.float)
      case .decimal: .decimalText
      case .bits: .bits(BitPicture(rows: scalar.rows, columns: scalar.columns))
      }
    try Self.checkPicture(scalar)
    try require(!scalar.isInverted || type == .bool, ["inverted"], "only a bool is inverted")
    try require(
      scalar.size == 0 || [.utf8, .bytes].contains(type), ["size"],
      "only utf8 and bytes have a size, not \(type.rawValue)")
    try require(
      (0...Codec.longestValue).contains(scalar.size), ["size"],
      "\(scalar.size) is no size: 1 to \(Codec.longestValue)")
    width = container?.width ?? type.width ?? scalar.size
    isBigEndian = container?.isBigEndian ?? (scalar.endian == .big)
    isInteger = type.integers != nil && scalar.bits == nil
    if let bits = scalar.bits {
      try Self.check(bits, of: 8 * width, type)
      shift = UInt64(bits.lowerBound)
      mask = UInt64.max >> UInt64(64 - bits.count)
      integers = 0...Int(clamping: mask)
    } else {
      (shift, mask) = (0, .max)
      integers = type.integers ?? 0...0
    }
    words = scalar.values
    numbers = try Self.numbers(scalar, integers)
    unknown = scalar.unknown
    valid = scalar.valid
    if scalar.scale != nil || scalar.offset != nil {
      try require(words.isEmpty, ["values"], "an enumeration has no scale and no offset")
      let key = scalar.scale != nil ? "scale" : "offset"
      try require(
        ![.bool, .utf8, .bytes, .bits].contains(type), [.key(key)], "only numbers have \(key)")
      scaling = try Scaling(
        scale: scalar.scale ?? 1, offset: scalar.offset ?? 0, of: type.integers == nil ? nil : integers)
    } else {
      scaling = nil
    }
    try checkReceived(type)
  }

  private func checkReceived(_ type: Codec.ScalarType) throws(ProfileError) {
    try require(unknown.isEmpty || unscaled != nil, ["unknown"], "only numbers have unknown")
    if type.integers != nil, let number = unknown.first(where: { !integers.contains($0) }) {
      throw .number(number, most: integers, type: type, in: "unknown")
    }
    try require(valid == nil || range != nil, ["valid"], "only numbers have valid")
  }

  /// Checks bits of a number that has `count`.
  private static func check(
    _ bits: Range<Int>, of count: Int, _ type: Codec.ScalarType
  ) throws(ProfileError) {
    if type == .bool {
      return try require(
        bits.count == 1 && bits.upperBound <= count, ["bit"],
        "there is no bit \(bits.lowerBound): the bits are 0 to \(count - 1)")
    }
    try require(
      type.integers?.lowerBound == 0, ["bits"],
      "only unsigned integers have bits, not \(type.rawValue)")
    try require(
      !bits.isEmpty, ["bits"], "0 bits have no number: the second number is how many there are")
    try require(
      bits.upperBound <= count, ["bits"],
      "there are no bits \(bits.lowerBound) to \(bits.upperBound - 1): the bits are 0 to \(count - 1), "
        + "and the second number is how many there are")
  }

  private static func checkPicture(_ scalar: Codec.Scalar) throws(ProfileError) {
    for (key, count, most) in [("rows", scalar.rows, Codec.longestValue), ("columns", scalar.columns, 8)] {
      if scalar.type == .bits {
        try require((1...most).contains(count), [.key(key)], "bits need \(key): 1 to \(most)")
      } else {
        try require(count == 0, [.key(key)], "only bits have \(key)")
      }
    }
  }

  private static func numbers(
    _ scalar: Codec.Scalar, _ integers: ClosedRange<Int>
  ) throws(ProfileError) -> [String: Int] {
    var numbers: [String: Int] = [:]
    guard !scalar.values.isEmpty else { return numbers }
    guard scalar.type.integers != nil else { throw .notAnInteger(key: "values", type: scalar.type) }
    for (number, word) in scalar.values.sorted(by: { $0.key < $1.key }) {
      guard integers.contains(number) else { throw .number(number, most: integers, type: scalar.type) }
      try require(!word.isEmpty, ["values"], "a word is empty")
      try require(
        numbers.updateValue(number, forKey: word) == nil, ["values"],
        "\"\(word)\" stands for two numbers")
    }
    return numbers
  }

  /// The numbers that can be encoded; nil if it is not a number, or is an enumeration.
  var range: ClosedRange<Double>? {
    guard words.isEmpty, let unscaled else { return nil }
    return scaling?.range(of: unscaled) ?? unscaled
  }

  /// The numbers that the bytes can hold; nil if they hold none.
  private var unscaled: ClosedRange<Double>? {
    switch form {
    case .unsigned, .signed: return Double(integers.lowerBound)...Double(integers.upperBound)
    case .float32:
      let most = Double(Float.greatestFiniteMagnitude)
      return -most...most
    case .float64: return -Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude
    case .decimalFloat(let decimal): return -decimal.limit...decimal.limit
    case .decimalText: return DecimalText.range
    case .bool, .utf8, .bytes, .bits: return nil
    }
  }

  /// The difference of two successive numbers; nil for floating-point numbers and for what is not a number.
  var step: Double? {
    switch form {
    case .unsigned, .signed: words.isEmpty ? scaling?.step ?? 1 : nil
    case .float32, .float64, .decimalFloat, .decimalText, .bool, .utf8, .bytes, .bits: nil
    }
  }

  /// What its values are.
  var content: Codec.Content {
    if !words.isEmpty { return .words(words.inOrder) }
    if range != nil { return .number(step: step) }
    return if case .bool = form { .bool } else { .text }
  }

  // MARK: Decoding

  /// Decodes `bytes` from `start` to `end`: ``width`` bytes, or any number if ``width`` is 0.
  func decode(_ bytes: [UInt8], from start: Int, to end: Int) throws(CodecError) -> Value {
    switch form {
    case .unsigned:
      let bits = self.bits(bytes, at: start) >> shift & mask
      guard let raw = Int(exactly: bits) else { throw .tooLarge(bits) }
      return try value(raw)
    case .signed:
      let above = 64 - 8 * width
      return try value(Int(Int64(bitPattern: bits(bytes, at: start) << above) >> above))
    case .float32:
      let number = Float(bitPattern: UInt32(truncatingIfNeeded: bits(bytes, at: start)))
      // The number is converted by way of its text, so that 21.3 does not become 21.299999237060547. The text is short enough
      // not to be allocated.
      return try value(number.isFinite ? Double(number.description) ?? Double(number) : Double(number))
    case .float64:
      return try value(Double(bitPattern: bits(bytes, at: start)))
    case .decimalFloat(let decimal):
      return try value(decimal.decode(bits(bytes, at: start)))
    case .decimalText:
      guard let number = DecimalText.number(bytes[start..<end]) else {
        throw .notANumber(Array(bytes[start..<end]))
      }
      guard DecimalText.range.contains(number) else {
        throw .range(value: number, allowed: DecimalText.range)
      }
      return try value(number)
    case .bool(let isInverted):
      return .bool((bits(bytes, at: start) >> shift & mask != 0) != isInverted)
    case .utf8:
      let content = width == 0 ? bytes[start..<end] : bytes[start..<end].prefix { $0 != 0 }
      guard let text = String(validating: content, as: UTF8.self) else {
        throw .notUTF8(Array(bytes[start..<end]))
      }
      return .text(text)
    case .bytes:
      return .bytes(end - start == bytes.count ? bytes : Array(bytes[start..<end]))
    case .bits(let picture):
      guard (1...picture.rows).contains(end - start) else {
        throw .length(expected: picture.rows, bytes: bytes)
      }
      return .text(picture.text(bytes[start..<end]))
    }
  }

  /// Whether `bits`, the number in the bytes, holds the value that is encoded as `bytes`.
  func holds(_ bytes: [UInt8], in bits: UInt64) -> Bool {
    (self.bits(bytes, at: 0) ^ bits) >> shift & mask == 0
  }

  /// Decodes elements from `start` to the end of `bytes`.
  func decodeList(_ bytes: [UInt8], from start: Int) throws(CodecError) -> Value {
    let count = bytes.count - start
    guard count % width == 0 else {
      throw .tooShort(needed: bytes.count + width - count % width, bytes: bytes)
    }
    var list: [Value] = []
    list.reserveCapacity(count / width)
    for element in stride(from: start, to: bytes.count, by: width) {
      list.append(try decode(bytes, from: element, to: element + width))
    }
    return .list(list)
  }

  /// The unscaled number in the bytes.
  @inline(__always)
  func bits(_ bytes: [UInt8], at start: Int) -> UInt64 {
    var bits: UInt64 = 0
    for place in 0..<width {
      bits = bits << 8 | UInt64(bytes[start + (isBigEndian ? place : width - 1 - place)])
    }
    return bits
  }

  @inline(__always)
  private func value(_ raw: Int) throws(CodecError) -> Value {
    if !unknown.isEmpty, unknown.contains(raw) { return .unknown }
    if let scaling { return try valid(scaling.value(raw)) }
    if !words.isEmpty, let word = words[raw] { return .text(word) }
    return try valid(.integer(raw))
  }

  @inline(__always)
  private func value(_ number: Double) throws(CodecError) -> Value {
    if !unknown.isEmpty, let whole = Int(exactly: number), unknown.contains(whole) { return .unknown }
    return try valid(scaling?.value(number) ?? .number(number))
  }

  /// NaN and infinities are values, which are not published as numbers.
  @inline(__always)
  private func valid(_ value: Value) throws(CodecError) -> Value {
    guard let valid, let number = value.doubleValue, number.isFinite, !valid.contains(number) else {
      return value
    }
    throw .range(value: number, allowed: valid)
  }

  // MARK: Encoding

  /// Appends the bytes of `value`.
  func encode(_ value: Value, to bytes: inout [UInt8]) throws(CodecError) {
    switch form {
    case .unsigned, .signed:
      append(UInt64(bitPattern: Int64(try raw(value))) << shift, to: &bytes)
    case .float32:
      let number = try unscaled(value)
      let single = Float(number)
      guard single.isFinite || !number.isFinite else { throw outOfRange(value) }
      append(UInt64(single.bitPattern), to: &bytes)
    case .float64:
      append(try unscaled(value).bitPattern, to: &bytes)
    case .decimalFloat(let decimal):
      guard let bits = decimal.encode(try unscaled(value)) else { throw outOfRange(value) }
      append(bits, to: &bytes)
    case .decimalText:
      let number = try unscaled(value)
      guard DecimalText.range.contains(number) else { throw outOfRange(value) }
      let text = DecimalText.text(number).utf8
      guard text.count <= DecimalText.longest else {
        throw .tooLong(count: text.count, most: DecimalText.longest)
      }
      bytes.append(contentsOf: text)
    case .bool(let isInverted):
      guard case .bool(let isTrue) = value else { throw wrongKind(value, "true or false") }
      append((isTrue != isInverted ? 1 : 0) << shift, to: &bytes)
    case .utf8:
      guard case .text(let text) = value else { throw wrongKind(value, "text") }
      let rest = width - text.utf8.count
      guard width == 0 || rest >= 0 else { throw .tooLong(count: text.utf8.count, most: width) }
      bytes.append(contentsOf: text.utf8)
      if rest > 0 { bytes += [UInt8](repeating: 0, count: rest) }
    case .bytes:
      guard case .bytes(let content) = value else { throw wrongKind(value, "bytes") }
      guard width == 0 || content.count == width else { throw .length(expected: width, bytes: content) }
      bytes.append(contentsOf: content)
    case .bits(let picture):
      guard case .text(let text) = value, let rows = picture.bytes(text) else {
        throw wrongKind(value, "up to \(picture.rows) rows such as \(picture.example)")
      }
      bytes.append(contentsOf: rows)
    }
  }

  /// Appends the bytes of every element.
  func encodeList(_ value: Value, to bytes: inout [UInt8]) throws(CodecError) {
    guard case .list(let list) = value else { throw wrongKind(value, "a list") }
    for element in list { try encode(element, to: &bytes) }
  }

  /// Appends an unscaled number.
  func append(_ bits: UInt64, to bytes: inout [UInt8]) {
    for place in 0..<width {
      bytes.append(UInt8(truncatingIfNeeded: bits >> (8 * (isBigEndian ? width - 1 - place : place))))
    }
  }

  private func raw(_ value: Value) throws(CodecError) -> Int {
    let raw: Int
    switch value {
    case .text(let word) where !words.isEmpty:
      guard let number = numbers[word] else { throw unknown(word) }
      return number
    case .integer(let number) where scaling == nil:
      raw = number
    case .integer, .number:
      let number = try self.number(value)
      let exact = scaling?.raw(number).rounded() ?? number
      guard let whole = Int(exactly: exact) else {
        throw abs(exact) < 0x1p63 ? wrongKind(value, "a whole number") : outOfRange(value)
      }
      raw = whole
    case .text, .bool, .bytes, .record, .list, .unknown:
      throw wrongKind(value, words.isEmpty ? "a number" : "a word or its number")
    }
    guard words.isEmpty || words[raw] != nil else { throw unknown("\(raw)") }
    guard integers.contains(raw) else { throw outOfRange(value) }
    return raw
  }

  private func number(_ value: Value) throws(CodecError) -> Double {
    guard let number = value.doubleValue else { throw wrongKind(value, "a number") }
    return number
  }

  /// The number that the bytes are to hold.
  private func unscaled(_ value: Value) throws(CodecError) -> Double {
    let number = try self.number(value)
    return scaling?.raw(number) ?? number
  }

  private func unknown(_ word: String) -> CodecError { .word(word, known: words.inOrder) }

  private func outOfRange(_ value: Value) -> CodecError {
    .range(value: value.doubleValue ?? 0, allowed: range ?? 0...0)
  }

  private func wrongKind(_ value: Value, _ expected: String) -> CodecError {
    .kind(expected: expected, found: value.kind)
  }
}
