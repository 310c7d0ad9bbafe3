import FoundationEssentials
import GATT

/// A line of the control channel: what is to befall the simulated world.
struct ControlRequest: Decodable, Sendable {
  enum Operation: String, Decodable, Sendable {
    /// The state of every peripheral.
    case list
    /// Notifications sent, by peripheral.
    case count
    /// What the simulator did so far.
    case counters
    /// Makes it hold the period `v` ms, as another program would; without `v` the state alone is told.
    case period
    /// Pins the temperature to `v` °C; without `v` it goes its own way again.
    case temp
    /// Makes a characteristic hold the bytes `hex`, and notifies it; `characteristic` names it (a UUID), and where that
    /// is not enough `service` and `instance`, which counts those of the same UUID from 0. Without `characteristic` it is
    /// the temperature's, which without `hex` holds the temperature again.
    case value
    /// The writes that a characteristic has taken; it is named as for `value`.
    case writes
    /// Has the service `service` (`on`), or no longer; on a link Service Changed says so.
    case serve
    /// Sends no more notifications (`on`), or does again.
    case silent
    /// Out of range, and back.
    case vanish
    case `return`
    /// The peripheral ends the link.
    case disconnect
    /// Advertises (`on`) or not.
    case adv
    /// The reset button.
    case reset
    /// The next `count` writes of the client configuration fail (`fault`): the link drops, the ATT error `code`
    /// comes, or nothing comes and the link drops `ms` later. So many before them (`skip`) succeed. A `count` of 0:
    /// no more of them.
    case subscription
    /// Demands pairing for its services (`on`), all but device information, or not. There are no agents here: a call is never
    /// answered, and 30 s later the device object goes.
    case pairing
    /// The adapter's power, `on` or off.
    case power
    /// The adapter is plugged in (`on`) or pulled.
    case plug
    /// bluetoothd ends (`how`: `term` or `kill`) and starts again `ms` later.
    case restart
  }

  enum Ending: String, Decodable, Sendable {
    case term
    case kill
  }

  enum Fault: String, Decodable, Sendable {
    case drop
    case error
    case silence
  }

  let op: Operation
  var i: Int?
  /// For `period`, `subscription` and `pairing`: every micro:bit, in the place of `i`.
  var all: Bool?
  var v: Int?
  var on: Bool?
  var hex: String?
  var how: Ending?
  var ms: Int?
  var fault: Fault?
  var code: UInt8?
  var count: Int?
  var skip: Int?
  var service: String?
  var characteristic: String?
  var instance: Int?

  static func parse(_ line: [UInt8]) -> Result<ControlRequest, ControlFailure> {
    do {
      return .success(try JSONDecoder().decode(ControlRequest.self, from: Data(line)))
    } catch {
      return .failure(ControlFailure(text: "\(error)"))
    }
  }

  /// What befalls writes of the client configuration; nil: nothing more.
  var subscriptionFault: SubscriptionFault? {
    let kind: SubscriptionFault.Kind =
      switch fault ?? .drop {
      case .drop: .drop
      case .error: .error(code ?? 0x0E)
      case .silence: .silence(.milliseconds(ms ?? 3000))
      }
    let count = count ?? 1
    return count > 0 ? SubscriptionFault(kind: kind, skip: skip ?? 0, count: count) : nil
  }

  /// The bytes of `hex`: `.some(nil)` when there is none, nil when it is not hexadecimal.
  var bytes: [UInt8]?? {
    guard let hex else { return .some(nil) }
    guard let bytes = BlueZSimulator.bytes(hexadecimal: hex) else { return nil }
    return .some(bytes)
  }

  /// The characteristic that `service`, `characteristic` and `instance` name; nil when there is none.
  func characteristic(of database: GATTDatabase) -> GATTDatabase.Characteristic? {
    guard let characteristic, let uuid = BluetoothUUID(characteristic), instance ?? 0 >= 0 else { return nil }
    let home = service.map { BluetoothUUID($0)?.description ?? $0 }
    return database.characteristic(uuid.description, instance: instance ?? 0, in: home)
  }
}

struct ControlFailure: Error, Sendable {
  let text: String
}

/// The line that answers.
enum ControlAnswer: Sendable {
  case devices([DeviceState])
  case device(DeviceState)
  case numbers([Int])
  case counters(Counters)
  case writes(Writes)
  case done
  case error(String)

  var line: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let data: Data? =
      switch self {
      case .devices(let states): try? encoder.encode(states)
      case .device(let state): try? encoder.encode(state)
      case .numbers(let numbers): try? encoder.encode(numbers)
      case .counters(let counters): try? encoder.encode(counters)
      case .writes(let writes): try? encoder.encode(WritesState(writes))
      case .done: try? encoder.encode(["status": "ok"])
      case .error(let text): try? encoder.encode(["error": text])
      }
    return Array(data ?? Data("{}".utf8)) + [10]
  }
}

/// A peripheral, as the control channel shows it.
struct DeviceState: Encodable, Sendable {
  let i: Int
  let name: String
  let address: String
  let connected: Bool
  /// Somebody gets notifications.
  let notifying: Bool
  /// The UUIDs of the characteristics whose notifications somebody gets.
  let subscribed: [String]
  /// The temperature's period that it holds, in ms; nil for what is no micro:bit.
  let period: Int?
  /// °C; nil for what is no micro:bit.
  let temp: Int?
  /// Notifications sent so far.
  let sent: Int
  /// Out of range.
  let gone: Bool
  /// How many more writes of its client configuration fail.
  let armed: Int
  /// bluetoothd takes its notifications for acquired, and nobody has them.
  let stuck: Bool
}

/// The writes that a characteristic has taken, as the control channel shows them.
private struct WritesState: Encodable {
  let count: Int
  /// The last ones, in hexadecimal, the latest at the end.
  let writes: [String]

  init(_ writes: Writes) {
    count = writes.count
    self.writes = writes.last.map(hexadecimal)
  }
}

extension Bluetoothd {
  func states(at now: ContinuousClock.Instant) -> [DeviceState] {
    peripherals.indices.map { state(of: $0, at: now) }
  }

  func state(of index: Int, at now: ContinuousClock.Instant) -> DeviceState {
    let peripheral = peripherals[index]
    let subscriptions = peripheral.linked ? devices[index]?.subscriptions ?? [:] : [:]
    let subscribed = subscriptions.filter(\.value.isConfigured).keys.sorted()
      .compactMap { peripheral.database.characteristic($0)?.uuid }
    return DeviceState(
      i: index, name: peripheral.name, address: peripheral.address, connected: peripheral.linked,
      notifying: !subscribed.isEmpty, subscribed: subscribed,
      period: peripheral.microBit.map { Int($0.period) },
      temp: peripheral.microBit.map { Int($0.temperature(at: now)) }, sent: peripheral.sent,
      gone: !peripheral.inRange, armed: peripheral.subscriptionFault?.count ?? 0, stuck: isStuck(index))
  }
}
