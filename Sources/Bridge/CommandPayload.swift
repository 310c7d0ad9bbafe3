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

  /// Reads `payload` as a command for a property: plain text for a text, an enumeration or bytes, else JSON.
  /// - Parameter codec: the property's; nil: the device has no such property.
  init(_ payload: [UInt8], _ codec: Codec?) throws(Rejection) {
    guard payload.count <= Self.longestPayload else {
      throw Rejection("the payload has \(payload.count) bytes, the maximum is \(Self.longestPayload)")
    }
    let json: JSONValue?
    let problem: JSONSyntaxError?
    do throws(JSONSyntaxError) {
      (json, problem) = (try JSONParser.parse(payload), nil)
    } catch {
      (json, problem) = (nil, error)
    }
    if case .object(let object) = json, Self.isLongForm(object, codec) {
      self = try CommandPayload(object)
      return
    }
    (ttl, transaction) = (nil, nil)
    if let json, codec?.isPlain != true || json.isString {
      value = json
    } else {
      value = try Self.text(payload, codec, problem)
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

  /// A payload that is not JSON, or is not meant as such.
  private static func text(
    _ payload: [UInt8], _ codec: Codec?, _ problem: JSONSyntaxError?
  ) throws(Rejection) -> JSONValue {
    if codec?.isPlain != true {
      // Most payloads that are not JSON are meant as a plain value.
      if let problem, payload.contains(UInt8(ascii: "{")) {
        throw Rejection("the payload is not a JSON object: \(problem)")
      }
      if payload.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
        throw Rejection("the payload is empty")
      }
    }
    guard let text = String(validating: payload, as: UTF8.self) else {
      throw Rejection("\(Excerpt(payload)) is not \(codec?.valueDescription ?? "a text")")
    }
    return .string(text)
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

extension JSONValue {
  fileprivate var isString: Bool { if case .string = self { true } else { false } }
}
