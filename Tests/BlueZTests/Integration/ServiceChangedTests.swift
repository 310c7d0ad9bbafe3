import DBus
import GATT
import TestSupport
import Testing

@testable import BlueZ

/// A peripheral that changes its services on a link.
@Suite struct ServiceChangedTests {
  private static let temperature = Property.microbitTemperature.service

  private var limits: Limits {
    var limits = Limits.test
    limits.operation = .seconds(3600)
    return limits
  }

  private func changed(_ tested: CentralUnderTest) async throws -> [Characteristic] {
    try await tested.events.next("changed services") { event in
      if case .servicesChanged(_, let characteristics) = event { characteristics } else { nil }
    }
  }

  @Test func removedCharacteristicEndsItsOperationsAndTheLinkStays() async throws {
    let fixture = try await Fixture { $0.timing.attribute = .seconds(3600) }
    let (tested, id) = try await fixture.centralAndMicroBit(limits: limits)
    let characteristics = try await tested.central.connect(id)
    let before = try #require(characteristics.temperature)
    let monitor = try await fixture.monitor()
    let reading = Task { try await tested.central.read(before).get() }
    _ = try await monitor.lines.next("a read") { $0.hasPrefix("ReadValue") ? true : nil }
    await fixture.serve(Self.temperature, false)
    let rest = try await changed(tested)
    #expect(rest.temperature == nil && rest.count == characteristics.count - 2)
    // bluetoothd never answers it.
    await #expect(throws: CentralError.refused("the characteristic was removed")) { try await reading.value }
    // The link is not taken for one that is gone.
    await #expect(throws: CentralError.characteristicRemoved) { try await tested.central.read(before).get() }
    await fixture.serve(Self.temperature, true)
    let after = try #require(try await changed(tested).temperature)
    #expect(after.path == before.path && after != before)
    #expect(await fixture.isLinked())
    try await tested.end()
  }

  /// Its removal is not signalled yet.
  @Test func aCharacteristicThatBluetoothdDoesNotKnowIsRemoved() async throws {
    let unknown = FakeBlueZ.error(DBusName.Failure.unknownObject, "no such object")
    let faults = try await Faults(answers: ["ReadValue": unknown])
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.characteristicRemoved) {
      try await faults.central.read(temperature).get()
    }
    try await faults.tested.end()
  }

  @Test func returningCharacteristicIsSubscribedToAgain() async throws {
    let fixture = try await Fixture()
    let (tested, id) = try await fixture.centralAndMicroBit(limits: limits)
    let values = Record<[UInt8]>()
    let before = try #require(try await tested.central.connect(id).temperature)
    try await tested.central.subscribe(to: before) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    await fixture.serve(Self.temperature, false)
    #expect(try await changed(tested).temperature == nil)
    await fixture.serve(Self.temperature, true)
    let after = try #require(try await changed(tested).temperature)
    values.skip()
    try await tested.central.subscribe(to: after) { values.append($0) }
    _ = try await values.next("a notification") { $0 }
    #expect(await fixture.isLinked())
    try await tested.end()
  }
}
