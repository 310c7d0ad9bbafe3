import Configuration
import GATT
import JSON
import Log

/// What is kept of a device from one run of the gateway to the next.
package struct DeviceRecord: Sendable, Equatable {
  package let address: BluetoothAddress
  /// The identity address of a peripheral whose ``address`` is a private one; nil: bluetoothd has not told another one.
  package var identity: BluetoothAddress?
  /// Whether bluetoothd has told that its address, or ``identity``, is a public one.
  var hasPublicAddress = false
  /// The id whose topics the device had last: to be given back to it, or to clear them.
  package var id: DeviceID?
  /// The Bluetooth name, as it was last received.
  package var name: String?
  /// See ``Advertisement/matchedName``; nil: it is ``name``.
  package private(set) var matchedName: String?
  /// The services and manufacturers that it has advertised; see ``advertisement``.
  var services: [BluetoothUUID] = []
  var manufacturers: [Int] = []
  /// The properties that it has offered; nil: it was never connected. With an automatic profile those of the last link, else
  /// of all links.
  package internal(set) var offered: Set<String>?
  /// The counter of the last encrypted advertisement, or of one some time before it; see ``ObjectReader``.
  var counter: Int?
  /// Model, firmware and serial number, from the Device Information Service; the firmware also from BTHome.
  package internal(set) var model: String?
  package internal(set) var firmware: String?
  package internal(set) var serial: String?
  /// What commands and requests have set; the rest changes by itself, and often.
  package var requested = Requested()
  /// The values that the device's program names itself, by their names in topics.
  var valueTable: [ValueKey: ValueTable.Entry] = [:]
  /// What the LEDs showed before the device was identified, until they show that again.
  var leds: [UInt8]?
  /// The address of the adapter with which this gateway has paired; nil: with none.
  package internal(set) var bond: String?
  /// The position up to which the rows of the data log were passed on to the front ends.
  package internal(set) var log: LogPosition?
  /// The number of the last change of what gateways hand over, the overrides, ``Requested/isDeleted`` and ``isDisabled``: of two
  /// copies, the one with the larger number is newer. It is the time of the change in milliseconds, unless a change before has a
  /// later one.
  package internal(set) var revision = 0
  /// What is handed over was changed here while another gateway owned the device, or none, as by a command that waits for it. If
  /// another gateway then uses the device, what that one hands over replaces the change.
  var isPending = false
  /// The last events that were told, by any gateway, the newest last; only if it is only heard.
  package internal(set) var told: [HeardEvents.Event] = []
  /// When a device whose silence does not make it offline was heard last. Renewed with each event, otherwise at most every 10 s,
  /// and stored at most every 600 s.
  package internal(set) var lastHeard: Timestamp?
  /// Whether the device has said that it sends only when something happens; nil: it says nothing of that, or an earlier version
  /// has not stored it.
  var isTriggerOnly: Bool?
  /// How long it is online after it was heard, in s, as its ``Rhythm`` says; nil: not known yet. Stored within 600 s.
  package internal(set) var learnedLimit: Int?
  /// The day on which the device was last in range, counted from 1970-01-01; nil: not noted yet.
  var lastSeen: Int?

  /// What commands and requests have set.
  package struct Requested: Sendable, Equatable {
    /// What requests changed, over the configuration.
    package var changes = DeviceOptions()
    /// The device is known by request, although no entry of the configuration matches.
    package var isAdded = false
    /// The device is ignored by request, although an entry matches, until it is added again.
    package var isRemoved = false
    /// A user has deleted it where front ends announce it (Home Assistant): it is not announced until it is added again.
    package var isDeleted = false
    /// A request to the gateway that owned the device has disabled it, which holds at all gateways, until a request enables it.
    var isDisabledElsewhere = false
    /// The values set by commands and requests, by property.
    var desired: [String: Desired] = [:]
    /// The values of commands that wait, by property.
    var waiting: [String: Desired] = [:]
  }

  /// A value as JSON: which property it fits is known with the device's profile.
  struct Desired: Sendable, Equatable {
    var value: JSONValue
    var source = ValueSource.command
    /// The sender of a command that waits: see ``Command/sender``.
    var sender: JSONValue?
  }

  package init(address: BluetoothAddress) {
    self.address = address
  }

  /// The names of the properties and values that may have been published.
  package var published: Set<String> { (offered ?? []).union(valueTable.keys.map(NamedValue.name)) }

  /// Whether this gateway has been connected to it or has published that it is offline, or a request was about it.
  /// Commands alone do not count: one for a group is for every device in range as well.
  package var isKnownByAddress: Bool { id != nil || requested.isAdded || !requested.changes.isEmpty }

  /// Whether a request was about the device.
  var isRequested: Bool {
    requested.isAdded || requested.isRemoved || !requested.changes.isEmpty
      || requested.desired.values.contains { $0.source == .request }
  }

  /// What is known of the device's advertisements before it is seen.
  package var advertisement: Advertisement {
    get {
      Advertisement(
        name: name, matchedName: matchedName ?? name, services: services, manufacturers: manufacturers)
    }
    set {
      (name, services, manufacturers) = (newValue.name, newValue.services, newValue.manufacturers)
      matchedName = newValue.matchedName == name ? nil : newValue.matchedName
    }
  }

  /// Whether its advertisements are not stored, as they are when it comes online: whether an entry matches them is not known.
  package var wasNeverOnline: Bool { id == nil && advertisement == Advertisement() }

  /// Forgets the device, but for what clears its topics, by what it is recognized, and the bond that bluetoothd keeps.
  mutating func forget() {
    let before = self
    self = DeviceRecord(address: address)
    (identity, id, offered, valueTable, bond) = (
      before.identity, before.id, before.offered, before.valueTable, before.bond
    )
  }

  /// Whether a request has disabled the device, to this gateway or to the one that owns it.
  package var isDisabled: Bool { requested.changes.isEnabled == false || requested.isDisabledElsewhere }

  var hasInformation: Bool { model != nil || firmware != nil || serial != nil }

  /// - Parameter texts: the values of the Device Information Service, by characteristic.
  mutating func learn(_ texts: [BluetoothUUID: String]) {
    model = texts[DeviceInformation.modelNumber] ?? model
    firmware = texts[DeviceInformation.firmwareRevision] ?? firmware
    serial = texts[DeviceInformation.serialNumber] ?? serial
  }

  /// Keeps what commands and requests have set.
  mutating func setDesired(_ desired: DesiredValue, of property: Property) {
    requested.desired[property.name] = desired.override.map {
      Desired(value: property.codec.json($0.value.value), source: $0.source)
    }
    requested.waiting[property.name] = desired.waiting.map {
      Desired(value: property.codec.json($0.value.value), sender: $0.sender)
    }
  }
}

