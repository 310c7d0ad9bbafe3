import Configuration
import Devices
import GATT
import JSON
import Log

/// A request to the gateway, on `{base}/bridge/{gateway}/request/{verb}`.
struct BridgeRequest: Sendable, Equatable {
  enum Content: Sendable, Equatable {
    case devices
    case health
    case reload
    case scan(seconds: Int)
    case addDevice(BluetoothAddress, DeviceOptionsPatch)
    case removeDevice(DeviceID)
    case reconnectDevice(DeviceID)
    case renameDevice(DeviceID, to: DeviceID)
    case pairDevice(DeviceReference, passkey: Int?)
    case unpairDevice(DeviceReference)
    case setOptions(DeviceID, DeviceOptionsPatch)
    case inspectDevice(DeviceReference)
    case identifyDevice(DeviceID)
    case getProperty(String, of: DeviceID)
    /// The value as on `…/set`: a string is the payload itself.
    case setProperty(String, of: DeviceID, JSONValue, ttl: Int?)
    /// `values/moisture`, or `moisture`.
    case removeValue(String, of: DeviceID)
    /// The adapter's name; nil: the only one.
    case adapterState(String?)
    case sequence(DeviceID, [SequenceStep], seconds: Int)
    /// Nil: the configured one.
    case resetAdapter(String?)
    case setLogLevel(LogLevel)
    case permitJoin(seconds: Int, BluetoothAddress?)
  }

  let content: Content
  /// Returned with the response.
  let transaction: String?

  /// In bytes.
  static let longestPayload = 64 << 10

  /// Whether the devices that it names exist is not checked.
  ///
  /// - Parameter verb: `devices`, `device/add` …
  init(verb: String, payload: [UInt8]) throws(Rejection) {
    let object = try Self.object(payload)
    transaction = try Sender.transaction(object)
    guard let known = Verb(rawValue: verb) else {
      throw Rejection("unknown request \(Excerpt(verb)): \(Self.hint(for: verb))", transaction)
    }
    content = try Self.read(object, transaction) { known.read($0, &$1) }
  }

  /// Reads the keys of a request.
  static func read<Keys>(
    _ object: JSONObject, _ transaction: String?,
    _ body: (JSONValue, inout [ConfigurationError]) -> Keys?
  ) throws(Rejection) -> Keys {
    var errors: [ConfigurationError] = []
    guard let keys = body(.object(object), &errors), errors.isEmpty else {
      throw Rejection(Self.describe(errors), transaction)
    }
    return keys
  }

  /// No payload at all is an object without members.
  private static func object(_ payload: [UInt8]) throws(Rejection) -> JSONObject {
    guard payload.count <= longestPayload else {
      throw Rejection("the payload has more than \(longestPayload) bytes")
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
    return "known requests: \(verbs.joined(separator: ", "))"
  }

  /// The first few errors.
  private static func describe(_ errors: [ConfigurationError]) -> String {
    let first = errors.prefix(5).map(\.description).joined(separator: "; ")
    return errors.count > 5 ? "\(first); and \(errors.count - 5) more" : first
  }
}
