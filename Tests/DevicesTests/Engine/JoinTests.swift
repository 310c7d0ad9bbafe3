import Configuration
import GATT
import TestSupport
import Testing

@testable import Devices

/// Micro:bits that join, against a simulated bluetoothd.
@Suite struct JoinTests {
  typealias Engine = EngineUnderTest

  private static let none: Configuration = {
    var configuration = Configuration()
    configuration.devices = []
    return configuration
  }()

  /// One that is in range already, too.
  @Test func microbitIsAddedForGoodWhileItIsPermitted() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let tested = try await Engine(Self.none, state: path)
    try await tested.frontEnd.adapterIsOn()
    #expect(await tested.engine.devices.isEmpty)
    await tested.engine.permitJoin(seconds: 60, device: nil)
    let permit = try #require(await tested.engine.permitJoin)
    #expect(permit.end.current() > .now && permit.device == nil)
    try await tested.frontEnd.availability(true)
    await tested.engine.permitJoin(seconds: 0, device: nil)
    #expect(await tested.engine.permitJoin == nil)
    await tested.end()
    #expect(try Engine.stored(in: path).first?.requested.isAdded == true)
    let letters = try Engine.stored(in: path).first?.requested.changes.id?.description
    #expect(letters?.utf8.count == 5, "its letters are its id")
    let next = try await Engine(Self.none, state: path)
    try await next.frontEnd.availability(true)
    await next.end()
  }

  @Test func onlyTheNamedOneMayJoinAlsoIfItWasRemoved() async throws {
    let tested = try await Engine(Configuration())
    try await tested.frontEnd.availability(true)
    _ = try await tested.engine.remove(Engine.id)
    try await tested.frontEnd.detached(.removed)
    for other in [nil, BluetoothAddress(truncating: 1)] {
      await tested.engine.permitJoin(seconds: 60, device: other)
      #expect(await tested.engine.devices.isEmpty)
    }
    let before = tested.frontEnd.events.count
    await tested.engine.permitJoin(seconds: 60, device: Engine.address)
    try await tested.frontEnd.availability(true, from: before)
    await tested.end()
  }

  /// As one that joins.
  @Test func oneThatIsAddedHasItsLettersAsIDUnlessAnotherHasThem() async throws {
    let name = "BBC micro:bit [zugev]"
    let tested = try await Engine(Self.none) {
      $0.devices = 2
      $0.names = [0: name, 1: name]
    }
    try await tested.frontEnd.adapterIsOn()
    let found = try await tested.scan(finding: 2)
    var ids: [String] = []
    for address in found {
      ids.append(try await tested.engine.add(address, DeviceOptionsPatch()).id.description)
    }
    let last = try #require(found.last)
    #expect(ids == ["zugev", DeviceID(last).description])
    await tested.end()
  }

  /// Another gateway has another micro:bit with the same letters.
  @Test func lettersOfANewOneGiveWayToAnotherGateways() async throws {
    let name = "BBC micro:bit [zugev]"
    let tested = try await Engine(Self.none) { $0.names = [0: name] }
    try await tested.frontEnd.adapterIsOn()
    _ = try await tested.scan(finding: 1)
    let letters = try await tested.engine.add(Engine.address, DeviceOptionsPatch()).id
    #expect(letters.description == "zugev")
    #expect(await tested.engine.yieldID(letters))
    let device = try #require(await tested.engine.devices.first)
    #expect(device.id == Engine.id && device.record.requested.changes.id == nil)
    let given = try await tested.engine.rename(Engine.id, name: "Table 1")
    #expect(await !tested.engine.yieldID(given), "a name that a user gave stays")
    await tested.end()
  }

  @Test func lettersOfOneThatWasConnectedStay() async throws {
    let tested = try await Engine(Self.none) { $0.names = [0: "BBC micro:bit [zugev]"] }
    try await tested.frontEnd.adapterIsOn()
    _ = try await tested.scan(finding: 1)
    let letters = try await tested.engine.add(Engine.address, DeviceOptionsPatch()).id
    await tested.engine.storeID(of: Engine.address)
    #expect(await !tested.engine.yieldID(letters))
    #expect(await tested.engine.devices.first?.id == letters)
    await tested.end()
  }

  /// It ends by itself; the shortest time is a second.
  @Test func permissionEnds() async throws {
    let tested = try await Engine(Self.none, isInRange: false)
    try await tested.frontEnd.adapterIsOn()
    await tested.engine.permitJoin(seconds: 1, device: nil)
    let adapters = tested.frontEnd.adapters
    var count = adapters.count
    while await tested.engine.permitJoin != nil {
      _ = try await adapters.first(from: count, within: patience, "a change") { _ in true }
      count += 1
    }
    await tested.comeBack()
    #expect(try await tested.scan(finding: 1) == [Engine.address])
    #expect(await tested.engine.deviceCount == 0)
    await tested.end()
  }
}
