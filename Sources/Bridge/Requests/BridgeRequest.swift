import Configuration
import Devices
import GATT
import JSON
import Log

/// What the gateway itself is asked to do, on `{base}/bridge/{gateway}/request/{verb}`.
struct BridgeRequest: Sendable, Equatable {
  enum Content: Sendable, Equatable {
    case devices
    case health
    case reload
    case scan(seconds: Int)
    /// The options hold what the request names.
    case addDevice(BluetoothAddress, DeviceOptions, desired: [Named<JSONValue>])
    case removeDevice(DeviceID)
    case reconnectDevice(DeviceID)
    case renameDevice(DeviceID, to: DeviceID)
    case setOptions(DeviceID, DeviceOptionsUpdate)
    /// Nil: the configured one.
    case resetAdapter(String?)
    case setLogLevel(LogLevel)
  }

  let content: Content
  /// Given back with the answer, so that the sender knows its own.
  let transaction: String?

  /// What no payload is longer than. Refused before it is looked at.
  static let longestPayload = 64 << 10

  /// Reads the payload of a request. Whether the devices that it names exist is not looked at.
  ///
  /// - Parameter verb: `devices`, `device/add` …: what stands behind `request/` in the topic.
  init(verb: String, payload: [UInt8]) throws(Rejection) {
    let object = try Self.object(payload)
    transaction = try CommandPayload.transaction(object)
    guard let known = Verb(rawValue: verb) else {
      throw Rejection("unknown request \(Excerpt(verb)): \(Self.hint(for: verb))", transaction)
    }
    var errors: [ConfigurationError] = []
    guard let content = known.read(.object(object), &errors), errors.isEmpty else {
      throw Rejection(Self.describe(errors), transaction)
    }
    self.content = content
  }

  /// No payload at all is an object without members.
  private static func object(_ payload: [UInt8]) throws(Rejection) -> JSONObject {
    guard payload.count <= longestPayload else {
      throw Rejection("the payload has \(payload.count) bytes, \(longestPayload) are the most")
    }
    if payload.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) { return JSONObject([]) }
    let document: JSONValue
    do {
      document = try JSONParser.parse(payload)
    } catch {
      throw Rejection("the payload is not valid JSON: \(error)")
    }
    guard case .object(let object) = document else {
      throw Rejection("the payload is \(document.kind), not an object")
    }
    return object
  }

  private static func hint(for verb: String) -> String {
    let verbs = Verb.allCases.map(\.rawValue)
    if let near = nearest(to: verb, among: verbs) { return "did you mean \(near)?" }
    return "known are \(verbs.joined(separator: ", "))"
  }

  /// The first few errors: an answer that is longer than the request helps nobody.
  private static func describe(_ errors: [ConfigurationError]) -> String {
    let told = errors.prefix(5).map(\.description).joined(separator: "; ")
    return errors.count > 5 ? "\(told); and \(errors.count - 5) more" : told
  }
}
