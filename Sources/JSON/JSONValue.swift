/// A JSON value (RFC 8259).
///
/// Foundation's decoder is not used: it reports neither the position of an error nor duplicate keys, accepts trailing
/// commas, needs a second for a kilobyte of brackets, and would double the program's size.
package enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  /// A number without fraction and exponent.
  case integer(Int)
  /// Any other number, or one outside the range of `Int`.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// A whole number has no fraction in the text.
  package init(number: Double) { self = Int(exactly: number).map(JSONValue.integer) ?? .number(number) }

  /// The type, for an error text: "expected a string, found a list".
  package var kind: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .integer, .number: "a number"
    case .string: "a string"
    case .array: "a list"
    case .object: "an object"
    }
  }

  /// The member of this name; nil if there is none, or this is not an object.
  package subscript(name: String) -> JSONValue? {
    if case .object(let object) = self { object[name] } else { nil }
  }

  /// The text of a string; nil for anything else.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// The number if it is an integer; nil for anything else.
  package var integer: Int? { if case .integer(let number) = self { number } else { nil } }

  /// The whole number, also if it has a fraction or an exponent in the text, as templates write: `1000.0`, `1e3`; nil for
  /// anything else. One that is too large for a `Double` to hold exactly is not known to be whole.
  package var wholeNumber: Int? {
    switch self {
    case .integer(let number): number
    case .number(let number): abs(number) < 0x1p53 ? Int(exactly: number) : nil
    case .null, .bool, .string, .array, .object: nil
    }
  }

  /// The number; nil for anything else.
  package var double: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .number(let number): number
    case .null, .bool, .string, .array, .object: nil
    }
  }

  /// The elements of a list; none for anything else.
  package var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }
}

/// The members of a JSON object in their order; the names are unique.
package struct JSONObject: Sendable, Equatable {
  package struct Member: Sendable, Equatable {
    package let name: String
    package let value: JSONValue

    package init(name: String, value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// The members in the order of the text.
  package let members: [Member]

  /// - Parameter members: with unique names, which is not checked.
  package init(_ members: [Member]) { self.members = members }

  /// The names of the members, in their order.
  package var names: [String] { members.map(\.name) }

  /// The value of the member of this name, found by linear search; nil if there is none.
  package subscript(name: String) -> JSONValue? { members.first { $0.name == name }?.value }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  package init(stringLiteral text: String) { self = .string(text) }

  /// Members with the value nil are omitted.
  package init(dictionaryLiteral members: (String, JSONValue?)...) { self = .object(of: members) }

  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}

extension JSONValue {
  /// An object with the members of both, those of `other` last; this value if one is not an object. The names must
  /// differ.
  package func merging(_ other: JSONValue) -> JSONValue {
    guard case .object(let mine) = self, case .object(let others) = other else { return self }
    return .object(JSONObject(mine.members + others.members))
  }

  /// The members of this object with another value for one, at its place or at the end; nil removes it.
  package func setting(_ name: String, to value: JSONValue?) -> JSONValue {
    var members: [(name: String, value: JSONValue?)] = []
    if case .object(let object) = self { members = object.members.map { ($0.name, $0.value) } }
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index].value = value
    } else {
      members.append((name, value))
    }
    return .object(of: members)
  }

  /// Sets a member in place, like ``setting(_:to:)``.
  package mutating func set(_ name: String, to value: JSONValue?) { self = setting(name, to: value) }

  /// The value with the changes of a JSON merge patch (RFC 7396); an object of which nothing is left is removed too.
  package func patched(by patch: JSONValue) -> JSONValue {
    guard case .object(let changes) = patch else { return patch }
    let own: [JSONObject.Member] = if case .object(let object) = self { object.members } else { [] }
    func apply(_ change: JSONValue, to value: JSONValue) -> JSONValue? {
      let value = change == .null ? [:] : value.patched(by: change)
      return value == [:] ? nil : value
    }
    // Looked up, as a request may have thousands.
    let byName = Dictionary(changes.members.map { ($0.name, $0.value) }) { $1 }
    var members: [(String, JSONValue?)] = own.map { member in
      (member.name, byName[member.name].map { apply($0, to: member.value) } ?? member.value)
    }
    let names = Set(own.map(\.name))
    for change in changes.members where !names.contains(change.name) {
      members.append((change.name, apply(change.value, to: .null)))
    }
    return .object(of: members)
  }

  /// The value without members that are `null`.
  package var withoutNulls: JSONValue {
    guard case .object(let object) = self else { return self }
    return .object(of: object.members.map { ($0.name, $0.value == .null ? nil : $0.value.withoutNulls) })
  }
}

extension JSONValue {
  /// An object of these members, sorted by name.
  package static func object(_ members: [String: JSONValue]) -> JSONValue {
    .object(of: members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// An object of these members, which have different names, without those with the value nil.
  package static func object(of members: [(String, JSONValue?)]) -> JSONValue {
    .object(
      JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
    )
  }
}
