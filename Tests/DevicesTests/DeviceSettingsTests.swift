import Configuration
import GATT
import JSON
import Testing

@testable import Devices

@Suite struct DeviceSettingsTests {
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
    var record = DeviceRecord(address: address)
    change(&record)
    return record
  }

  func period(_ device: DeviceSettings, _ record: DeviceRecord? = nil) -> Sourced<Value?> {
    device.desired("period", record)
  }

  @Test func emptyEntryHasDefaults() throws {
    let device = try #require(configuration([entry()]).settings(address, name: nil, record: nil, in: here))
    #expect(device.id == Sourced(DeviceID(address), .default))
    #expect(!device.hasSharedID)
    #expect(device.name == Sourced(nil, .default))
    #expect(device.area == Sourced(nil, .default))
    #expect(period(device) == Sourced(nil, .default))
    #expect(device.desired == [:])
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
      configuration([entry], area: "G").settings(address, name: nil, record: nil, in: here))
    #expect(device.id == Sourced(kitchen, .configuration))
    #expect(!device.hasSharedID)
    #expect(device.name == Sourced("N", .configuration))
    #expect(device.area == Sourced("A", .configuration))
    #expect(period(device) == Sourced(7, .configuration))
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
      $0.changes = DeviceOptions(id: hall, name: "M", area: "B", isEnabled: true, gateway: here)
      $0.desired = ["period": DeviceRecord.Desired(value: 80, source: .request)]
    }
    let device = try #require(
      configuration([entry]).settings(address, name: nil, record: record, in: here))
    #expect(device.id == Sourced(hall, .request))
    #expect(device.name == Sourced("M", .request))
    #expect(device.area == Sourced("B", .request))
    #expect(period(device, record) == Sourced(80, .request))
    #expect(device.isEnabled == Sourced(true, .request))
    #expect(device.gateway == Sourced(here, .request))
  }

  @Test func commandsAndRequestsOverrideTheConfiguration() {
    func period(_ desired: [String: DeviceRecord.Desired]) -> Sourced<Value?>? {
      let record = record { $0.desired = desired }
      let device = configuration([entry { $0.period = 7 }])
        .settings(address, name: nil, record: record, in: here)
      return device.map { self.period($0, record) }
    }
    func set(_ value: JSONValue, _ source: ValueSource) -> DeviceRecord.Desired {
      DeviceRecord.Desired(value: value, source: source)
    }
    #expect(period([:]) == Sourced(7, .configuration))
    #expect(period(["period": set(90, .command)]) == Sourced(90, .command))
    #expect(period(["another": set(90, .command)]) == Sourced(7, .configuration))
    #expect(period(["period": set(80, .request)]) == Sourced(80, .request))
    #expect(period(["period": set(.number(90.5), .command)]) == Sourced(7, .configuration))
    #expect(period(["period": set("90", .command)]) == Sourced(7, .configuration))
  }

  /// Earlier versions allowed periods from 1 ms.
  @Test(arguments: [1, 19, 65536])
  func storedValueOutOfRangeIsIgnored(period: Int) throws {
    let record = record {
      $0.desired = ["period": DeviceRecord.Desired(value: .integer(period), source: .command)]
    }
    let device = try #require(configuration([entry()]).settings(address, name: nil, record: record, in: here))
    #expect(device.override("period", record) == nil)
    #expect(self.period(device, record) == Sourced(nil, .default))
  }

  @Test func devicesInheritTheAreaOfTheGateway() {
    let device = configuration([entry()], area: "Attic").settings(address, name: nil, record: nil, in: here)
    #expect(device?.area == Sourced("Attic", .configuration))
  }

  @Test func idOfAPrefixEntryIsShared() throws {
    let hall = try DeviceID("hall")
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"), id: hall)])
    let device = configuration.settings(address, name: "BBC x", record: nil, in: here)
    #expect(device?.id == Sourced(hall, .configuration))
    #expect(device?.hasSharedID == true)
    let renamed = record { $0.changes.id = try? DeviceID("attic") }
    #expect(
      configuration.settings(address, name: "BBC x", record: renamed, in: here)?.hasSharedID == false)
  }

  @Test func recordedNameCountsUntilOneIsReceived() {
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"))])
    let record = record { $0.name = "BBC micro:bit" }
    #expect(configuration.assignment(address, Advertisement(), record: nil, in: here) == .unmatched)
    #expect(configuration.settings(address, name: nil, record: record, in: here) != nil)
    #expect(
      configuration.assignment(address, Advertisement(name: "other"), record: record, in: here) == .unmatched)
  }

  @Test func assignmentToThisOrAnotherGateway() throws {
    let here = here
    let attic = try #require(GatewayID("attic"))
    func assignment(_ entry: Configuration.Device?, _ change: (inout DeviceRecord) -> Void = { _ in })
      -> Assignment
    {
      let configuration = configuration(entry.map { [$0] } ?? [])
      let record = record(change)
      let assignment = configuration.assignment(address, Advertisement(), record: record, in: here)
      let settings = configuration.settings(address, name: nil, record: record, in: here)
      if case .here(let device) = assignment { #expect(settings == device) } else { #expect(settings == nil) }
      return assignment
    }
    #expect(assignment(nil) == .unmatched)
    #expect(assignment(entry()) { $0.isRemoved = true } == .removed)
    #expect(
      assignment(nil) { record in
        record.isAdded = true
        record.isRemoved = true
      } == .removed)
    guard case .here = assignment(nil, { $0.isAdded = true }) else {
      return #expect(Bool(false), "not added")
    }
    let pinned = entry { $0.gateway = attic }
    guard case .elsewhere(attic, let device) = assignment(pinned) else {
      return #expect(Bool(false), "not assigned to the gateway attic")
    }
    #expect(device.gateway == Sourced(attic, .configuration))
    guard case .here = assignment(pinned, { $0.changes.gateway = here }) else {
      return #expect(Bool(false), "the request does not override the configured gateway")
    }
    let enabled = configuration([entry { $0.isEnabled = true }])
    #expect(
      enabled.settings(address, name: nil, record: nil, in: here)?.isEnabled == Sourced(true, .configuration)
    )
    guard case .here = assignment(entry { $0.isEnabled = false }) else {
      return #expect(Bool(false), "a disabled device is not assigned")
    }
  }
}

extension DeviceOptions {
  fileprivate init(id: DeviceID?, name: String?, area: String?, isEnabled: Bool?, gateway: GatewayID?) {
    self.init()
    (self.id, self.name, self.area) = (id, name, area)
    (self.isEnabled, self.gateway) = (isEnabled, gateway)
  }
}

extension Configuration {
  /// The settings of the device at `address`, if it is assigned to this gateway.
  fileprivate func settings(
    _ address: BluetoothAddress, name: String?, record: DeviceRecord?, in gateway: GatewayID
  ) -> DeviceSettings? {
    guard
      case .here(let settings) = assignment(
        address, Advertisement(name: name), record: record, in: gateway)
    else {
      return nil
    }
    return settings
  }
}
