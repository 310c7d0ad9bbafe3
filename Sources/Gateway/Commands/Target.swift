import Configuration
import GATT
import JSON

/// A device of the gateway, or another peripheral.
struct Target {
  let candidate: Candidate
  /// Whether the gateway has no link to the device, and is to make one.
  var isOffline = false
  /// The gateway that owns the device.
  var owner: String?
  /// The time; nil: the device is online, or was not while the gateway runs.
  var offlineSince: String?
  /// Why there is no link, as far as known.
  var lastError: String?
  var isPaired = false
  /// The profile's name; nil if it is not a device.
  var profile: String?

  var address: BluetoothAddress { candidate.address }
  var id: String? { candidate.id }
  var label: String { id ?? candidate.names.first.map { Excerpt($0).description } ?? address.description }

  /// The keys that name it in a request.
  var selector: JSONValue {
    id.map { ["id": .string($0)] } ?? ["identifier": .string(address.description)]
  }

  init(_ candidate: Candidate) { self.candidate = candidate }

  /// What the user means: one of several, or what has this address; nil: neither.
  static func named(_ text: String, among targets: [Target]) throws(CommandFailure) -> Target? {
    if let one = try one(text, among: targets) { return one }
    let address = BluetoothAddress(text) ?? BluetoothAddress(compact: text.lowercased())
    return address.map { Target(Candidate(address: $0, id: nil, names: [])) }
  }

  /// What is said if nothing has that name.
  static func none(_ text: String, among devices: [Target], orInRange: Bool) -> CommandFailure {
    let known = devices.map(\.label)
    let hint = nearest(to: text, among: known).map { ": did you mean \($0)?" }
    let list = known.isEmpty ? "" : "; devices: \(known.joined(separator: ", "))"
    let kind = orInRange ? "device or peripheral in range" : "device"
    return CommandFailure(.unavailable, "no \(kind) is called \(Excerpt(text))\(hint ?? list)")
  }

  private static func one(_ text: String, among targets: [Target]) throws(CommandFailure) -> Target? {
    switch DeviceName.meaning(of: text, among: targets.map(\.candidate)) {
    case .one(let candidate): return targets.first { $0.candidate == candidate }
    case .not(let several):
      guard !several.isEmpty else { return nil }
      let lines = several.map { "\n  \($0)" }.joined()
      throw CommandFailure(
        .usage, "\(Excerpt(text)) is not unique: use an address or an id, or more of the name:\(lines)")
    }
  }

  /// Reads an entry of the requests `devices` or `scan`.
  init?(_ json: JSONValue) {
    guard let candidate = Candidate(json) else { return nil }
    self.init(candidate)
    isOffline = ["absent", "waiting", "connecting", "subscribing", "leaving"].contains(json["session"]?.text)
    owner = json["owner"]?.text
    offlineSince = json["offline_since"]?.text
    lastError = json["last_error"]?.text
    isPaired = json["paired"] == .bool(true)
    profile = json["profile"]?.text
  }
}
