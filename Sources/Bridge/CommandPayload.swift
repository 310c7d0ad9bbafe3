import Configuration
import GATT
import JSON

/// A command as it arrives on a `…/set` topic: `2000`, `Hello`, or `{"value":2000,"ttl":60,"transaction":"a1"}`.
struct CommandPayload: Sendable, Equatable {
  /// As in ``Command``.
  let value: JSONValue
  /// Seconds to keep the command while the device is offline; nil: no limit.
  let ttl: Int?
  /// Returned with every result.
  let transaction: String?

  /// In bytes.
  static let longestPayload = 4096
  /// In bytes.
  static let longestTransaction = 256
  /// From a second to a day.
  static let ttls = 1...86_400

  /// - Parameter codec: the property's; nil: the device has no such property.
  init(_ payload: [UInt8], _ codec: Codec?) throws(Rejection) {
    guard payload.count <= Self.longestPayload else {
      throw Rejection("the payload has \(payload.count) bytes, the maximum is \(Self.longestPayload)")
    }
    let json = try? JSONParser.parse(payload)
    if case .object(let object) = json, Self.isLongForm(object, codec) {
      self = try CommandPayload(object)
      return
    }
    (ttl, transaction) = (nil, nil)
    if let json, case .string = json {
      value = json
    } else if let text = String(validating: payload, as: UTF8.self) {
      value = .string(text)
    } else {
      throw Rejection("\(Excerpt(payload)) is not \(codec?.valueDescription ?? "a text")")
    }
  }

  private init(_ object: JSONObject) throws(Rejection) {
    let transaction = try Self.transaction(object)
    let known = ["value", "ttl", "transaction"]
    if let unknown = object.names.first(where: { !known.contains($0) }) {
      throw Rejection("unknown key \(Excerpt(unknown)); allowed: value, ttl, transaction", transaction)
    }
    guard let value = object["value"] else { throw Rejection("the key value is missing", transaction) }
    self.value = value
    self.ttl = try Self.ttl(object["ttl"], transaction)
    self.transaction = transaction
  }

  /// Whether the object is `{"value":…,"ttl":…}`, and not a record itself, of which no field is an object.
  private static func isLongForm(_ object: JSONObject, _ codec: Codec?) -> Bool {
    guard let codec, case .record = codec.description else { return true }
    if case .object = object["value"] { return true }
    return object["value"] != nil && codec.fields?.contains("value") != true
  }

  /// The transaction of a command whose payload is not used.
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
}
