/// Why a description of a codec is refused.
public enum CodecDescriptionError: Error, Sendable, Hashable {
  /// The field at this place of `fields` is wrong.
  indirect case field(index: Int, name: String, CodecDescriptionError)
  /// A record without a visible field.
  case noVisibleFields
  /// The field's name is not `[a-z][a-z0-9_]{0,63}`.
  case fieldName(String)
  /// A field of this name may be present together with an earlier one.
  case duplicateField(String)
  /// The field follows one that takes all remaining bytes.
  case unreachable(after: String)
  /// No earlier field has this name.
  case unknownFlags(Codec.Flag)
  /// The field's bits cannot be tested: it is not an integer, not always present, or not always at the same position.
  case unusableFlags(Codec.Flag)
  /// The field has no such bit.
  case bit(Codec.Flag, count: Int)
  /// A bit is required to be both set and clear.
  case contradiction(Codec.Flag)
  /// The conditions test bits of more than one field.
  case severalFlags(String, String)
  /// A `repeat` of elements without a fixed size: text, bytes, a field with `repeat`, another list.
  case notRepeatable
  /// More bytes than a characteristic holds.
  case tooLong(Int)
  /// The scale is not a finite number, 0, or so large that values become infinite.
  case scale(Double)
  /// The offset is not a finite number, or so large that values become infinite.
  case offset(Double)
  /// Scale, offset or words need an integer type.
  case notAnInteger(key: String, type: Codec.ScalarType)
  /// An enumeration has words instead of numbers.
  case scaledEnumeration
  /// The type cannot hold this number.
  case number(Int, type: Codec.ScalarType)
  /// The type cannot hold this number, which is to stand for an unknown value.
  case unknown(Int, type: Codec.ScalarType)
  /// What is not a number has no limits.
  case notANumber(key: String)
  /// The type has no such bit.
  case flag(Int, type: Codec.ScalarType)
  /// The name of a bit is empty, or is that of another one too.
  case flagName(String)
  /// The rows or columns of a picture are missing or too many, or they are given for another type.
  case picture(key: String, isPicture: Bool)
  /// A word of the enumeration is empty, or has two numbers.
  case word(String)
}

extension CodecDescriptionError {
  /// The wrong key in the profile's JSON; for an error in a field, the key inside the field.
  public var key: String {
    switch self {
    case .field(_, _, let error): error.key
    case .noVisibleFields, .tooLong: "fields"
    case .fieldName, .duplicateField, .unreachable: "name"
    case .unknownFlags(_), .unusableFlags(_), .bit(_, _), .severalFlags(_, _): "if"
    case .contradiction: "unless"
    case .notRepeatable: "repeat"
    case .scale: "scale"
    case .offset: "offset"
    case .notAnInteger(let key, _), .picture(let key, _), .notANumber(let key): key
    case .unknown: "unknown"
    case .scaledEnumeration, .number, .word: "values"
    case .flag, .flagName: "flags"
    }
  }
}

extension CodecDescriptionError: CustomStringConvertible {
  /// A message for the author of the profile.
  public var description: String {
    switch self {
    case .field(_, let name, let error): "field \(name): \(error)"
    case .noVisibleFields: "there is no field that is not hidden"
    case .fieldName(let name): "\"\(name)\" is not a name: use a-z, 0-9 and _, beginning with a letter"
    case .duplicateField(let name):
      "there is another \(name) that may be present at the same time: give both the same flag, one as \"if\" and one "
        + "as \"unless\""
    case .unreachable(let name): "\(name) before it takes all the bytes that remain"
    case .unknownFlags(let flag): "\(flag): there is no field \(flag.field) before this one"
    case .unusableFlags(let flag):
      "\(flag): \(flag.field) must be an integer that is always present, behind no field that is not"
    case .bit(let flag, let count): "\(flag): \(flag.field) has the bits 0 to \(count - 1)"
    case .contradiction(let flag): "\(flag) cannot be both set and clear"
    case .severalFlags(let first, let second):
      "the flags are in two fields, \(first) and \(second): only one is supported"
    case .notRepeatable: "only values of a fixed size can be repeated, and only once"
    case .tooLong(let count):
      "\(count) bytes are more than the \(Codec.longestValue) that a characteristic can have"
    case .scale(let scale): "\(scale) is not a usable scale"
    case .offset(let offset): "\(offset) is not a usable offset"
    case .notAnInteger(let key, let type): "\(key) needs an integer type, not \(type.rawValue)"
    case .flag(let bit, let type): "\(type.rawValue) has no bit \(bit)"
    case .flagName(let name): name.isEmpty ? "a name is empty" : "\"\(name)\" stands for two bits"
    case .picture(let key, true):
      "bits need \(key): 1 to \(key == "rows" ? Codec.longestValue : 8)"
    case .picture(let key, false): "only bits have \(key)"
    case .scaledEnumeration: "an enumeration has no scale and no offset"
    case .notANumber(let key): "only numbers have \(key)"
    case .number(let number, let type), .unknown(let number, let type):
      "\(number) does not fit into \(type.rawValue)"
    case .word(let word): word.isEmpty ? "a word is empty" : "\"\(word)\" stands for two numbers"
    }
  }
}
