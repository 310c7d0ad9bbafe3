import GATT
import JSON

/// A value for a property, as it arrives on a `…/set` topic: `2000`, or `{"value":2000,"ttl":60,"transaction":"a1"}`.
struct WriteCommand: Sendable, Equatable {
  /// Within the property's range.
  let value: Int
  /// In seconds from its arrival: when it is given up if it still waits for the device. Nil: it waits as long as it
  /// takes.
  let ttl: Int?
  /// Given back with every answer, so that the sender knows its own.
  let transaction: String?

  /// What no payload is longer than. Refused before it is looked at.
  static let longestPayload = 4096
  /// What no transaction is longer than, in bytes.
  static let longestTransaction = 256
  /// From a second to a day.
  static let ttls = 1...86_400

  /// Reads `payload` as a command for `property`.
  init(_ payload: [UInt8], for property: Property) throws(Rejection) {
    guard payload.count <= Self.longestPayload else {
      throw Rejection("the payload has \(payload.count) bytes, \(Self.longestPayload) are the most")
    }
    let document: JSONValue
    do {
      document = try JSONParser.parse(payload)
    } catch {
      throw Rejection(Self.describe(error, in: payload))
    }
    guard case .object(let object) = document else {
      self.value = try Self.value(document, of: property, shown: Excerpt(payload).description, nil)
      self.ttl = nil
      self.transaction = nil
      return
    }
    let transaction = try Self.transaction(object)
    let known = ["value", "ttl", "transaction"]
    if let unknown = object.names.first(where: { !known.contains($0) }) {
      throw Rejection("unknown key \(Excerpt(unknown)): value, ttl and transaction are known", transaction)
    }
    guard let value = object["value"] else { throw Rejection("the key value is missing", transaction) }
    self.value = try Self.value(value, of: property, shown: "value: \(Excerpt(value.bytes))", transaction)
    self.ttl = try Self.ttl(object["ttl"], transaction)
    self.transaction = transaction
  }

  /// The transaction of a command that is refused for another reason than its payload.
  static func transaction(in payload: [UInt8]) -> String? {
    guard payload.count <= longestPayload, case .object(let object) = try? JSONParser.parse(payload) else {
      return nil
    }
    return try? transaction(object)
  }

  /// The member `transaction` of a command or a request; nil when there is none.
  static func transaction(_ object: JSONObject) throws(Rejection) -> String? {
    switch object["transaction"] {
    case nil: return nil
    case .string(let text):
      guard text.utf8.count <= longestTransaction else {
        throw Rejection("the transaction is longer than \(longestTransaction) bytes")
      }
      return text
    case .some(let other): throw Rejection("the transaction is \(other.kind), not a string")
    }
  }

  private static func ttl(_ json: JSONValue?, _ transaction: String?) throws(Rejection) -> Int? {
    switch json {
    case nil: return nil
    case .integer(let seconds) where ttls.contains(seconds): return seconds
    case .some(let other):
      let range = "\(ttls.lowerBound)…\(ttls.upperBound)"
      throw Rejection("ttl: \(Excerpt(other.bytes)) is not a whole number of seconds, \(range)", transaction)
    }
  }

  private static func value(
    _ document: JSONValue, of property: Property, shown: @autoclosure () -> String, _ transaction: String?
  ) throws(Rejection) -> Int {
    let range = property.integers
    switch document {
    case .integer(let value) where range.contains(value):
      return value
    case .integer(let value):
      throw Rejection(describe("\(value)", isAbove: value > range.upperBound, property), transaction)
    case .number(let value) where value > Double(range.upperBound) || value < Double(range.lowerBound):
      throw Rejection(describe(shown(), isAbove: value > Double(range.upperBound), property), transaction)
    case .number, .null, .bool, .string, .array, .object:
      throw Rejection("\(shown()) is not a whole number in plain digits", transaction)
    }
  }

  private static func describe(_ value: String, isAbove: Bool, _ property: Property) -> String {
    isAbove
      ? "\(value) is above the largest \(property.name), \(property.integers.upperBound) \(property.unit ?? "")"
      : "\(value) is below the smallest \(property.name), \(property.integers.lowerBound) \(property.unit ?? "")"
  }

  /// What is wrong with a payload that is no JSON: most are meant as a plain number.
  private static func describe(_ error: JSONSyntaxError, in payload: [UInt8]) -> String {
    let isBlank = payload.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
    if isBlank { return "the payload is empty" }
    if payload.contains(UInt8(ascii: "{")) { return "the payload is not a JSON object: \(error)" }
    return "\(Excerpt(payload)) is not a whole number in plain digits"
  }
}

/// Why a command is refused before anything is written.
struct Rejection: Error, Sendable, Equatable {
  /// A sentence for the sender.
  let reason: String
  let transaction: String?

  init(_ reason: String, _ transaction: String? = nil) {
    self.reason = reason
    self.transaction = transaction
  }
}
