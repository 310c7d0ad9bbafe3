/// The compiled fields of a record: names are replaced by indices, conditions by bits at a known position.
struct RecordCodec: Sendable {
  struct Field: Sendable {
    let name: String
    let scalar: ScalarCodec
    /// The field's index in the record's value; nil: hidden.
    let slot: Int?
    let isRepeated: Bool
    let condition: Condition?
    /// The index of the field whose bits it has; nil: it has bytes of its own.
    let container: Int?
    /// The field's offset from the beginning of the record; nil: it varies, or the field may be absent.
    let offset: Int?

    /// How many bytes it has of its own, if that is known without them.
    var width: Int { container == nil ? scalar.width : 0 }
    var takesTheRest: Bool { container == nil && (isRepeated || scalar.width == 0) }
    /// Whether other fields may depend on its bits, or have them.
    var isFlags: Bool { scalar.isInteger && !isRepeated && condition == nil }
  }

  /// A field is present if these bits of another field have the expected values.
  struct Condition: Sendable {
    /// The index of the other field, and where it is.
    let flags: Int
    let offset: Int
    let mask: UInt64
    let expected: UInt64

    func holds(_ bits: UInt64) -> Bool { bits & mask == expected }

    /// Whether the two conditions exclude each other.
    func excludes(_ other: Condition) -> Bool {
      flags == other.flags && (expected ^ other.expected) & mask & other.mask != 0
    }
  }

  let fields: [Field]
  /// The names of the visible fields, each once.
  let names: [String]
  /// The fields that have each of the names.
  let alternatives: [[Int]]

  /// Whether the record's fields determine its length.
  var isSelfDelimiting: Bool { !fields.contains(where: \.takesTheRest) }

  /// How many bytes a record may have. Fields that exclude each other count as if all could be present.
  var lengths: ClosedRange<Int> {
    let most = isSelfDelimiting ? fields.reduce(0) { $0 + $1.width } : Codec.longestValue
    return fields.reduce(0) { $0 + ($1.condition == nil && !$1.isRepeated ? $1.width : 0) }...most
  }

  /// What the values of a visible field are: numbers, if all fields of this name are. Nil: there is none.
  func content(of name: String) -> Codec.Content? {
    let contents = fields.filter { $0.name == name && $0.slot != nil }
      .map { $0.isRepeated ? .several : $0.scalar.content }
    return contents.first { !$0.isNumber } ?? contents.first
  }

  // MARK: Compiling

  /// Checks and compiles the description.
  init(_ description: [Codec.Field]) throws(ProfileError) {
    var fields: [Field] = []
    var names: [String] = []
    var offset: Int? = 0
    for (index, field) in description.enumerated() {
      let compiled: Field
      do throws(ProfileError) {
        compiled = try Self.compile(field, at: offset, after: fields, &names)
      } catch {
        throw error.inside(["fields", .index(index)])
      }
      fields.append(compiled)
      if compiled.container != nil { continue }
      offset = compiled.takesTheRest ? nil : compiled.offset.map { $0 + compiled.scalar.width }
    }
    try require(!names.isEmpty, ["fields"], "there is no field that is not hidden")
    let size = fields.reduce(0) { $0 + ($1.condition == nil ? $1.width : 0) }
    try require(
      size <= Codec.longestValue, ["fields"],
      "\(size) bytes are more than the \(Codec.longestValue) that a characteristic can have")
    self.fields = fields
    self.names = names
    alternatives = names.indices.map { slot in fields.indices.filter { fields[$0].slot == slot } }
  }

  private static func compile(
    _ field: Codec.Field, at offset: Int?, after others: [Field], _ names: inout [String]
  ) throws(ProfileError) -> Field {
    try require(
      isPropertyName(field.name), ["name"],
      "\"\(field.name)\" is not a name: use a-z, 0-9 and _, beginning with a letter")
    let container = try container(field, among: others)
    let scalar = try ScalarCodec(field.scalar, of: container.map { others[$0].scalar })
    guard !field.isRepeated || scalar.width > 0 && container == nil else { throw .notRepeatable }
    let condition = try condition(field, after: others)
    for other in others where !areExclusive(other.condition, condition) {
      try require(
        other.name != field.name, ["name"],
        "there is another \(field.name) that may be present at the same time: give both the same flag, "
          + "one as \"if\" and one as \"unless\"")
      try require(
        !other.takesTheRest || container != nil, ["name"],
        "\(other.name) before it takes all the bytes that remain")
    }
    if !field.isHidden, !names.contains(field.name) { names.append(field.name) }
    return Field(
      name: field.name, scalar: scalar, slot: field.isHidden ? nil : names.firstIndex(of: field.name),
      isRepeated: field.isRepeated, condition: condition, container: container,
      offset: container.map { others[$0].offset } ?? (condition == nil ? offset : nil))
  }

