import EventLoop
import DBus
import GATT
import Peripherals
import Testing

@testable import BlueZSimulator

/// The pure model with a clock of its own, and what it wants done as lines of text.
///
/// The lines are those of the recordings (recordings/normalise.py says how they are made).
final class Fixture {
  var model: Bluetoothd
  private(set) var now: Moment
  /// What the model did and no test has looked at yet.
  private(set) var lines: [String] = []
  /// The calls that have no answer yet.
  private var calls: [DBusCall] = []
  private var lastCall: UInt32 = 0
  private(set) var channels: [ChannelID] = []
  /// Packets written to notification sockets.
  private(set) var packets: [[UInt8]] = []
  /// Calls of Pair for which an agent was asked for the passkey.
  private(set) var questions: [DBusCall] = []

  init(_ change: (inout SimulatorOptions) -> Void = { $0.devices = 1 }) {
    var options = SimulatorOptions()
    change(&options)
    now = .now
    model = Bluetoothd(options, at: now)
  }

  // MARK: Inputs

  func call(_ client: String, _ path: String, _ method: String, _ arguments: [DBusValue] = []) {
    guard let dot = method.lastIndex(of: ".") else { return }
    let member = String(method[method.index(after: dot)...])
    lastCall += 1
    let call = DBusCall(
      member, on: String(method[..<dot]), of: path, at: BlueZName.busName, arguments, sender: client,
      replySerial: lastCall)
    calls.append(call)
    give { $0.handle(call) }
  }

  /// Sets what a characteristic of the first peripheral holds; whether it can hold that.
  func set(_ characteristic: GATTDatabase.Characteristic, to bytes: [UInt8]) -> Bool {
    var isPossible = false
    give { isPossible = $0.setValue(0, characteristic, bytes) }
    return isPossible
  }

  /// Gives the model an input.
  func give(_ input: (inout Bluetoothd) -> Void) {
    model.take(at: now, input)
    for effect in model.takeEffects() {
      switch effect {
      case .signal(let signal), .notification(let signal, _, _, _): lines.append(Self.line(signal))
      case .answer(let call, .success(let arguments)): answer(call, ["ok"], arguments)
      case .answer(let call, .failure(.remote(let name, let text))):
        answer(call, [name, text.trimmingNewline], [])
      case .answer(_, .failure(let error)): Issue.record("\(error) is no reply")
      case .askPasskey(_, _, let device, let call):
        lines.append("?\tRequestPasskey\t\(device)")
        questions.append(call)
      case .open(let channel, let call):
        channels.append(channel)
        answer(call, ["ok"], [])
      case .packet(_, let bytes): packets.append(bytes)
      case .hangUp(let channel): channels.removeAll { $0 == channel }
      case .crash:
        lines.append("crash")
        give { $0.vanish() }
      }
    }
  }

  private func answer(_ call: DBusCall, _ outcome: [String], _ arguments: [DBusValue]) {
    guard let index = calls.firstIndex(of: call) else {
      Issue.record("a second answer to \(call)")
      return
    }
    calls.remove(at: index)
    var fields = ["<", call.client, call.member] + outcome
    if ["Get", "GetAll", "ReadValue"].contains(call.member), let value = arguments.first {
      fields.append(Self.text(value))
    }
    lines.append(fields.joined(separator: "\t"))
  }

  /// Lets time pass until the next event, but not beyond `limit`; false when there is none before that.
  func advanceToNextEvent(within limit: Duration) -> Bool {
    guard let next = model.nextEvent, next <= now + limit else { return false }
    now = max(now, next)
    give { $0.advance() }
    return true
  }

  func advance(by duration: Duration) {
    let end = now + duration
    while let next = model.nextEvent, next <= end {
      now = max(now, next)
      give { $0.advance() }
    }
    now = end
  }

  // MARK: Lines

  /// The lines since they were last taken.
  func takeLines() -> [String] {
    defer { lines = [] }
    return lines
  }

  func takeLine() -> String? { lines.isEmpty ? nil : lines.removeFirst() }

  func takePackets() -> [[UInt8]] {
    defer { packets = [] }
    return packets
  }

  var unanswered: Int { calls.count }

  private static func line(_ signal: DBusSignal) -> String {
    let arguments = signal.arguments
    if signal.member == "PropertiesChanged" {
      return [
        "!", signal.path, signal.member, arguments[0].text ?? "", text(arguments[1]),
        (arguments[2].textArray ?? []).joined(separator: ","),
      ].joined(separator: "\t")
    }
    return ["!", arguments[0].text ?? "", signal.member, text(arguments[1])].joined(separator: "\t")
  }

  /// A value as in the recordings: signal strengths and database hashes are without what they hold.
  static func text(_ value: DBusValue) -> String {
    switch value.unwrapped {
    case .dictionary(_, _, let entries):
      "{" + entries.map { "\($0.key.text ?? "")=\(text($0.value))" }.joined(separator: ";") + "}"
    case .array(_, let elements):
      elements.isEmpty ? "{}" : "as:" + elements.compactMap(\.text).joined(separator: ",")
    case .bytes(let bytes):
      bytes.count == 16 && !bytes.allSatisfy({ (0x20...0x7E).contains($0) })
        ? "ay" : "ay:" + Hexadecimal.text(bytes)
    case .int16: "n"
    case .boolean(let value): "b:\(value)"
    case .string(let value): "s:\(value)"
    case .objectPath(let value): "o:\(value)"
    case let other: "\(other.signature):\(other.integer ?? 0)"
    }
  }
}

extension String {
  fileprivate var trimmingNewline: String { last == "\n" ? String(dropLast()) : self }
}

extension Fixture {
  /// The first described peripheral.
  static let described = "/org/bluez/hci0/dev_E6_7A_00_00_00_02"

  /// A link to a described peripheral, the only one.
  static func linked(to description: PeripheralDescription) -> Fixture {
    let fixture = LinkTests.discovered { $0.describe(description) }
    fixture.call("A", described, .connect)
    fixture.advance(by: .seconds(1))
    _ = fixture.takeLines()
    return fixture
  }
}

extension SimulatorOptions {
  /// This peripheral alone.
  mutating func describe(_ description: PeripheralDescription) {
    devices = 0
    described = [description]
  }
}

/// Methods that many tests call.
extension String {
  static let startDiscovery = "org.bluez.Adapter1.StartDiscovery"
  static let stopDiscovery = "org.bluez.Adapter1.StopDiscovery"
  static let connect = "org.bluez.Device1.Connect"
  static let disconnect = "org.bluez.Device1.Disconnect"
  static let readValue = "org.bluez.GattCharacteristic1.ReadValue"
  static let writeValue = "org.bluez.GattCharacteristic1.WriteValue"
  static let startNotify = "org.bluez.GattCharacteristic1.StartNotify"
  static let stopNotify = "org.bluez.GattCharacteristic1.StopNotify"
  static let acquireNotify = "org.bluez.GattCharacteristic1.AcquireNotify"
}

extension DBusValue {
  static let noOptions = DBusValue.properties([:])
}
