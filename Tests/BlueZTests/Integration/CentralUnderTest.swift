import DBus
import EventLoop
import GATT
import TestSupport

@testable import BlueZ

/// A running central and the events that it has reported.
final class CentralUnderTest: Sendable {
  let central: Central
  let events = Record<CentralEvent>()
  private let running: Task<Void, Never>

  @LoopActor init(
    _ bus: String, adapter: AdapterSelection = AdapterSelection("hci0"), limits: Limits = .test
  ) {
    let events = events
    let central = Central(adapter: adapter, bus: bus, limits: limits) { events.append($0) }
    self.central = central
    running = Task { await central.run() }
  }

  deinit { running.cancel() }

  /// Cancels its run, and waits for the end of it.
  func end() async throws {
    running.cancel()
    try await deadline(patience, "the end of a cancelled central") { await self.running.value }
  }

  /// The next state that it reports.
  func state() async throws -> CentralState {
    try await events.next("a state") { if case .state(let state) = $0 { state } else { nil } }
  }

  /// Waits for an adapter that is on, and returns its name.
  @discardableResult
  func isOn() async throws -> String {
    try await events.next("an adapter that is on") { event -> String? in
      if case .state(.on(let name, _)) = event { name } else { nil }
    }
  }

  /// The next sighting of a peripheral in reach, of the one at `address` if that is given.
  func seen(_ address: String? = nil) async throws -> BlueZ.Peripheral {
    try await events.next("a peripheral \(address ?? "") in reach") { event in
      guard case .seen(let peripheral) = event, peripheral.isInRange,
        address == nil || peripheral.address.description == address
      else { return nil }
      return peripheral
    }
  }

  /// Connects to a peripheral when it is seen: again, where a link that was left by a bluetoothd that crashed
  /// is adopted and then ended by the next one.
  func connectAtLast() async throws -> [Characteristic] {
    var characteristics: [Characteristic]?
    while characteristics == nil {
      let id = try await seen().id
      characteristics = try? await central.connect(id)
    }
    return characteristics ?? []
  }

  func disconnected(_ id: PeripheralID) async throws {
    _ = try await events.next("the end of a link") { event -> Bool? in
      if case .disconnected(id, _) = event { true } else { nil }
    }
  }

  func isOutOfRange(_ id: PeripheralID) async throws {
    _ = try await events.next("a peripheral's being out of range") { event -> Bool? in
      if case .seen(let peripheral) = event, peripheral.id == id, !peripheral.isInRange { true } else { nil }
    }
  }

  func lost(_ id: PeripheralID) async throws {
    _ = try await events.next("a peripheral's being forgotten") { event -> Bool? in
      if case .lost(id) = event { true } else { nil }
    }
  }
}

extension Limits {
  /// As in production, but with short back-offs.
  static var test: Limits {
    var limits = Limits()
    limits.busBackOff = BackOff(first: .milliseconds(10), longest: .milliseconds(50))
    limits.busyBackOff = BackOff(first: .milliseconds(1), longest: .milliseconds(1))
    limits.startup = .milliseconds(100)
    limits.lockRetry = .milliseconds(50)
    return limits
  }
}

extension [Characteristic] {
  var temperature: Characteristic? { first { $0.uuid == Property.microbitTemperature.characteristic } }
  var period: Characteristic? { first { $0.uuid == Property.microbitPeriod.characteristic } }
}

/// The traffic of a bus, from a monitor: calls as `Connect dev_…`, those of AddMatch with the rule, changes as
/// `Connected=true dev_…`.
final class Monitor: Sendable {
  let lines = Record<String>()
  private let connection: DBusConnection
  private let caller: DBusConnection

  init(_ bus: String) async throws {
    let lines = lines
    caller = try await DBusConnection.open(bus) { _ in }
    connection = try await DBusConnection.open(bus) { event in
      switch event {
      case .call(let call):
        let rule = call.member == "AddMatch" ? call.arguments.first?.text : nil
        lines.append("\(call.member) \(rule ?? Self.short(call.path))")
      case .signal(let signal):
        guard signal.member == "PropertiesChanged", let properties = signal.arguments[1].map else { return }
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
          if let value = value.bool { lines.append("\(name)=\(value) \(Self.short(signal.path))") }
        }
      case .disconnected: break
      }
    }
    _ = try await connection.call(
      DBusCall(
        "BecomeMonitor", on: "org.freedesktop.DBus.Monitoring", of: DBusName.busPath, at: DBusName.bus,
        [.strings([]), .uint32(0)]), timeout: patience)
  }

  private static func short(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  /// Those of the lines so far that begin with one of `beginnings`.
  func lines(_ beginnings: String...) async throws -> [String] {
    // A monitor may lag behind: it has all lines so far once it has this call, which the bus itself refuses.
    let fence = "Fence\(lines.count)"
    _ = try? await caller.call(
      DBusCall(fence, on: "microbit.Test", of: DBusName.busPath, at: DBusName.bus), timeout: patience)
    _ = try await lines.first(fence) { $0.hasPrefix(fence + " ") }
    return lines.elements.filter { line in beginnings.contains { line.hasPrefix($0) } }
  }

  /// Waits for a line.
  func saw(_ line: String) async throws {
    _ = try await lines.next(line) { $0 == line ? true : nil }
  }
}
