/// A JSON document (RFC 8259), as read from the configuration and from the broker, and as sent to it.
///
/// Its own, since Foundation's decoder says neither where a document is wrong nor that a key stands twice, takes
/// trailing commas, and needs a second for a kilobyte of brackets; and it would double the program's size.
enum JSONValue: Sendable, Equatable {
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
  var kind: String {
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
  subscript(name: String) -> JSONValue? {
    if case .object(let object) = self { object[name] } else { nil }
  }
}

/// The members of a JSON object in their order; no name stands twice.
struct JSONObject: Sendable, Equatable {
  struct Member: Sendable, Equatable {
    let name: String
    let value: JSONValue
  }

  let members: [Member]

  init(_ members: [Member]) {
    self.members = members
  }

  var names: [String] { members.map(\.name) }

  subscript(name: String) -> JSONValue? { members.first { $0.name == name }?.value }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
  /// A member whose value is nil is left out.
  init(dictionaryLiteral members: (String, JSONValue?)...) {
    self = .object(
      JSONObject(members.compactMap { name, value in value.map { JSONObject.Member(name: name, value: $0) } })
    )
  }

  init(arrayLiteral elements: JSONValue...) {
    self = .array(elements)
  }
}

extension JSONValue {
  /// The members of both, where both are objects.
  func merging(_ other: JSONValue) -> JSONValue {
    guard case .object(let mine) = self, case .object(let others) = other else { return self }
    return .object(JSONObject(mine.members + others.members))
  }
}

extension JSONValue {
  /// An object of these members, in the order of their names.
  static func object(_ members: [String: JSONValue]) -> JSONValue {
    .object(
      JSONObject(
        members.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: $0.value) }))
  }
}
