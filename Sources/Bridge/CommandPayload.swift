import Configuration
import Devices
import GATT
import JSON

/// The payload of a message on a `…/set` or `…/get` topic, parsed once for all devices that it is for.
struct CommandPayload {
  /// The longest payload of a command, in bytes.
  static let longest = 4096

  let bytes: [UInt8]
  /// The payload as JSON; nil: it is too long, or not JSON.
  let json: JSONValue?

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    json = bytes.count <= Self.longest ? try? JSONParser.parse(bytes) : nil
  }

  /// The transaction of a command whose value is not used.
  var transaction: JSONValue? {
    if case .object(let object) = json { try? Sender.transaction(object) } else { nil }
  }

  /// Reads a message on a `…/get` topic, which has nothing but a transaction: `{"transaction":"a1"}`, or nothing.
  /// - Parameter sender: the transaction is added.
  func checkGet(from sender: inout Sender) throws(RequestError) {
    if bytes.allSatisfy({ $0 <= 0x20 }) { return }
    try checkLength()
    guard case .object(let object) = json else {
      throw RequestError(
        .invalid, #"\#(Excerpt(bytes)): to read a property, send nothing, or {"transaction":"…"}"#)
    }
    sender.transaction = try Sender.transaction(object)
    if let unknown = object.names.first(where: { $0 != "transaction" }) {
      throw RequestError(.invalid, "unknown key \(Excerpt(unknown)); allowed: transaction")
    }
  }

  func checkLength() throws(RequestError) {
    guard bytes.count <= Self.longest else {
      throw RequestError(.invalid, "the payload has more than \(Self.longest) bytes")
    }
  }
}

extension Command {
  /// The allowed values of `ttl`, in seconds: up to a day.
  static let ttls = 1...86_400

  /// Parses a message on a `…/set` topic: `2000`, `Hello`, or `{"value":2000,"ttl":60,"transaction":"a1"}`.
  /// - Parameters:
  ///   - codec: the property's; nil: the device has no such property.
  ///   - sender: the transaction is added.
  init(
    _ payload: CommandPayload, _ device: DeviceID, _ property: String, _ codec: Codec?,
    from sender: inout Sender
  ) throws(RequestError) {
    try payload.checkLength()
    if case .object(let object) = payload.json, Self.isLongForm(object, codec) {
      sender.transaction = try Sender.transaction(object)
      self.init(
        device, property, try Self.value(object, codec), ttl: try Self.ttl(object["ttl"]),
        sender: sender.json)
      return
    }
    let value: JSONValue
    if let json = payload.json, json.text != nil {
      value = json
    } else if let text = String(validating: payload.bytes, as: UTF8.self) {
      value = .string(text)
    } else {
      throw RequestError(
        .invalid, "\(Excerpt(payload.bytes)) is not \(codec?.valueDescription ?? "a text")")
    }
    self.init(device, property, value, sender: sender.json)
  }

  /// Whether the object is `{"value":…,"ttl":…}`, and not a record itself, of which no field is an object.
  private static func isLongForm(_ object: JSONObject, _ codec: Codec?) -> Bool {
    guard let codec, case .record = codec.description else { return true }
    if case .object = object["value"] { return true }
    return object["value"] != nil && codec.fields?.contains("value") != true
  }

  private static func value(_ object: JSONObject, _ codec: Codec?) throws(RequestError) -> JSONValue {
    // What is wrong is that there is no such property.
    guard codec != nil else { return object["value"] ?? .null }
    let known = ["value", "ttl", "transaction"]
    if let unknown = object.names.first(where: { !known.contains($0) }) {
      let hint =
        nearest(to: unknown, among: known).map { "did you mean \($0)?" }
        ?? (object["value"] == nil ? "put the value into \(isolated(object, codec))" : nil)
      throw RequestError(
        .invalid,
        "unknown key \(Excerpt(unknown)); allowed: value, ttl, transaction" + (hint.map { " (\($0))" } ?? ""))
    }
    guard let value = object["value"] else { throw RequestError(.invalid, "the key value is missing") }
    return value
  }

  /// The long form for an object that is meant as the value: a text holds it as a text.
  private static func isolated(_ object: JSONObject, _ codec: Codec?) -> String {
    let text = JSONValue.object(object).written
    guard codec?.isPlain == true, text.utf8.count <= 100 else { return #"{"value":…}"# }
    return JSONValue.object(of: [("value", .string(text))]).written
  }

  private static func ttl(_ json: JSONValue?) throws(RequestError) -> Int? {
    let expected = "a whole number of seconds, \(ttls.lowerBound)…\(ttls.upperBound)"
    switch json {
    case nil: return nil
    case .string(let text):
      throw RequestError(.invalid, "ttl: \(Excerpt(text)) is a string, not \(expected)")
    case .some(let other):
      if let seconds = other.wholeNumber, ttls.contains(seconds) { return seconds }
      throw RequestError(.invalid, "ttl: \(Excerpt(other.bytes)) is not \(expected)")
    }
  }
}
