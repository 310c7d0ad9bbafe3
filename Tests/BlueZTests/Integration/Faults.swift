import EventLoop
import TestSupport

@testable import BlueZ

/// A central and the bluetoothd that a test makes misbehave, on one loop.
final class Faults: Sendable {
  let bus: PrivateBus
  let fake: FakeBlueZ
  let tested: CentralUnderTest
  var central: Central { tested.central }

  init(
    answers: [String: FakeBlueZ.Answer] = [:], _ change: (inout Limits) -> Void = { _ in }
  ) async throws {
    var limits = Limits.test
    change(&limits)
    bus = try await PrivateBus()
    fake = try await FakeBlueZ.start(bus: bus.address, answers: answers)
    tested = await CentralUnderTest(bus.address, limits: limits)
    try await tested.isOn()
  }

  /// The characteristics of the micro:bit, linked.
  func connect() async throws -> [Characteristic] { try await central.connect(Recorded.id) }

  /// Moves the begin of another program's attempt, which was in the way of a connect, to an hour ago.
  @LoopActor func anotherAttemptHasLastedAnHour() {
    central.links.busySince[Recorded.id]? = Moment.now + .seconds(-3600)
  }

  /// A signal of a characteristic's value.
  func notify(_ bytes: [UInt8], from path: String = Recorded.temperature) async {
    await fake.signal(
      .changed(
        path: path, interface: "org.bluez.GattCharacteristic1", properties: ["Value": .bytes(bytes)],
        invalidated: []))
  }
}

extension Central {
  /// Waits until `condition` holds of the central; returns whether it does.
  func wait(_ limit: Duration, until condition: @escaping @LoopActor (Central) -> Bool) async -> Bool {
    await wait(limit) { condition(self) }
  }
}
