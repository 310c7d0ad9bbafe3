import GATT
import JSON
import TestSupport

@testable import BlueZ
@testable import BlueZSimulator

/// A private bus with a simulated bluetoothd on it, quick enough for tests.
final class Fixture: Sendable {
  let bus: PrivateBus
  let simulator: Simulator

  init(_ change: (inout SimulatorOptions) -> Void = { _ in }) async throws {
    var options = SimulatorOptions()
    options.devices = 1
    options.period = 20
    options.timing.connect = .milliseconds(16)
    options.timing.disconnect = .milliseconds(20)
    options.timing.advertising = .milliseconds(5)
    options.timing.supervision = .milliseconds(10)
    change(&options)
    bus = try await PrivateBus()
    simulator = try await Simulator.start(options, address: bus.address)
  }

  /// A central on this bus, with its adapter on.
  func central(limits: Limits = .test) async throws -> CentralUnderTest {
    let central = await CentralUnderTest(bus.address, limits: limits)
    try await central.isOn()
    return central
  }

  /// A central that has found the first micro:bit.
  func centralAndMicroBit(limits: Limits = .test) async throws -> (CentralUnderTest, PeripheralID) {
    let central = try await central(limits: limits)
    await central.central.scan(true)
    return (central, try await central.seen().id)
  }

  func monitor() async throws -> Monitor { try await Monitor(bus.address) }

  func vanish(_ index: Int = 0) async { _ = await simulator.control(ControlRequest(op: .vanish, i: index)) }
  func comeBack(_ index: Int = 0) async { _ = await simulator.control(ControlRequest(op: .return, i: index)) }
  func hangUp(_ index: Int = 0) async {
    _ = await simulator.control(ControlRequest(op: .disconnect, i: index))
  }
  func power(_ on: Bool) async { _ = await simulator.control(ControlRequest(op: .power, on: on)) }
  func plug(_ on: Bool, as name: String? = nil) async {
    _ = await simulator.control(ControlRequest(op: .plug, on: on, name: name))
  }
  func setLE(_ on: Bool) async { _ = await simulator.control(ControlRequest(op: .le, on: on)) }
  func restart(killed: Bool) async {
    _ = await simulator.control(ControlRequest(op: .restart, how: killed ? .kill : .term, ms: 20))
  }
  func setValue(_ hex: String) async {
    _ = await simulator.control(ControlRequest(op: .value, i: 0, bytes: Hexadecimal.bytes(hex)))
  }

  /// The micro:bit has a service, or no longer.
  func serve(_ service: BluetoothUUID, _ isOwnerOnline: Bool) async {
    var request = ControlRequest(op: .serve, i: 0, on: isOwnerOnline)
    request.service = service
    _ = await simulator.control(request)
  }

  /// Whether the micro:bit itself has a link.
  func isLinked(_ index: Int = 0) async -> Bool {
    guard case .array(let states) = await simulator.control(ControlRequest(op: .list)) else { return false }
    return states[index]["connected"] == .bool(true)
  }

  /// Waits until the micro:bit has no link.
  func linkHasEnded() async throws {
    try await eventually("the end of the link") { await !self.isLinked() }
  }
}
