/// A JSON document (RFC 8259), as read from the configuration and from the broker, and as sent to it.
///
/// Its own, since Foundation's decoder says neither where a document is wrong nor that a key stands twice, takes
/// trailing commas, and needs a second for a kilobyte of brackets; and it would double the program's size.
package enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  /// A number written without fraction and exponent.
  case integer(Int)
  /// Every other number, and those beyond `Int`.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// What it is, for a sentence: "expected a string, found a list".
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

  /// The member of this name; nil when there is none, or when this is no object.
  package subscript(name: String) -> JSONValue? {
    if case .object(let object) = self { object[name] } else { nil }
  }
}

/// The members of a JSON object in their order; no name stands twice.
package struct JSONObject: Sendable, Equatable {
  /// A name and its value.
  package struct Member: Sendable, Equatable {
    package let name: String
    package let value: JSONValue

    package init(name: String, value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// In the order of the text.
  package let members: [Member]

  /// - Parameter members: with different names; this is not checked.
  package init(_ members: [Member]) {
    self.members = members
  }

  /// The names of the members, in their order.
  package var names: [String] { members.map(\.name) }

  /// The value of the member of this name; nil when there is none. Takes time in proportion to the members.
  package subscript(name: String) -> JSONValue? { members.first { $0.name == name }?.value }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  /// A string.
  package init(stringLiteral text: String) {
    self = .string(text)
  }

  /// A member whose value is nil is left out.
  package init(dictionaryLiteral members: (String, JSONValue?)...) {
    self = .object(
      JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
    )
  }

  /// A list of these elements.
  package init(arrayLiteral elements: JSONValue...) {
    self = .array(elements)
  }
}

extension JSONValue {
  /// The members of both, those of `other` last, where both are objects; else this value. The names must differ.
  package func merging(_ other: JSONValue) -> JSONValue {
    guard case .object(let mine) = self, case .object(let others) = other else { return self }
    return .object(JSONObject(mine.members + others.members))
  }
}

extension JSONValue {
  /// An object of these members, in the order of their names.
  package static func object(_ members: [String: JSONValue]) -> JSONValue {
    .object(
      JSONObject(
        members.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: $0.value) }))
  }
}
