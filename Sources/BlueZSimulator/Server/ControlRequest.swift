import EventLoop
import Configuration
import GATT
import JSON
import Peripherals

/// A command of the control socket.
struct ControlRequest: ConfigurationSection, Sendable {
  /// `microbit-simulator --help` says what each does.
  enum Operation: String, CaseIterable, Sendable {
    case list, counters, period, temp, value, advertise, name, log, writes, serve, silent, vanish, disconnect
    case `return`, reset, subscription, pairing, forget, strength, power, plug, le, scan, restart, radio
  }

  enum RadioAction: String, CaseIterable, Sendable {
    case press, plug, unplug, write
  }

  enum Ending: String, CaseIterable, Sendable {
    case term, kill
  }

  enum Fault: String, CaseIterable, Sendable {
    case drop, error, silence
  }

  var op = Operation.list
  /// The index of the peripheral.
  var i = 0
  /// The number of the adapter.
  var adapter = 0
  /// For every micro:bit, instead of `i`: see ``isForAll``.
  var all = false
  var v: Int?
  var on = true
  var bytes: [UInt8]?
  var how = Ending.term
  var action: RadioAction?
  var ms: Int?
  var fault: Fault?
  /// The error code of ATT.
  var code = 0x0E
  var count = 1
  var name: String?
  var service: BluetoothUUID?
  var characteristic: BluetoothUUID?
  var instance = 0
  var passkey: Int?
  var pairs = true
  var identity: BluetoothAddress?

  var isForAll: Bool { all && [.period, .subscription, .pairing].contains(op) }

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "op", \.op, .choice),
    ConfigurationKey("i", \.i, .integer(0...65535)),
    ConfigurationKey("adapter", \.adapter, .integer(0...9)),
    ConfigurationKey("all", \.all, .bool),
    ConfigurationKey("v", \.v, .optional(.integer(-128...65535))),
    ConfigurationKey("on", \.on, .bool),
    ConfigurationKey("hex", \.bytes, .optional(.hexadecimal)),
    ConfigurationKey("how", \.how, .choice),
    ConfigurationKey("action", \.action, .optional(.choice)),
    ConfigurationKey("ms", \.ms, .optional(.integer(0...86_400_000))),
    ConfigurationKey("fault", \.fault, .optional(.choice)),
    ConfigurationKey("code", \.code, .integer(0...255)),
    ConfigurationKey("count", \.count, .integer(0...65535)),
    ConfigurationKey("name", \.name, .optional(.text(longest: 248))),
    ConfigurationKey("service", \.service, .optional(.uuid)),
    ConfigurationKey("characteristic", \.characteristic, .optional(.uuid)),
    ConfigurationKey("instance", \.instance, .integer(0...99)),
    ConfigurationKey("passkey", \.passkey, .optional(.passkey)),
    ConfigurationKey("pairs", \.pairs, .bool),
    ConfigurationKey("identity", \.identity, .optional(.address)),
  ]

  /// How something is to fail; nil: it is not.
  var linkFault: LinkFault? {
    switch fault {
    case .drop: .drop
    case .error: .error(UInt8(code))
    case .silence: .silence(.milliseconds(ms ?? 3000))
    case nil: nil
    }
  }

  /// The fault of writes of the client configuration; nil: none.
  var subscriptionFault: SubscriptionFault? {
    count > 0 ? SubscriptionFault(fault: linkFault ?? .drop, count: count) : nil
  }

  /// The characteristic identified by `service`, `characteristic` and `instance`.
  func characteristic(of database: GATTDatabase) throws(PeripheralError) -> GATTDatabase.Characteristic {
    guard let characteristic,
      let found = database.characteristic(characteristic, instance: instance, in: service)
    else { throw PeripheralError("no such characteristic") }
    return found
  }
}

extension JSONValue {
  /// The answer to a command that has been carried out.
  static let done: JSONValue = ["status": "ok"]

  /// The answer to a command that cannot be carried out.
  static func error(_ text: String) -> JSONValue { ["error": .string(text)] }
}

extension Security {
  mutating func change(by request: ControlRequest) {
    isRequired = request.on
    passkey = request.passkey
    pairs = request.pairs
    identity = request.identity?.description
    fault = request.linkFault
  }
}

extension Writes {
  /// The writes in hexadecimal, as the control socket gives them.
  var json: JSONValue {
    ["count": .integer(count), "writes": .array(last.map { .string(Hexadecimal.text($0)) })]
  }
}

extension Bluetoothd {
  /// The state of a peripheral, as the control socket gives it.
  ///
  /// `adapter` is the number of the adapter that has the link, `subscribed` the UUIDs of the characteristics with subscribers,
  /// `sent` the number of notifications, `armed` that of further writes of its client configuration that fail; `stuck`:
  /// bluetoothd regards its notifications as acquired, but there is no socket. Only a micro:bit has `period` and `temp`.
  func state(of index: Int, at now: Moment) -> JSONValue {
    let (peripheral, key) = (peripherals[index], key(ofPeripheral: index))
    let adapter = peripheral.radio.linked
    let subscribed = subscribed(to: key)
      .compactMap { peripheral.database.characteristic($0)?.uuid.description }
    let microBit = peripheral.values.microBit
    return [
      "adapter": adapter.map(JSONValue.integer), "address": .string(peripheral.address),
      "armed": .integer(peripheral.subscriptionFault?.count ?? 0),
      "bonded": .bool(bonds.contains { $0.peripheral == index }), "connected": .bool(adapter != nil),
      "gone": .bool(!peripheral.radio.inRange), "i": .integer(index), "name": .string(peripheral.name),
      "notifying": .bool(!subscribed.isEmpty), "period": microBit.map { .integer(Int($0.period)) },
      "sent": .integer(peripheral.radio.sent), "stuck": .bool(isStuck(key)),
      "subscribed": .array(subscribed.map(JSONValue.string)),
      "temp": microBit.map { .integer(Int($0.temperature(at: now))) },
    ]
  }
}
