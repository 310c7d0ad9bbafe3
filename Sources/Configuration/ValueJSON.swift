import GATT
import JSON

extension Codec {
  /// A number, a word, a boolean, a text, bytes in lower-case hex, a record as an object of its fields, a list as an
  /// array. NaN and infinities are null; an absent field is left out.
  package func json(_ value: Value) -> JSONValue {
    switch value {
    case .record(let values):
      let members = zip(fields ?? [], values).compactMap { name, value in
        value.map { JSONObject.Member(name: name, value: json($0)) }
      }
      return .object(JSONObject(members))
    case .list(let values): return .array(values.map { json($0) })
    case .integer(let number): return .integer(number)
    case .number(let number): return number.isFinite ? .number(number) : .null
    case .bool(let bool): return .bool(bool)
    case .text(let text): return .string(text)
    case .bytes(let bytes): return .string(Hexadecimal.text(bytes))
    case .unknown: return .null
    }
  }

  /// The values of the codec, for the reason of a rejection.
  package var valueDescription: String {
    if !words.isEmpty {
      return "one of \(words.inOrder.joined(separator: ", "))"
    }
    if case .flags(_, let names) = description {
      return "an array of \(names.inOrder.joined(separator: ", "))"
    }
    if let fields {
      let isList = if case .list = description { true } else { false }
      return (isList ? "a list of objects of " : "an object of ") + fields.joined(separator: ", ")
    }
    guard case .scalar(let scalar) = description else { return "an array" }
    switch scalar.type {
    case .bool: return "true or false"
    case .utf8: return "a text"
    case .bytes: return "bytes in hexadecimal digits without blanks"
    case .bits: return "rows of # and ., with / between them"
    case _: return scalar.isInteger ? "a whole number in plain digits" : "a number"
    }
  }

  /// What JSON that is none of the values is called: a text is quoted, as of bytes only its digits can be wrong.
  func found(_ json: JSONValue) -> String {
    isPlain ? json.text.map { "\(Excerpt($0))" } ?? json.kind : json.kind
  }

  /// Whether a payload is the value itself, not JSON: a text, the word of an enumeration, or bytes.
  package var isPlain: Bool {
    switch content {
    case .words, .text: true
    case .number, .bool, .several: false
    }
  }

  /// Reads a value, which may still be out of range; nil for JSON of another type.
  package func value(_ json: JSONValue) -> Value? { description.value(json) }
}

extension Codec.Description {
  fileprivate func value(_ json: JSONValue) -> Value? {
    switch (self, json) {
    case (.scalar(let scalar), _): scalar.value(json)
    case (.record(let fields), .object(let object)): Self.record(object, fields.filter { !$0.isHidden })
    case (.flags, .array(let elements)):
      Self.list(elements) { $0.text.map(Value.text) ?? $0.integer.map(Value.integer) }
    case (.list(let element), .array(let elements)): Self.list(elements) { element.value($0) }
    case (.record, _), (.flags, _), (.list, _), (.advertised, _): nil
    }
  }

  private static func list(_ elements: [JSONValue], _ value: (JSONValue) -> Value?) -> Value? {
    let values = elements.compactMap(value)
    return values.count == elements.count ? .list(values) : nil
  }

  private static func record(_ object: JSONObject, _ fields: [Codec.Field]) -> Value? {
    var names: [String] = []
    for field in fields where !names.contains(field.name) { names.append(field.name) }
    guard object.names.allSatisfy(names.contains) else { return nil }
    var values: [Value?] = []
    for name in names {
      let json = object[name]
      let value = json.flatMap { json in
        fields.lazy.filter { $0.name == name }.compactMap { Self.field(json, $0) }.first
      }
      guard (json == nil) == (value == nil) else { return nil }
      values.append(value)
    }
    return .record(values)
  }

  private static func field(_ json: JSONValue, _ field: Codec.Field) -> Value? {
    guard field.isRepeated else { return field.scalar.value(json) }
    guard case .array(let elements) = json else { return nil }
    return list(elements) { field.scalar.value($0) }
  }
}

