import Configuration
import GATT
import JSON

/// What is kept of a device from one run of the gateway to the next.
package struct DeviceRecord: Sendable, Equatable {
  package let address: BluetoothAddress
  /// The id whose topics it had last: to be given back to it, or to clear them.
  package var id: DeviceID?
  /// The Bluetooth name, as it was last received.
  package var name: String?
  /// The services and manufacturers that it has advertised; see ``advertisement``.
  var services: [BluetoothUUID] = []
  var manufacturers: [Int] = []
  /// The properties that it has offered; nil: it was never connected.
  var offered: Set<String>?
  /// From the Device Information Service.
  var model: String?
  var firmware: String?
  var serial: String?
  /// What requests changed, over the configuration.
  package var changes = DeviceOptions()
  /// By request: the device is known although no entry of the configuration matches.
  package var isAdded = false
  /// By request: the device is ignored although an entry matches, until it is added again.
  package var isRemoved = false
  /// The values set by commands and requests, by property.
  var desired: [String: Desired] = [:]
  /// The commands that wait, by property.
  var waiting: [String: Waiting] = [:]
  /// See ``DeviceDescription/isDeleted``.
  package var isDeleted = false
  /// See ``DeviceDescription/revision``.
  var revision = 0
  /// What is handed over was changed while another gateway owned the device, or none: a command waits for it. Given up if
  /// the owner uses the device.
  var isPending = false
  /// The day on which it was last in range, counted from 1970-01-01; nil: not noted yet.
  var lastSeen: Int?

  /// A value as JSON: which property it fits is known with the device's profile.
  struct Desired: Sendable, Equatable {
    let value: JSONValue
    let source: ValueSource
  }

  struct Waiting: Sendable, Equatable {
    let value: JSONValue
    /// See ``Command/sender``.
    let sender: JSONValue?
  }

  package init(address: BluetoothAddress) {
    self.address = address
  }

  /// What a command or a request has set last, be it carried out or waiting.
  func newest(_ property: String) -> Desired? {
    waiting[property].map { Desired(value: $0.value, source: .command) } ?? desired[property]
  }

  /// Whether this gateway has been connected to it or has published that it is offline, or a request was about it.
  /// Commands alone do not count: one for a group is for every device in range as well.
  var isKnownByAddress: Bool { id != nil || isAdded || !changes.isEmpty }

  /// Whether a request was about it.
  var isRequested: Bool {
    isAdded || isRemoved || !changes.isEmpty
      || desired.values.contains { $0.source == .request }
  }

  /// What is known of it before it is seen.
  package var advertisement: Advertisement {
    get { Advertisement(name: name, services: services, manufacturers: manufacturers) }
    set { (name, services, manufacturers) = (newValue.name, newValue.services, newValue.manufacturers) }
  }

  mutating func learn(_ description: DeviceDescription) {
    model = description.model
    firmware = description.firmware
    serial = description.serial
  }
}

// MARK: As it is stored

extension DeviceRecord {
  /// A JSON object; what is as in a new record is left out.
  package var bytes: [UInt8] {
    let json: JSONValue = [
      "id": id.map { .string($0.description) },
      "name": name.map(JSONValue.string),
      "services": services.isEmpty ? nil : .array(services.map { .string($0.description) }),
      "manufacturers": manufacturers.isEmpty ? nil : .array(manufacturers.map(JSONValue.integer)),
      // Sorted: the same record is the same bytes.
      "offered": offered.map { .array($0.sorted().map(JSONValue.string)) },
      "model": model.map(JSONValue.string),
      "firmware": firmware.map(JSONValue.string),
      "serial": serial.map(JSONValue.string),
      "changes": changes.isEmpty ? nil : changes.json,
      "added": isAdded ? .bool(true) : nil,
      "removed": isRemoved ? .bool(true) : nil,
      "desired": desired.isEmpty ? nil : .object(desired.mapValues(\.json)),
      "waiting": waiting.isEmpty
        ? nil : .object(waiting.mapValues { ["value": $0.value, "sender": $0.sender] }),
      "deleted": isDeleted ? .bool(true) : nil,
      "revision": revision == 0 ? nil : .integer(revision),
      "pending": isPending ? .bool(true) : nil,
      "last_seen": lastSeen.map(JSONValue.integer),
    ]
    return json.bytes
  }

  /// Reads a record. Keys of other versions are ignored; nil if it is not a record.
  package init?(address: BluetoothAddress, bytes: [UInt8]) {
    guard case .object(let object) = try? JSONParser.parse(bytes) else { return nil }
    do throws(Broken) {
      self = try DeviceRecord(address, object)
    } catch {
      return nil
    }
  }

  private init(_ address: BluetoothAddress, _ object: JSONObject) throws(Broken) {
    self.address = address
    id = try object.value("id", .deviceID)
    name = try object.member("name", as: Self.text)
    services = try object.member("services", as: Self.texts)?.compactMap { BluetoothUUID($0) } ?? []
    manufacturers = try object.member("manufacturers", as: Self.integers) ?? []
    offered = try object.member("offered", as: Self.texts).map { Set($0) }
    model = try object.member("model", as: Self.text)
    firmware = try object.member("firmware", as: Self.text)
    serial = try object.member("serial", as: Self.text)
    changes = try object.member("changes", as: DeviceOptions.init) ?? DeviceOptions()
    isAdded = try object.value("added", .bool) ?? false
    isRemoved = try object.value("removed", .bool) ?? false
    for member in try object.member("desired", as: Self.object)?.members ?? [] {
      guard let value = Desired(member.value) else { throw Broken() }
      desired[member.name] = value
    }
    for member in try object.member("waiting", as: Self.object)?.members ?? [] {
      guard let value = member.value["value"] else { throw Broken() }
      waiting[member.name] = Waiting(value: value, sender: member.value["sender"])
    }
    isDeleted = try object.value("deleted", .bool) ?? false
    revision = try object.member("revision", as: Self.integer) ?? 0
    isPending = try object.value("pending", .bool) ?? false
    lastSeen = try object.member("last_seen", as: Self.integer)
  }

  // Advertised, or given by a sender: not validated.
  private static func text(_ json: JSONValue) -> String? {
    if case .string(let text) = json { text } else { nil }
  }

  private static func texts(_ json: JSONValue) -> [String]? { list(json, text) }

  private static func integers(_ json: JSONValue) -> [Int]? { list(json, integer) }

  private static func integer(_ json: JSONValue) -> Int? {
    if case .integer(let number) = json { number } else { nil }
  }

  private static func list<Element>(_ json: JSONValue, _ read: (JSONValue) -> Element?) -> [Element]? {
    guard case .array(let elements) = json else { return nil }
    let values = elements.compactMap(read)
    return values.count == elements.count ? values : nil
  }

  private static func object(_ json: JSONValue) -> JSONObject? {
    if case .object(let object) = json { object } else { nil }
  }
}

/// A member has an invalid value.
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

extension DeviceRecord.Desired {
  var json: JSONValue {
    ["value": value, "source": source == .request ? "request" : nil]
  }

  init?(_ json: JSONValue) {
    guard let value = json["value"] else { return nil }
    self.init(value: value, source: json["source"] == nil ? .command : .request)
  }
}
