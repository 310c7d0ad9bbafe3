import FoundationEssentials

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
    /// Makes the temperature characteristic hold the bytes `hex`; without `hex` the temperature again.
    case value
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
    /// Demands pairing for its temperature service (`on`) or not. There are no agents here: a call is never
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
    let digits = hex.compactMap(\.hexDigitValue)
    guard digits.count == hex.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
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
  /// Somebody gets the temperature's notifications.
  let notifying: Bool
  /// The period that it holds, in ms; nil for a stranger.
  let period: Int?
  /// °C; nil for a stranger.
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

extension Bluetoothd {
  func states(at now: ContinuousClock.Instant) -> [DeviceState] {
    peripherals.indices.map { state(of: $0, at: now) }
  }

  func state(of index: Int, at now: ContinuousClock.Instant) -> DeviceState {
    let peripheral = peripherals[index]
    return DeviceState(
      i: index, name: peripheral.name, address: peripheral.address, connected: peripheral.linked,
      notifying: peripheral.linked && devices[index]?.subscriptions[0x16]?.isConfigured == true,
      period: peripheral.microBit.map { Int($0.period) },
      temp: peripheral.microBit.map { Int($0.temperature(at: now)) }, sent: peripheral.sent,
      gone: !peripheral.inRange, armed: peripheral.subscriptionFault?.count ?? 0, stuck: isStuck(index))
  }
}
