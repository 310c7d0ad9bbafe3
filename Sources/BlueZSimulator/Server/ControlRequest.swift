import EventLoop
import Configuration
import GATT
import JSON
import Peripherals

/// A command of the control socket.
struct ControlRequest: ConfigurationSection, Sendable {
  enum Operation: String, CaseIterable, Sendable {
    /// The state of every peripheral.
    case list
    /// The simulator's counters.
    case counters
    /// Sets the period to `v` ms, as another program would; without `v` only reports the state.
    case period
    /// Fixes the temperature at `v` °C; without `v` it varies again.
    case temp
    /// Sets a characteristic to the bytes `hex`, and notifies it; it is identified by `characteristic` (a UUID) and, if
    /// necessary, `service` and `instance`, the index among those of the same UUID. Without `characteristic` it is the
    /// temperature, and without `hex` the temperature varies again.
    case value
    /// Advertises the bytes `hex` as the data of `service`; without `hex`, none.
    case advertise
    /// Calls itself `name`: bluetoothd reads the name on a link.
    case name
    /// Adds the bytes `hex` to the data log, or clears it (`on`: false).
    case log
    /// The writes to a characteristic, identified as for `value`.
    case writes
    /// Offers the service `service` (`on`), or removes it; while connected, by Service Changed.
    case serve
    /// Stops notifications (`on`), or resumes them.
    case silent
    /// Goes out of range, and returns.
    case vanish
    case `return`
    /// The peripheral ends the link.
    case disconnect
    /// The reset button.
    case reset
    /// The next `count` writes of the client configuration fail (`fault`): the link is dropped, there is the ATT error
    /// `code`, or no answer and the link is dropped after `ms`. With `count` 0 no more writes fail.
    case subscription
    /// Requires pairing for all services but the device information (`on`), or not; with the `passkey` that it
    /// displays, or JustWorks. It refuses to pair unless it `pairs`. Its address is a private one if it has an `identity`, an
    /// address. The next pairing fails by `fault`: the link is
    /// dropped, or there is no answer. Without pairing, bluetoothd never answers a call, and removes the device object
    /// after 30 s.
    case pairing
    /// Loses its bond.
    case forget
    /// Sets how well an adapter (`adapter`) receives the peripheral, to `v` dBm; without `v` it is out of its range.
    case strength
    /// Powers an adapter (`adapter`) on (`on`) or off.
    case power
    /// Adds (`on`) an adapter (`adapter`), which is then called `name`, or removes it.
    case plug
    /// The adapter (`adapter`) that is added next has Bluetooth LE (`on`), or not.
    case le
    /// Lets an adapter (`adapter`) scan (`on`), or makes the kernel refuse it, which StartDiscovery then shows.
    case scan
    /// Ends bluetoothd (`how`: `term` or `kill`) and starts it again after `ms`.
    case restart
    /// Acts on the receiver on USB and its senders (`action`), and reports their state. `press` is for sender `i`, or for
    /// `all` within `ms`, whose order is the answer; `write` prints the bytes `hex`.
    case radio
  }

  enum RadioAction: String, CaseIterable, Sendable {
    case press, reset, plug, unplug, write
  }

  enum Ending: String, CaseIterable, Sendable {
    case term
    case kill
  }

  enum Fault: String, CaseIterable, Sendable {
    case drop
    case error
    case silence
  }

  var op: Operation?
  var i: Int?
  /// The number of the adapter; 0 if it is left out.
  var adapter: Int?
  /// Whether `period`, `subscription` or `pairing` is for every micro:bit, instead of `i`.
  var all: Bool?
  var v: Int?
  var on: Bool?
  var bytes: [UInt8]?
  var how: Ending?
  var action: RadioAction?
  var ms: Int?
  var fault: Fault?
  /// The error code of ATT.
  var code: Int?
  var count: Int?
  var name: String?
  var service: BluetoothUUID?
  var characteristic: BluetoothUUID?
  var instance: Int?
  var passkey: Int?
  var pairs: Bool?
  var identity: BluetoothAddress?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "op", \.op, .choice),
    ConfigurationKey("i", \.i, .optional(.integer(0...65535))),
    ConfigurationKey("adapter", \.adapter, .optional(.integer(0...9))),
    ConfigurationKey("all", \.all, .optional(.bool)),
    ConfigurationKey("v", \.v, .optional(.integer(-128...65535))),
    ConfigurationKey("on", \.on, .optional(.bool)),
    ConfigurationKey("hex", \.bytes, .optional(.hexadecimal)),
    ConfigurationKey("how", \.how, .optional(.choice)),
    ConfigurationKey("action", \.action, .optional(.choice)),
    ConfigurationKey("ms", \.ms, .optional(.integer(0...86_400_000))),
    ConfigurationKey("fault", \.fault, .optional(.choice)),
    ConfigurationKey("code", \.code, .optional(.integer(0...255))),
    ConfigurationKey("count", \.count, .optional(.integer(0...65535))),
    ConfigurationKey("name", \.name, .optional(.text(longest: 248))),
    ConfigurationKey("service", \.service, .optional(.uuid)),
    ConfigurationKey("characteristic", \.characteristic, .optional(.uuid)),
    ConfigurationKey("instance", \.instance, .optional(.integer(0...99))),
    ConfigurationKey("passkey", \.passkey, .optional(.passkey)),
    ConfigurationKey("pairs", \.pairs, .optional(.bool)),
    ConfigurationKey("identity", \.identity, .optional(.address)),
  ]

  /// The fault of writes of the client configuration; nil: none.
  var subscriptionFault: SubscriptionFault? {
    let kind: SubscriptionFault.Kind =
      switch fault ?? .drop {
      case .drop: .drop
      case .error: .error(code.map { UInt8($0) } ?? 0x0E)
      case .silence: .silence(.milliseconds(ms ?? 3000))
      }
    let count = count ?? 1
    return count > 0 ? SubscriptionFault(kind: kind, count: count) : nil
  }

  /// The characteristic identified by `service`, `characteristic` and `instance`; nil if there is none.
  func characteristic(of database: GATTDatabase) -> GATTDatabase.Characteristic? {
    characteristic.flatMap {
      database.characteristic($0, instance: instance ?? 0, in: service)
    }
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
    isRequired = request.on ?? true
    passkey = request.passkey
    pairs = request.pairs ?? true
    identity = request.identity?.description
    fault =
      switch request.fault {
      case .drop: .drop
      case .silence: .silence
      case .error, nil: nil
      }
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