extension Advertisement {
  /// What is advertised, together with what is recorded.
  func adding(to record: DeviceRecord?) -> Advertisement {
    record.map { adding(to: $0.advertisement) } ?? self
  }
}

// MARK: As it is stored

extension DeviceRecord {
  /// The members of the stored object. What was advertised, or given by a sender, is not validated.
  private static let keys: [ConfigurationKey<DeviceRecord>] = [
    ConfigurationKey("identity", \.identity, .optional(.address)),
    ConfigurationKey("public_address", \.hasPublicAddress, .bool),
    ConfigurationKey("id", \.id, .optional(.deviceID)),
    ConfigurationKey("name", \.name, .optional(.anyText)),
    ConfigurationKey("matched_name", \.matchedName, .optional(.anyText)),
    ConfigurationKey("services", \.services, .list(of: .uuid)),
    ConfigurationKey("manufacturers", \.manufacturers, .list(of: .anyInteger)),
    ConfigurationKey("offered", \.sortedOffered, .optional(.list(of: .anyText))),
    ConfigurationKey("counter", \.counter, .optional(.anyInteger)),
    ConfigurationKey("model", \.model, .optional(.anyText)),
    ConfigurationKey("firmware", \.firmware, .optional(.anyText)),
    ConfigurationKey("serial", \.serial, .optional(.anyText)),
    ConfigurationKey("changes", \.requested.changes, .stored(DeviceOptions.init, \.json)),
    ConfigurationKey("added", \.requested.isAdded, .bool),
    ConfigurationKey("removed", \.requested.isRemoved, .bool),
    ConfigurationKey("desired", \.requested.desired, .byProperty),
    ConfigurationKey("waiting", \.requested.waiting, .byProperty),
    ConfigurationKey("values", \.valueTable, .byValueKey),
    ConfigurationKey(
      "leds", \.leds,
      .optional(.stored({ $0.text.flatMap { Hexadecimal.bytes($0) } }, { .string(Hexadecimal.text($0)) }))),
    ConfigurationKey("bond", \.bond, .optional(.anyText)),
    ConfigurationKey("log", \.log, .optional(.stored(LogPosition.init, \.json))),
    ConfigurationKey("deleted", \.requested.isDeleted, .bool),
    ConfigurationKey("disabled_elsewhere", \.requested.isDisabledElsewhere, .bool),
    ConfigurationKey("revision", \.revision, .integer(0...(1 << 53))),
    ConfigurationKey("pending", \.isPending, .bool),
    ConfigurationKey("told", \.told, .list(of: .stored(HeardEvents.Event.init, \.json))),
    ConfigurationKey(
      "last_heard", \.lastHeard,
      .optional(.stored({ $0.text.flatMap { Timestamp($0) } }) { .string($0.description) })),
    ConfigurationKey("trigger_only", \.isTriggerOnly, .optional(.bool)),
    ConfigurationKey("learned_limit", \.learnedLimit, .optional(.integer(60...86_400))),
    ConfigurationKey("last_seen", \.lastSeen, .optional(.integer(Timestamp.days))),
  ]