extension Codec.Scalar {
  /// Whether the values are whole numbers, and no others.
  package var isInteger: Bool { type.integers != nil && scale == nil && offset == nil }

  fileprivate func value(_ json: JSONValue) -> Value? {
    switch (type, json) {
    case (.bool, .bool(let bool)): .bool(bool)
    case (.utf8, .string(let text)), (.bits, .string(let text)): .text(text)
    // As they are without `{"value":…}`.
    case (.utf8, .integer), (.utf8, .number), (.utf8, .bool):
      .text(json.written)
    case (.bytes, .string(let text)): Hexadecimal.bytes(text).map(Value.bytes)
    case (.bool, _), (.utf8, _), (.bytes, _), (.bits, _): nil
    // An enumeration is set by its words.
    case (_, .string(let word)): values.isEmpty ? nil : .text(word)
    case _ where !values.isEmpty: nil
    case (_, .integer(let number)): .integer(number)
    // One beyond every type is refused later, as out of range; a fraction is refused here. Home Assistant computes 0.7 s, shown in
    // minutes, to 700.0000000000001 ms.
    case (_, .number(let number)) where isInteger && abs(number) < 0x1p63:
      abs(number - number.rounded()) <= abs(number) * 1e-14
        ? JSONValue.number(number.rounded()).wholeNumber.map(Value.integer) : nil
    case (_, .number(let number)): .number(number)
    case (_, .null), (_, .bool), (_, .array), (_, .object): nil
    }
  }
}

extension Property {
  /// Why the property cannot be read on demand; nil when it can.
  package var readProblem: String? {
    if kind == .event, isNotifying {
      return "\(name) cannot be read, as it is an event: watch shows it when it happens"
    }
    return isReadable && kind == .state ? nil : "\(name) cannot be read"
  }

  /// The value that `json` stands for, if the property can be set to it.
  package func value(of json: JSONValue) throws(ValueProblem) -> EncodedValue {
    guard isWritable else { throw .value("\(name) cannot be set") }
    guard let value = codec.value(json) else {
      throw .type(expected: codec.valueDescription, found: codec.found(json))
    }
    do throws(CodecError) {
      return try encode(value)
    } catch {
      throw .value(describe(error, of: value))
    }
  }

  private func describe(_ error: CodecError, of value: Value) -> String {
    switch error {
    case .range(let number, let allowed) where number > allowed.upperBound:
      "\(value) is above the largest \(name), \(text(allowed.upperBound))"
    case .range(let number, let allowed) where number < allowed.lowerBound:
      "\(value) is below the smallest \(name), \(text(allowed.lowerBound))"
    case .tooLong(let count, let most): "\(name) has \(count) bytes, the maximum is \(most)"
    case _: error.harmless
    }
  }

  private func text(_ number: Double) -> String {
    let digits = Int(exactly: number).map(String.init) ?? "\(number)"
    return unit.map { "\(digits) \($0)" } ?? digits
  }
}

extension CodecError {
  /// The description, with an excerpt of a word that may be of any length and have invisible characters.
  package var harmless: String {
    switch self {
    case .word(let word, let known): "\(Excerpt(word)) is not one of \(known.joined(separator: ", "))"
    case .field(let name, let error): "\(name): \(error.harmless)"
    case _: description
    }
  }
}

extension JSONValue {
  /// The payload that stands for the value: a string without its quotes, or else JSON.
  package var payload: [UInt8] {
    if case .string(let text) = self { Array(text.utf8) } else { bytes }
  }
}

/// Why a property cannot be set to a value.
package enum ValueProblem: Error, Sendable {
  /// JSON of another type.
  case type(expected: String, found: String)
  /// A value that cannot be encoded, as it is out of range or too long; or the property cannot be set at all.
  case value(String)

  package var reason: String {
    switch self {
    case .type(let expected, let found): "expected \(expected), found \(found)"
    case .value(let reason): reason
    }
  }
}
