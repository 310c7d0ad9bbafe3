import Configuration
import Devices
import GATT
import JSON

/// A command as it arrives on a `…/set` topic: `2000`, `Hello`, or `{"value":2000,"ttl":60,"transaction":"a1"}`.
struct CommandPayload: Sendable, Equatable {
  let value: EncodedValue
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

  /// Reads `payload` as a command for `property`: plain text for a text, an enumeration or bytes, else JSON.
  init(_ payload: [UInt8], for property: Property) throws(Rejection) {
    if payload.count <= Self.longestPayload, case .object(let object) = try? JSONParser.parse(payload),
      Self.isLongForm(object, property.codec)
    {
      let transaction = try Self.transaction(object)
      let known = ["value", "ttl", "transaction"]
      if let unknown = object.names.first(where: { !known.contains($0) }) {
        throw Rejection("unknown key \(Excerpt(unknown)); allowed: value, ttl, transaction", transaction)
      }
      guard let value = object["value"] else { throw Rejection("the key value is missing", transaction) }
      do throws(ValueProblem) {
        self.value = try property.value(of: value)
      } catch {
        throw Rejection(Self.describe(error, "value: ", value.bytes), transaction)
      }
      self.ttl = try Self.ttl(object["ttl"], transaction)
      self.transaction = transaction
      return
    }
    value = try Self.value(payload, for: property)
    ttl = nil
    transaction = nil
  }

  /// Reads `payload` as a value alone.
  static func value(_ payload: [UInt8], for property: Property) throws(Rejection) -> EncodedValue {
    guard payload.count <= longestPayload else {
      throw Rejection("the payload has \(payload.count) bytes, the maximum is \(longestPayload)")
    }
    do throws(ValueProblem) {
      return try property.value(ofPayload: payload)
    } catch {
      throw Rejection(describe(error, "", payload))
    }
  }

  /// Whether the object is `{"value":…,"ttl":…}`, and not a record itself, of which no field is an object.
  private static func isLongForm(_ object: JSONObject, _ codec: Codec) -> Bool {
    guard case .record = codec.description else { return true }
    if case .object = object["value"] { return true }
    return object["value"] != nil && codec.fields?.contains("value") != true
  }

  /// The transaction of a command that is rejected for another reason than its payload.
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

  /// - Parameter bytes: the value as it was sent; `key` is before it in the text.
  private static func describe(_ problem: ValueProblem, _ key: String, _ bytes: [UInt8]) -> String {
    switch problem {
    case .notWritable, .value: return problem.reason
    // Most payloads that are not JSON are meant as a plain value.
    case .syntax(let error, _) where bytes.contains(UInt8(ascii: "{")):
      return "the payload is not a JSON object: \(error)"
    case .syntax where bytes.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }):
      return "the payload is empty"
    case .syntax(_, let expected), .type(let expected, _):
      return "\(key)\(Excerpt(bytes)) is not \(expected)"
    }
  }
}

/// Why a command or request is refused before anything is done.
struct Rejection: Error, Sendable, Equatable {
  /// A sentence for the sender.
  let reason: String
  let transaction: String?

  init(_ reason: String, _ transaction: String? = nil) {
    self.reason = reason
    self.transaction = transaction
  }
}