  /// The offered properties in order, so that the same record is stored as the same bytes.
  private var sortedOffered: [String]? {
    get { offered?.sorted() }
    set { offered = newValue.map { Set($0) } }
  }

  /// The members of a new record; none has its address.
  private static let new = keys.map { $0.write(DeviceRecord(address: BluetoothAddress(truncating: 0))) }

  /// A JSON object; what is as in a new record is left out.
  package var bytes: [UInt8] {
    let members = zip(Self.keys, Self.new).map { key, new in
      (key.name, key.write(self).flatMap { $0 == new ? nil : $0 })
    }
    return JSONValue.object(of: members).bytes
  }

  /// Reads a record. Keys of other versions are ignored; nil if it is not a record.
  package init?(address: BluetoothAddress, bytes: [UInt8]) {
    guard case .object(let object) = try? JSONParser.parse(bytes) else { return nil }
    self.init(address: address)
    var errors: [ConfigurationError] = []
    for key in Self.keys {
      if let json = object[key.name] { key.read(json, &self, .root, &errors) }
    }
    guard errors.isEmpty else { return nil }
  }
}

extension ConfigurationRule {
  fileprivate static func stored(
    _ read: @escaping @Sendable (JSONValue) -> Value?, _ write: @escaping @Sendable (Value) -> JSONValue
  ) -> Self {
    ConfigurationRule(shape: .any, parse: read, write: write)
  }
}

extension ConfigurationRule<[String: DeviceRecord.Desired]> {
  fileprivate static var byProperty: Self {
    .stored(
      { json in
        guard case .object(let object) = json else { return nil }
        let values = object.members.compactMap { member in
          DeviceRecord.Desired(member.value).map { (member.name, $0) }
        }
        return values.count == object.members.count ? Dictionary(values) { $1 } : nil
      },
      { .object($0.mapValues(\.json)) })
  }
}

extension ConfigurationRule<[ValueKey: ValueTable.Entry]> {
  /// What cannot be read is left out.
  fileprivate static var byValueKey: Self {
    .stored(
      { json in
        guard case .object(let object) = json else { return nil }
        let entries = object.members.compactMap { member in
          ValueKey(member.name).flatMap { key in ValueTable.Entry(member.value).map { (key, $0) } }
        }
        return Dictionary(entries.prefix(ValueTable.capacity)) { $1 }
      },
      { entries in
        .object(Dictionary(uniqueKeysWithValues: entries.map { ($0.key.description, $0.value.json) }))
      })
  }
}

extension ConfigurationRule<String> {
  fileprivate static var anyText: Self { .stored(\.text, JSONValue.string) }
}

extension ConfigurationRule<Int> {
  fileprivate static var anyInteger: Self { .integer(.min ... .max) }
}

extension DeviceRecord.Desired {
  var json: JSONValue {
    ["value": value, "source": source == .request ? "request" : nil, "sender": sender]
  }

  init?(_ json: JSONValue) {
    guard let value = json["value"] else { return nil }
    self.init(
      value: value, source: json["source"] == nil ? .command : .request, sender: json["sender"])
  }
}

extension ValueTable.Entry {
  var json: JSONValue {
    [
      "name": .string(written), "number": .bool(isNumber), "confirmed": .bool(isConfirmed),
      "bool": isBool ? .bool(true) : nil, "unit": unit.map(JSONValue.string), "last_seen": .integer(lastSeen),
    ]
  }

  init?(_ json: JSONValue) {
    guard let written = json["name"]?.text, let lastSeen = json["last_seen"]?.integer,
      written.utf8.count <= ValueTable.longestName, Timestamp.days.contains(lastSeen)
    else { return nil }
    self.init(
      written: written, isNumber: json["number"] == .bool(true), isBool: json["bool"] == .bool(true),
      isConfirmed: json["confirmed"] == .bool(true), unit: json["unit"]?.text, lastSeen: lastSeen)
  }
}
