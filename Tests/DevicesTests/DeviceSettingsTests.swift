import Configuration
import GATT
import JSON
import TestSupport
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

  struct SourcedValue: Equatable {
    let value: Value?
    let source: ValueSource

    init(_ value: Value?, _ source: ValueSource) { (self.value, self.source) = (value, source) }
  }

  func period(_ device: DeviceSettings, _ record: DeviceRecord? = nil) -> SourcedValue {
    let desired = device.desired(named: "period", record)
    return SourcedValue(desired.shown, device.source(of: desired))
  }

  @Test func emptyEntryHasDefaults() throws {
    let device = try #require(configuration([entry()]).settings(address, name: nil, record: nil, in: here))
    #expect(device.id == DeviceID(address) && !device.hasSharedID)
    #expect(device.name == nil && device.area == nil && device.gateway == nil && device.isEnabled)
    #expect(device.connect == nil && device.every == 600 && device.visitInterval == nil)
    #expect(device.pairing == .ask && device.passkey == nil && device.adapter == nil)
    #expect(period(device) == SourcedValue(nil, .default))
    #expect(device.desired == [:] && device.profile.name == "microbit")
    #expect(DeviceOptionTable.all.allSatisfy { device.source(of: $0) == .default })
  }

  /// An option of an entry, and the same of a record.
  private static let options: [(name: String, configured: JSONValue, requested: JSONValue)] = [
    ("id", "kitchen", "hall"), ("name", "N", "M"), ("area", "A", "B"), ("profile", "microbit", "microbit"),
    ("properties", "temperature", ["button_a", "led_text"]), ("exclude", ["period"], ["led_text"]),
    ("values", ["a": ["unit": "%"]], .bool(false)),
    ("adjust", ["temperature": ["offset": .number(1.5)]], ["temperature": ["offset": .number(-4.5)]]),
    ("enabled", .bool(false), .bool(true)),
    ("gateway", "attic", "here"), ("adapter", "hci0", "hci0"), ("pair", .bool(true), .bool(false)),
    ("passkey", 7, 8),
    ("key", "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"),
    ("key_file", "a", "b"), ("connect", "on_demand", "always"), ("every", 60, 5),
    ("offline_after", 60, .null), ("log", .bool(true), .bool(false)),
  ]

  @Test func requestsRankAboveTheConfigurationAndThatAboveTheDefaults() throws {
    #expect(
      Self.options.map(\.name) == DeviceOptionTable.all.filter { !$0.setsValues }.map(\.name), "all of them")
    for (name, configured, requested) in Self.options {
      let option = try #require(DeviceOptionTable.all.first { $0.name == name })
      let entry = entry { $0.options = DeviceOptions([name: configured]) ?? $0.options }
      let record = record { $0.requested.changes = DeviceOptions([name: requested]) ?? $0.requested.changes }
      let configuration = configuration([entry], area: "G")
      for (record, expected, source) in [
        (nil, configured, .configuration), (record, requested, .request),
      ] as [(DeviceRecord?, JSONValue, ValueSource)] {
        let device = DeviceSettings(address, entry, record, in: configuration)
        #expect(device[option] == expected, "\(name)")
        #expect(device.source(of: option) == source, "\(name)")
      }
    }
  }

  @Test func adjustmentsByRequestHoldWithTheOthersOfTheEntry() throws {
    let entry = entry {
      $0.options =
        DeviceOptions([
          "adjust": ["temperature": ["offset": 1, "unit": "K"], "bearing": ["report": ["change": 5]]]
        ]) ?? $0.options
    }
    let record = record {
      $0.requested.changes =
        DeviceOptions(["adjust": ["temperature": ["offset": .number(-4.5)]]]) ?? $0.requested.changes
    }
    let settings = DeviceSettings(address, entry, record, in: configuration([entry]))
    let temperature = try #require(settings.adjustedProfile.property(named: "temperature"))
    #expect(temperature.offset == -4.5 && temperature.unit == "K")
    #expect(settings.adjustedProfile.property(named: "bearing")?.report == Property.Report(change: 5))
    #expect(settings.profile.property(named: "temperature") == .microbitTemperature)
  }

  @Test func offsetsAreThoseOfTheEntryUnlessARequestSetsAnother() throws {
    let entry = entry {
      $0.options =
        DeviceOptions([
          "adjust": ["temperature": ["offset": 1], "bearing": ["offset": 2]],
          "values": ["soil": ["offset": 3, "unit": "%"], "light": ["offset": 4]],
        ]) ?? $0.options
    }
    let record = record {
      $0.requested.changes =
        DeviceOptions(["adjust": ["temperature": ["offset": 5]], "values": ["soil": ["offset": 6]]])
        ?? $0.requested.changes
    }
    let settings = DeviceSettings(address, entry, record, in: configuration([entry]))
    #expect(settings.offset("temperature") == Offset(value: 5, isConfigured: false))
    #expect(settings.offset("bearing") == Offset(value: 2, isConfigured: true))
    #expect(settings.offset("values/soil") == Offset(value: 6, isConfigured: false))
    #expect(settings.offset("values/light") == Offset(value: 4, isConfigured: true))
    #expect(settings.offset("period") == nil && settings.offset("values/rain") == nil)
    #expect(settings.values.on?["soil"]?.adjustment.unit == "%")
  }

  @Test func excludeOfAnEntryIsAboutItsOwnProperties() {
    func used(_ record: DeviceRecord?) -> [String] {
      let entry = entry { ($0.properties, $0.exclude) = (["temperature", "period"], ["temperature"]) }
      return DeviceSettings(address, entry, record, in: configuration([entry])).profile.properties.map(\.name)
    }
    #expect(used(nil) == ["period"])
    #expect(used(record { $0.requested.changes.properties = ["temperature"] }) == ["temperature"])
    #expect(used(record { $0.requested.changes.exclude = ["period"] }) == ["temperature"])
    #expect(used(record { $0.requested.changes.properties = ["auto"] }).first == "period")
  }

  @Test func settingsHaveTheTypesOfTheirOptions() throws {
    let entry = entry {
      $0.id = try? DeviceID("kitchen")
      $0.isEnabled = false
      $0.gateway = GatewayID("attic")
      $0.connect = .onDemand
      $0.every = 60
      $0.pairing = .always
    }
    let record = record { $0.requested.changes.gateway = here }
    let device = try #require(configuration([entry]).settings(address, name: nil, record: record, in: here))
    #expect(device.id.description == "kitchen" && !device.hasSharedID)
    #expect(!device.isEnabled && device.gateway == here && device.pairing == .always)
    #expect(device.visitInterval == .seconds(60))
  }

  @Test func commandsAndRequestsOverrideTheConfiguration() {
    func period(_ desired: [String: DeviceRecord.Desired]) -> SourcedValue? {
      let record = record { $0.requested.desired = desired }
      let device = configuration([entry { $0.period = 70 }])
        .settings(address, name: nil, record: record, in: here)
      return device.map { self.period($0, record) }
    }
    func set(_ value: JSONValue, _ source: ValueSource) -> DeviceRecord.Desired {
      DeviceRecord.Desired(value: value, source: source)
    }
    #expect(period([:]) == SourcedValue(70, .configuration))
    #expect(period(["period": set(90, .command)]) == SourcedValue(90, .command))
    #expect(period(["another": set(90, .command)]) == SourcedValue(70, .configuration))
    #expect(period(["period": set(80, .request)]) == SourcedValue(80, .request))
    #expect(period(["period": set(.number(90.5), .command)]) == SourcedValue(70, .configuration))
    #expect(period(["period": set("90", .command)]) == SourcedValue(70, .configuration))
  }

  /// A profile may have changed.
  @Test(arguments: [1, 19, 65536])
  func storedValueOutOfRangeIsIgnored(period: Int) throws {
    let record = record {
      $0.requested.desired = ["period": DeviceRecord.Desired(value: .integer(period), source: .command)]
    }
    let device = try #require(configuration([entry()]).settings(address, name: nil, record: record, in: here))
    #expect(device.desired(named: "period", record).override == nil)
    #expect(self.period(device, record) == SourcedValue(nil, .default))
  }

  @Test func devicesInheritTheAreaOfTheGateway() {
    let device = configuration([entry()], area: "Attic").settings(address, name: nil, record: nil, in: here)
    #expect(device?.area == "Attic" && device?.source(of: \.area) == .configuration)
  }

  @Test func idOfAPrefixEntryIsShared() throws {
    let hall = try DeviceID("hall")
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"), id: hall)])
    let device = configuration.settings(address, name: "BBC x", record: nil, in: here)
    #expect(device?.id == hall)
    #expect(device?.hasSharedID == true)
    let renamed = record { $0.requested.changes.id = try? DeviceID("attic") }
    #expect(
      configuration.settings(address, name: "BBC x", record: renamed, in: here)?.hasSharedID == false)
  }

  /// What an entry has matched stays with it.
  @Test func recordedNameCountsAlsoWhenAnotherOneIsReceived() {
    let configuration = configuration([Configuration.Device(match: .namePrefix("BBC"))])
    let record = record { $0.name = "BBC micro:bit" }
    #expect(configuration.assignment(address, Advertisement(), record: nil, in: here) == .unmatched)
    #expect(configuration.settings(address, name: nil, record: record, in: here) != nil)
    #expect(configuration.settings(address, name: "other", record: record, in: here) != nil)
    #expect(
      configuration.assignment(address, Advertisement(name: "other"), record: nil, in: here) == .unmatched)
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
    #expect(assignment(entry()) { $0.requested.isRemoved = true } == .removed)
    #expect(
      assignment(nil) { record in
        record.requested.isAdded = true
        record.requested.isRemoved = true
      } == .removed)
    guard case .here = assignment(nil, { $0.requested.isAdded = true }) else {
      return #expect(Bool(false), "not added")
    }
    let pinned = entry { $0.gateway = attic }
    guard case .elsewhere(attic, let device) = assignment(pinned) else {
      return #expect(Bool(false), "not assigned to the gateway attic")
    }
    #expect(device.gateway == attic)
    guard case .here = assignment(pinned, { $0.requested.changes.gateway = here }) else {
      return #expect(Bool(false), "the request does not override the configured gateway")
    }
    guard case .here = assignment(entry { $0.isEnabled = false }) else {
      return #expect(Bool(false), "a disabled device is not assigned")
    }
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
