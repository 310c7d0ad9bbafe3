import Configuration
import EventLoop
import GATT
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// Reads on a slow link.
@Suite struct ReadTests {
  private typealias Engine = EngineUnderTest

  /// An engine whose device is idle: each ATT request takes some time, and no value is notified by itself.
  private func slowEngine(_ attribute: Duration = .milliseconds(100)) async throws -> EngineUnderTest {
    let tested = try await Engine {
      $0.timing.attribute = attribute
      $0.period = 65535
    }
    try await tested.frontEnd.availability(true)
    await tested.silence()
    // Read last on a new link.
    try await tested.frontEnd.change("its device information") { $0.record.serial != nil }
    return tested
  }

  @Test func equalReadsThatWaitAreOneAndAWriteGoesBefore() async throws {
    let tested = try await slowEngine()
    let start = tested.frontEnd.events.count
    let outcomes = Record<Outcome>()
    let final = Record<Outcome>()
    try await tested.engine.get(20, thenSet: { final.append($0.outcome) }) { outcomes.append($0.outcome) }
    _ = try await outcomes.first(from: 19, within: patience, "all reads") { _ in true }
    #expect(outcomes.elements.allSatisfy { if case .read = $0 { true } else { false } })
    #expect(try await final.final() == .applied(actual: 1000))
    // bluetoothd notifies each read, and a read-back.
    let values = tested.frontEnd.events.elements.dropFirst(start).compactMap { event -> Int? in
      if case .reading(let property, _, _) = event { property } else { nil }
    }
    #expect(values == [Engine.temperature, Engine.period, Engine.temperature])
    await tested.end()
  }

  /// bluetoothd would notify it as if a button had been released.
  @Test func inspectionReadsNoEventInUse() async throws {
    let tested = try await Engine { $0.services = [.buttons] }
    let button = BluetoothUUID.microbit(0xDA90)
    try await tested.notifies(button)
    try await tested.frontEnd.availability(true)
    let inspection = try await tested.engine.inspect(.id(Engine.id))
    let item = try #require(inspection.items.first { $0.characteristic.uuid == button })
    #expect(item.characteristic.flags.contains(.read) && item.value == nil)
    await tested.notify(button, "02")
    let isReading: @Sendable (RecordingFrontEnd.Event) -> Bool = {
      if case .reading = $0 { true } else { false }
    }
    try await tested.frontEnd.event("a button", where: isReading)
    #expect(tested.frontEnd.events.elements.count(where: isReading) == 1)
    await tested.end()
  }

  /// A serial port over Bluetooth: one characteristic for both directions.
  @Test func inspectionNamesEachPropertyOfACharacteristic() async throws {
    let service = BluetoothUUID(short: 0xFFE0), characteristic = BluetoothUUID(short: 0xFFE1)
    func property(_ name: String, _ access: Property.Access) -> Property {
      Property(
        name: name, service: service, characteristic: characteristic, kind: .event, access: access,
        writeMode: .command, codec: .utf8)
    }
    var configuration = Configuration()
    let serial = try Profile(
      name: "serial", requires: [service], properties: [property("rx", .notify), property("tx", .write)])
    configuration.profiles = [serial]
    let address = BluetoothAddress(truncating: 0xE67A_0000_0001)
    let tested = try await Engine(configuration) {
      $0.described = [PeripheralDescription(name: "HMSoft", profile: serial, address: address)]
    }
    try await tested.frontEnd.adapterIsOn()
    let inspection = try await tested.engine.inspect(.address(address))
    #expect(inspection.items.map { $0.properties.map(\.name) }.filter { !$0.isEmpty } == [["rx", "tx"]])
    await tested.end()
  }

  /// Firmware that has stopped notifying may still answer.
  @Test func whatIsPolledDoesNotKeepALinkAlive() async throws {
    let tested = try await Engine { $0.services = [.temperature, .magnetometer] }
    let device = try await tested.frontEnd.availability(true)
    let bearing = try #require(device.profile.index(ofPropertyNamed: "bearing"))
    await tested.silence()
    // All that was notified before comes before the answer.
    #expect(try await tested.get(Engine.temperature).final().isSuccess)
    var signs: [Moment?] = []
    for _ in 1...2 {
      try await tested.frontEnd.event(from: tested.frontEnd.events.count, "a bearing") {
        if case .reading(bearing, _, _) = $0 { true } else { false }
      }
      signs.append(await tested.lastSignOfLife())
    }
    #expect(signs[0] != nil && signs[0] == signs[1])
    await tested.end()
  }

  @Test func readsBeyondTheBoundFail() async throws {
    let tested = try await slowEngine()
    let outcomes = Record<Outcome>()
    try await tested.engine.get(70) { outcomes.append($0.outcome) }
    _ = try await outcomes.first(from: 69, within: patience, "all reads") { _ in true }
    let failed = outcomes.elements.filter {
      $0 == .failed(reason: "64 reads of temperature are waiting already")
    }
    #expect(failed.count == 5)
    #expect(outcomes.elements.count { if case .read = $0 { true } else { false } } == 65)
    await tested.end()
  }

  @Test func readsThatWaitFailWithTheLink() async throws {
    let tested = try await slowEngine(.seconds(3))
    let outcomes = Record<Outcome>()
    try await tested.engine.get(3) { outcomes.append($0.outcome) }
    await tested.hangUp()
    _ = try await outcomes.first(from: 2, within: patience, "all reads") { _ in true }
    #expect(outcomes.elements.allSatisfy { if case .failed = $0 { true } else { false } })
    await tested.end()
  }
}

extension DeviceManager {
  /// Reads the temperature so many times at once, and sets the period.
  fileprivate func get(
    _ count: Int, thenSet set: CommandReply? = nil, _ reply: @escaping CommandReply
  ) throws {
    let id = EngineUnderTest.id
    for _ in 0..<count { try get("temperature", of: id, reply: reply) }
    if let set { try execute(Command(id, "period", 1000), reply: set) }
  }
}

extension EngineUnderTest {
  @LoopActor fileprivate func lastSignOfLife() -> Moment? {
    engine.registry.byID[Self.id]?.session.linkSession?.machine.liveness.lastSignOfLife
  }
}
