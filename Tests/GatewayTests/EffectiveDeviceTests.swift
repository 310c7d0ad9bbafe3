import Configuration
import GATT
import Testing

@testable import Gateway

@Suite struct EffectiveDeviceTests {
  let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  let here = GatewayID(hostName: "here")

  func configuration(_ devices: [Configuration.Device], area: String? = nil) -> Configuration {
    var configuration = Configuration()
    configuration.gateway.area = area
    configuration.devices = devices
    return configuration
  }

  func entry(_ change: (inout Configuration.Device) -> Void = { _ in }) -> Configuration.Device {
    var entry = Configuration.Device(match: .identifier(address))
    change(&entry)
    return entry
  }

  func record(_ change: (inout DeviceRecord) -> Void) -> DeviceRecord {
    var record = DeviceRecord(identifier: address)
    change(&record)
    return record
  }

  @Test func withoutAnythingNamedThereAreDefaults() throws {
    let device = try #require(configuration([entry()]).effective(address, name: nil, record: nil, in: here))
    #expect(device.id == Sourced(DeviceID(address), .default))
    #expect(!device.hasSharedID)
    #expect(device.name == Sourced(nil, .default))
    #expect(device.area == Sourced(nil, .default))
    #expect(device.period == Sourced(nil, .default))
    #expect(device.isEnabled == Sourced(true, .default))
    #expect(device.gateway == Sourced(nil, .default))
  }

  @Test func theConfigurationRanksAboveTheDefaults() throws {
    let kitchen = try DeviceID("kitchen")
    let entry = entry {
      $0 = Configuration.Device(
        match: $0.match, id: kitchen, name: "N", area: "A", period: 7, isEnabled: false, gateway: here)
    }
    let device = try #require(
      configuration([entry], area: "G").effective(address, name: nil, record: nil, in: here))
    #expect(device.id == Sourced(kitchen, .configuration))
    #expect(!device.hasSharedID)
    #expect(device.name == Sourced("N", .configuration))
    #expect(device.area == Sourced("A", .configuration))
    #expect(device.period == Sourced(7, .configuration))
    #expect(device.isEnabled == Sourced(false, .configuration))
    #expect(device.gateway == Sourced(here, .configuration))
  }

  @Test func requestsRankAboveTheConfiguration() throws {
    let hall = try DeviceID("hall")
    let entry = entry {
      $0 = Configuration.Device(
        match: $0.match, id: try? DeviceID("kitchen"), name: "N", area: "A", period: 7, isEnabled: false,
        gateway: GatewayID("attic"))
    }
    let record = record {
      $0.changes = DeviceOptions(id: hall, name: "M", area: "B", period: 8, isEnabled: true, gateway: here)
      $0.wanted = ["period": 8]
    }
    let device = try #require(
      configuration([entry]).effective(address, name: nil, record: record, in: here))
    #expect(device.id == Sourced(hall, .request))
    #expect(device.name == Sourced("M", .request))
    #expect(device.area == Sourced("B", .request))
    #expect(device.period == Sourced(8, .request))
    #expect(device.isEnabled == Sourced(true, .request))
    #expect(device.gateway == Sourced(here, .request))
  }

  @Test func thePeriodIsTheLatestOfCommandAndRequest() throws {
    func period(_ change: (inout DeviceRecord) -> Void) -> Sourced<Int?>? {
      configuration([entry { $0.period = 7 }])
        .effective(address, name: nil, record: record(change), in: here)?.period
    }
    #expect(period { _ in } == Sourced(7, .configuration))
    #expect(period { $0.wanted = ["period": 9] } == Sourced(9, .command))
    #expect(period { $0.wanted = ["another": 9] } == Sourced(7, .configuration))
    #expect(period { $0.changes.period = 8 } == Sourced(8, .request))
    let both = period { record in
      record.changes.period = 8
      record.wanted = ["period": 9]
    }
    #expect(both == Sourced(9, .command))
  }

  @Test func theAreaOfTheGatewayIsThatOfItsDevices() {
    let device = configuration([entry()], area: "Attic").effective(address, name: nil, record: nil, in: here)
    #expect(device?.area == Sourced("Attic", .configuration))
  }

  @Test func theIDOfAPrefixIsShared() throws {
    let hall = try DeviceID("hall")
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"), id: hall)])
    let device = configuration.effective(address, name: "BBC x", record: nil, in: here)
    #expect(device?.id == Sourced(hall, .configuration))
    #expect(device?.hasSharedID == true)
    let renamed = record { $0.changes.id = try? DeviceID("attic") }
    #expect(
      configuration.effective(address, name: "BBC x", record: renamed, in: here)?.hasSharedID == false)
  }

  @Test func theRecordedNameCountsUntilOneIsHeard() {
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"))])
    let record = record { $0.name = "BBC micro:bit" }
    #expect(configuration.ownership(address, name: nil, record: nil, in: here) == .unmatched)
    #expect(configuration.effective(address, name: nil, record: record, in: here) != nil)
    #expect(configuration.ownership(address, name: "other", record: record, in: here) == .unmatched)
  }

  @Test func whatIsNotOurs() throws {
    let here = here
    let attic = try #require(GatewayID("attic"))
    func ownership(_ entry: Configuration.Device?, _ change: (inout DeviceRecord) -> Void = { _ in })
      -> Ownership
    {
      let configuration = configuration(entry.map { [$0] } ?? [])
      let record = record(change)
      let claim = configuration.ownership(address, name: nil, record: record, in: here)
      let effective = configuration.effective(address, name: nil, record: record, in: here)
      if case .ours(let device) = claim { #expect(effective == device) } else { #expect(effective == nil) }
      return claim
    }
    #expect(ownership(nil) == .unmatched)
    #expect(ownership(entry()) { $0.isRemoved = true } == .removed)
    #expect(
      ownership(nil) { record in
        record.isAdded = true
        record.isRemoved = true
      } == .removed)
    guard case .ours = ownership(nil, { $0.isAdded = true }) else { return #expect(Bool(false), "not added") }
    let pinned = entry { $0.gateway = attic }
    guard case .elsewhere(attic, let device) = ownership(pinned) else {
      return #expect(Bool(false), "not left to the attic")
    }
    #expect(device.gateway == Sourced(attic, .configuration))
    guard case .ours = ownership(pinned, { $0.changes.gateway = here }) else {
      return #expect(Bool(false), "not taken back from the attic")
    }
    let enabled = configuration([entry { $0.isEnabled = true }])
    #expect(
      enabled.effective(address, name: nil, record: nil, in: here)?.isEnabled == Sourced(true, .configuration)
    )
    guard case .ours = ownership(entry { $0.isEnabled = false }) else {
      return #expect(Bool(false), "disabled, and known all the same")
    }
  }
}