  private static func container(_ field: Codec.Field, among others: [Field]) throws(ProfileError) -> Int? {
    guard let name = field.container else { return nil }
    try require(field.scalar.bits != nil, ["of"], "a part of another field needs \"bit\" or \"bits\"")
    guard let index = others.firstIndex(where: { $0.name == name }), others[index].isFlags,
      others[index].slot == nil, others[index].offset != nil
    else {
      throw ProfileError(
        ["of"],
        "there is no hidden field \(name) before this one that is an integer, always present, "
          + "behind no field that is not")
    }
    return index
  }

  private static func areExclusive(_ one: Condition?, _ other: Condition?) -> Bool {
    if let one, let other { one.excludes(other) } else { false }
  }

  private static func condition(
    _ field: Codec.Field, after others: [Field]
  ) throws(ProfileError) -> Condition? {
    var condition: Condition?
    for (flag, key) in field.requiresSet.map({ ($0, "if") }) + field.requiresClear.map({ ($0, "unless") }) {
      guard let index = others.firstIndex(where: { $0.name == flag.field }) else {
        throw ProfileError([.key(key)], "\(flag): there is no field \(flag.field) before this one")
      }
      let flags = others[index]
      guard let offset = flags.offset, flags.isFlags else {
        throw ProfileError(
          [.key(key)],
          "\(flag): \(flag.field) must be an integer that is always present, behind no field that is not")
      }
      let count = 8 * flags.scalar.width
      try require(
        (0..<count).contains(flag.bit), [.key(key)], "\(flag): \(flag.field) has the bits 0 to \(count - 1)")
      if let condition, condition.flags != index {
        throw ProfileError(
          [.key(key)],
          "the flags are in two fields, \(others[condition.flags].name) and \(flag.field): "
            + "only one is supported")
      }
      let bit: UInt64 = 1 << UInt64(flag.bit)
      let expected = key == "if" ? bit : 0
      if let condition, condition.mask & bit != 0, condition.expected & bit != expected {
        throw ProfileError([.key(key)], "\(flag) cannot be both set and clear")
      }
      condition = Condition(
        flags: index, offset: offset, mask: (condition?.mask ?? 0) | bit,
        expected: (condition?.expected ?? 0) | expected)
    }
    return condition
  }

  // MARK: Decoding

  /// Decodes the record that begins at `position`, and moves `position` to its end.
  func decode(_ bytes: [UInt8], _ position: inout Int) throws(CodecError) -> Value {
    let start = position
    var values = [Value?](repeating: nil, count: names.count)
    for index in fields.indices {
      if let condition = fields[index].condition {
        let bits = fields[condition.flags].scalar.bits(bytes, at: start + condition.offset)
        guard condition.holds(bits) else { continue }
      }
      let isShared = fields[index].container != nil
      let begin = isShared ? start + (fields[index].offset ?? 0) : position
      let end = fields[index].takesTheRest ? bytes.count : begin + fields[index].scalar.width
      guard end <= bytes.count else { throw .tooShort(needed: end, bytes: bytes) }
      if let slot = fields[index].slot {
        do throws(CodecError) {
          values[slot] =
            fields[index].isRepeated
            ? try fields[index].scalar.decodeList(bytes, from: begin)
            : try fields[index].scalar.decode(bytes, from: begin, to: end)
          // An unknown value counts as an absent field: the other fields are known.
          if values[slot] == .unknown { values[slot] = nil }
        } catch {
          throw .field(fields[index].name, error)
        }
      }
      if !isShared { position = end }
    }
    return .record(values)
  }
}
