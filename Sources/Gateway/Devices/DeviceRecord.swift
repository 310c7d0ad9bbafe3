import Configuration
import GATT
import JSON

/// What is remembered of a device from one run of the gateway to the next.
struct DeviceRecord: Sendable, Equatable {
  let identifier: BluetoothAddress
  /// The id whose topics it had last: to be given back to it, or to clear them.
  var id: DeviceID?
  /// The Bluetooth name, as it was last heard from the air.
  var name: String?
  /// The properties that it has offered, by their names; nil: it was never connected.
  var offered: Set<String>?
  /// What it has told of its make.
  var model: String?
  var firmware: String?
  var serial: String?
  /// What requests changed, over the configuration.
  var changes = DeviceOptions()
  /// By request: the device is known although no entry of the configuration matches.
  var isAdded = false
  /// By request: the device is not ours although an entry matches, until it is added again.
  var isRemoved = false
  /// Deleted in Home Assistant: not announced there until it is added again.
  var isForgotten = false
  /// The values that a command or a request made the wanted ones, by the names of their properties.
  var wanted: [String: Int] = [:]
  /// Digests of the payloads of the last commands, by the names of the properties. The broker sends a retained one
  /// again at every connection: one of these is passed over then.
  private(set) var taken: [String: [Int]] = [:]
  /// What Home Assistant was told of it; nil: nothing.
  var announced: Announced?

  init(identifier: BluetoothAddress) {
    self.identifier = identifier
  }

  /// Whether this gateway has held it, or a request was about it. Commands alone do not count: one for a whole group
  /// is for whatever passes by as well.
  var isNamed: Bool { id != nil || isAdded || changes != DeviceOptions() }

  /// Drops the values that no command may ask for: earlier versions had other ranges.
  /// - Returns: what was dropped, by the names of the properties.
  mutating func dropUnsettable() -> [String: Int] {
    var dropped = wanted
    wanted = Profile.microbitDefault.settable(wanted)
    for name in wanted.keys { dropped[name] = nil }
    if let period = changes.period, !Property.microbitPeriod.integers.contains(period) {
      changes.period = nil
      dropped[Property.microbitPeriod.name] = period
    }
    return dropped
  }

  /// A slider makes many, and a retained command of before them must not come back.
  private static let mostTaken = 64

  mutating func take(_ payload: [UInt8], for property: String) {
    let digest = Self.digest(payload)
    let others = taken[property, default: []].filter { $0 != digest }
    taken[property] = others.suffix(Self.mostTaken - 1) + [digest]
  }

  func hasTaken(_ payload: [UInt8], for property: String) -> Bool {
    taken[property]?.contains(Self.digest(payload)) ?? false
  }

  /// FNV-1a of 64 bits (RFC 9923): the same in every run, which `Hasher` is not.
  static func digest(_ payload: [UInt8]) -> Int {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in payload { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int(truncatingIfNeeded: hash)
  }
}

// MARK: As it is stored

extension DeviceRecord {
  /// A JSON object; what is as in a new record is left out.
  var bytes: [UInt8] {
    let json: JSONValue = [
      "id": id.map { .string($0.description) },
      "name": name.map(JSONValue.string),
      // In the order of their names: the same record is the same bytes.
      "offered": offered.map { .array($0.sorted().map(JSONValue.string)) },
      "model": model.map(JSONValue.string),
      "firmware": firmware.map(JSONValue.string),
      "serial": serial.map(JSONValue.string),
      "changes": changes == DeviceOptions() ? nil : changes.json,
      "added": isAdded ? .bool(true) : nil,
      "removed": isRemoved ? .bool(true) : nil,
      "forgotten": isForgotten ? .bool(true) : nil,
      "wanted": Self.json(wanted, JSONValue.integer),
      "taken": Self.json(taken) { .array($0.map(JSONValue.integer)) },
      "announced": announced?.json,
    ]
    return json.bytes
  }

  /// Reads a record. Keys of other versions are passed over; nil for what is no record.
  init?(identifier: BluetoothAddress, bytes: [UInt8]) {
    guard case .object(let object) = try? JSONParser.parse(bytes) else { return nil }
    do throws(Broken) {
      self = try DeviceRecord(identifier, object)
    } catch {
      return nil
    }
  }

