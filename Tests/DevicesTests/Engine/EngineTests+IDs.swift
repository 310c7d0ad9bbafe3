import Configuration
import GATT
import TestSupport
import Testing

@testable import Devices

/// The ids of devices: those that are changed, shared or left to another gateway.
extension EngineTests {
  @Test func aDeviceIsRenamed() async throws {
    let folder = try TemporaryFolder()
    let kitchen = try DeviceID("kitchen")
    let tested = try await Engine(configuration(), state: folder.path + "/state.db")
    try await tested.frontEnd.availability(true)
    try await tested.engine.rename(Engine.id, to: kitchen)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    #expect(await tested.engine.device(Engine.id) == nil)
    try await tested.frontEnd.event("renamed") {
      guard case .changed(.renamed(from: Engine.id, .requested), let device) = $0 else { return false }
      return device.id == kitchen
    }
    #expect(try await tested.command(500, of: kitchen).final() == .applied(actual: 500))
    // Stored when the topics of the former id are cleared.
    await tested.engine.storeID(of: Engine.address)
    await tested.end()
    #expect(try Engine.stored(in: folder.path + "/state.db").first?.id == kitchen)
  }

  @Test func devicesSwapIDsAndKeepTheirCommands() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    func configuration(_ first: DeviceID, _ second: DeviceID) -> Configuration {
      var configuration = Configuration()
      configuration.devices = [
        Configuration.Device(match: .identifier(Engine.address), id: first),
        Configuration.Device(match: .identifier(other), id: second),
      ]
      return configuration
    }
    let tested = try await Engine(configuration(kitchen, hall))
    try await tested.frontEnd.availability(true)
    let waits = await tested.command(500, of: hall)
    try await waits.pending()
    await tested.engine.configure(configuration(hall, kitchen))
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.device(hall)?.isOnline == true)
    #expect(await tested.engine.device(kitchen)?.address == other)
    #expect(waits.elements == [.pending])
    #expect(
      !tested.frontEnd.events.elements.contains { if case .detached = $0 { true } else { false } })
    await tested.end()
  }

  /// As of an entry that matches several by a pattern.
  @Test func firstOfSeveralDevicesGetsASharedIDAndNoneIsRemoved() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    func configuration(_ second: DeviceID?) -> Configuration {
      var configuration = Configuration()
      configuration.devices = [
        Configuration.Device(match: .identifier(Engine.address), id: kitchen),
        Configuration.Device(match: .identifier(other), id: second),
      ]
      return configuration
    }
    let tested = try await Engine(configuration(nil), isInRange: false)
    for before in [nil, hall] {
      await tested.engine.configure(configuration(before))
      #expect(await tested.engine.device(before ?? DeviceID(other)) != nil)
      await tested.engine.configure(configuration(kitchen))
      #expect(await tested.engine.device(kitchen)?.address == Engine.address)
      #expect(await tested.engine.device(DeviceID(other))?.address == other)
    }
    #expect(
      !tested.frontEnd.events.elements.contains { if case .detached = $0 { true } else { false } })
    await tested.end()
  }

  @Test(arguments: [true, false])
  func aSharedIDThatIsFreePassesToTheNextDevice(byRequest: Bool) async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    let other = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E6)
    var configuration = Configuration()
    configuration.devices = [
      Configuration.Device(match: .identifier(Engine.address), id: kitchen),
      Configuration.Device(match: .identifier(other), id: kitchen),
    ]
    let tested = try await Engine(configuration, isInRange: false)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    if byRequest {
      try await tested.engine.rename(kitchen, to: hall)
    } else {
      configuration.devices[0].id = hall
      await tested.engine.configure(configuration)
    }
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.device(kitchen)?.address == other)
    await tested.end()
  }

  /// It goes by its address, as another device had the id when it came.
  @Test func aDeviceGetsAnIDThatItShared() async throws {
    let (kitchen, hall) = (try DeviceID("kitchen"), try DeviceID("hall"))
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: kitchen)]
    let tested = try await Engine(configuration)
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.yieldID(kitchen))
    try await tested.engine.rename(Engine.id, to: kitchen)
    #expect(await tested.engine.device(kitchen)?.address == Engine.address)
    try await tested.engine.rename(kitchen, to: hall)
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    await tested.end()
  }

  @Test func aDeviceThatIsRemovedIsNotRenamedFirst() async throws {
    // Several, as their order varies.
    let addresses = (0..<16).map { BluetoothAddress(truncating: 0xC5A1_B2C3_D500 + UInt64($0)) }
    let entries = addresses.map { Configuration.Device(match: .identifier($0), id: DeviceID($0)) }
    let ids = try (0..<8).map { try DeviceID("room-\($0)") }
    var configuration = Configuration()
    configuration.devices = entries
    for (index, id) in ids.enumerated() { configuration.devices[index].id = id }
    let tested = try await Engine(configuration, isInRange: false)
    let before = tested.frontEnd.events.count
    configuration.devices = Array(entries.dropFirst(ids.count))
    for (index, id) in ids.enumerated() { configuration.devices[index].id = id }
    await tested.engine.configure(configuration)
    let renamed = tested.frontEnd.events.elements[before...].compactMap { event -> BluetoothAddress? in
      if case .changed(.renamed, let device) = event { device.address } else { nil }
    }
    #expect(Set(renamed) == Set(addresses.dropFirst(ids.count)))
    for (index, id) in ids.enumerated() {
      #expect(await tested.engine.device(id)?.address == addresses[ids.count + index])
    }
    await tested.end()
  }

  @Test func idOfAPrefixEntryIsLeftToAnotherGateway() async throws {
    let hall = try DeviceID("hall")
    var configuration = Configuration()
    configuration.devices = [Configuration.Device(match: .namePrefix("BBC"), id: hall)]
    let tested = try await Engine(configuration)
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.device(hall)?.address == Engine.address)
    #expect(await tested.engine.yieldID(hall))
    try await tested.frontEnd.event("renamed") {
      if case .changed(.renamed(from: hall, .conflict), _) = $0 { true } else { false }
    }
    #expect(await tested.engine.device(Engine.id)?.isOnline == true)
    #expect(await !tested.engine.yieldID(Engine.id))
    await tested.end()
  }
}