  private init(_ identifier: BluetoothAddress, _ object: JSONObject) throws(Broken) {
    self.identifier = identifier
    id = try object.value("id", .deviceID)
    name = try object.member("name", as: Self.text)
    offered = try object.member("offered", as: Self.texts)
    model = try object.member("model", as: Self.text)
    firmware = try object.member("firmware", as: Self.text)
    serial = try object.member("serial", as: Self.text)
    if let options = try object.member("changes", as: Self.object) {
      changes = try DeviceOptions(stored: options)
    }
    isAdded = try object.value("added", .bool) ?? false
    isRemoved = try object.value("removed", .bool) ?? false
    isForgotten = try object.value("forgotten", .bool) ?? false
    wanted = try Self.values(object, "wanted") { if case .integer(let value) = $0 { value } else { nil } }
    taken = try Self.values(object, "taken", Self.integers)
    announced = object["announced"].flatMap(Announced.init)
  }

  // From the air, or from a sender: held to no rule.
  private static func text(_ json: JSONValue) -> String? {
    if case .string(let text) = json { text } else { nil }
  }

  private static func texts(_ json: JSONValue) -> Set<String>? {
    guard case .array(let elements) = json else { return nil }
    let texts = elements.compactMap(text)
    return texts.count == elements.count ? Set(texts) : nil
  }

  private static func integers(_ json: JSONValue) -> [Int]? {
    guard case .array(let elements) = json else { return nil }
    let integers = elements.suffix(mostTaken).compactMap {
      if case .integer(let value) = $0 { value } else { nil }
    }
    return integers.count == min(elements.count, mostTaken) ? integers : nil
  }

  private static func object(_ json: JSONValue) -> JSONObject? {
    if case .object(let object) = json { object } else { nil }
  }

  private static func values<Value>(
    _ object: JSONObject, _ name: String, _ read: (JSONValue) -> Value?
  ) throws(Broken) -> [String: Value] {
    var values: [String: Value] = [:]
    for member in try object.member(name, as: Self.object)?.members ?? [] {
      guard let value = read(member.value) else { throw Broken() }
      values[member.name] = value
    }
    return values
  }

  /// Nil for no values. In the order of their names: the same record is the same bytes.
  private static func json<Value>(
    _ values: [String: Value], _ write: (Value) -> JSONValue
  ) -> JSONValue? {
    values.isEmpty ? nil : .object(values.mapValues(write))
  }
}

extension DeviceOptions {
  fileprivate init(stored object: JSONObject) throws(Broken) {
    id = try object.value("id", .deviceID)
    name = try object.value("name", .label)
    area = try object.value("area", .label)
    // The range of every version so far.
    period = try object.value("period", .integer(1...0xFFFF))
    isEnabled = try object.value("enabled", .bool)
    gateway = try object.value("gateway", .gatewayID)
  }

  /// What is changed, by the keys of a device entry.
  var json: JSONValue {
    [
      "id": id.map { .string($0.description) },
      "name": name.map(JSONValue.string),
      "area": area.map(JSONValue.string),
      "period": period.map(JSONValue.integer),
      "enabled": isEnabled.map(JSONValue.bool),
      "gateway": gateway.map { .string($0.description) },
    ]
  }
}

/// A member that is there, and is not what it must be.
private struct Broken: Error {}

extension JSONObject {
  /// The member, by the rule that a user's would have to follow; nil when there is none.
  fileprivate func value<Value>(
    _ name: String, _ rule: ConfigurationRule<Value>
  ) throws(Broken) -> Value? {
    var errors: [ConfigurationError] = []
    guard let json = self[name] else { return nil }
    guard let value = rule.read(json, nil, .root, &errors), errors.isEmpty else { throw Broken() }
    return value
  }

  fileprivate func member<Value>(
    _ name: String, as read: (JSONValue) -> Value?
  ) throws(Broken) -> Value? {
    guard let json = self[name] else { return nil }
    guard let value = read(json) else { throw Broken() }
    return value
  }
}
