import Configuration
import GATT
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// Profiles whose sources are not what the device advertises.
@Suite struct HeardInVainTests {
  private typealias Engine = EngineUnderTest

  private static let address = BluetoothAddress(truncating: 0xA4C1_3812_3456)

  private static func configuration(
    _ source: Property.Source, _ match: Configuration.Match
  ) throws -> Configuration {
    let temperature = Property(
      name: "temperature", source: source, codec: try Codec(.scalar(.init(.uint8))))
    var configuration = Configuration()
    configuration.profiles.append(try Profile(name: "govee", properties: [temperature]))
    var entry = Configuration.Device(match: match)
    entry.options.profile = "govee"
    configuration.devices = [entry]
    return configuration
  }

  /// A Govee H5074.
  private static let beacon: PeripheralDescription = {
    var beacon = PeripheralDescription(name: "Govee_H5074", address: address, services: [])
    beacon.manufacturerData = [0xEC88: [0, 0xF6, 0xFE, 0x24, 0x13, 0x64, 2]]
    return beacon
  }()

  private static let mistakes: [(source: Property.Source, lack: String)] = [
    (.init(.manufacturer(0xEC88), length: 6), "manufacturer 0xec88 has 7 bytes, temperature wants 6"),
    (.init(.manufacturer(0x88EC)), "no manufacturer 0x88ec; it sends manufacturer 0xec88"),
    (
      .init(.manufacturer(0xEC88), prefix: [0, 1]),
      "manufacturer 0xec88 begins with 00f6, temperature wants 0001"
    ),
  ]

  @Test(arguments: mistakes)
  func configuredDeviceIsFound(source: Property.Source, lack: String) async throws {
    let tested = try await Engine(
      try Self.configuration(source, .identifier(Self.address)), isInRange: false
    ) { $0.described = [Self.beacon] }
    try await eventually("a finding") {
      await tested.engine.findings.first { $0.code == "heard_in_vain" }?.text
        == "\(DeviceID(Self.address)): advertises nothing that the profile govee takes: \(lack)"
    }
    await tested.end()
  }

  /// It is no device, so nothing else would tell.
  @Test func strangerIsFoundWhereNoDeviceHasTheProfile() async throws {
    let (source, lack) = Self.mistakes[0]
    var match = Configuration.Match()
    match.manufacturer = 0xEC88
    let configuration = try Self.configuration(source, match)
    let tested = try await Engine(configuration, isInRange: false) { $0.described = [Self.beacon] }
    try await eventually("a finding") {
      await tested.engine.findings.first { $0.code == "heard_in_vain" }?.text
        == "\(Self.address): advertises nothing that the profile govee takes: \(lack)"
    }
    #expect(await tested.engine.deviceCount == 0)
    await tested.end()
  }

  @Test func deviceThatIsOutOfRangeIsNotHeard() async throws {
    var configuration = try Self.configuration(Self.mistakes[0].source, .identifier(Self.address))
    configuration.devices[0].options.id = try DeviceID("h5074")
    let tested = try await Engine(configuration, isInRange: false)
    try await tested.frontEnd.adapterIsOn()
    #expect(await tested.engine.findings.map(\.code) == ["not_heard"])
    await tested.end()
  }

  // MARK: Inspection

  private static func inspect(
    _ beacon: PeripheralDescription, _ configuration: Configuration
  ) async throws -> Inspection {
    let tested = try await Engine(configuration, isInRange: false) { $0.described = [beacon] }
    try await tested.frontEnd.adapterIsOn()
    let address = try #require(beacon.address)
    let inspection = try await tested.engine.inspect(.address(address))
    #expect(inspection.items.isEmpty, "it was not connected")
    await tested.end()
    return inspection
  }

  private static func heard(_ inspection: Inspection) -> [String] {
    (inspection.heard ?? []).map { heard in
      "\(heard.property.name) \(heard.value.map { heard.property.codec.json($0).text() } ?? heard.reason ?? "-")"
    }
  }

  @Test(arguments: mistakes)
  func inspectionOfOneThatIsOnlyHeardSaysWhyThereIsNoValue(source: Property.Source, lack: String) async throws
  {
    let configuration = try Self.configuration(source, .identifier(Self.address))
    let inspection = try await Self.inspect(Self.beacon, configuration)
    #expect(inspection.profile?.name == "govee" && !inspection.fits)
    #expect(Self.heard(inspection) == ["temperature \(lack)"])
  }

  /// No entry matches it.
  @Test(
    arguments: [
      (0x0499, "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f", "ruuvitag", "temperature 24.3"),
      (nil, "56341238c1a4ca09bf138a0b4e2a05", "pvvx_thermometer", "temperature 25.06"),
    ] as [(UInt16?, String, String, String)])
  func readyProfileIsProposed(company: UInt16?, hex: String, profile: String, value: String) async throws {
    var beacon = PeripheralDescription(name: "", address: Self.address, services: [])
    let bytes = try #require(Hexadecimal.bytes(hex))
    if let company {
      beacon.manufacturerData = [company: bytes]
    } else {
      beacon.serviceData = [BluetoothUUID(short: 0x181A): bytes]
    }
    var configuration = Configuration()
    configuration.devices = []
    configuration.profiles = try ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles"))
    let inspection = try await Self.inspect(beacon, configuration)
    #expect(inspection.profile?.name == profile && inspection.fits)
    #expect(Self.heard(inspection).first == value)
  }

  @Test(
    arguments: [
      ("400001" + "02ca09" + "0161", ["temperature 25.06", "battery 97"], nil),
      ("41a47266c95f730011223378237214", [], "it is encrypted, and there is no key"),
    ] as [(String, [String], String?)])
  func inspectionReadsBTHome(hex: String, values: [String], unread: String?) async throws {
    var beacon = PeripheralDescription(name: "", address: Self.address, services: [])
    beacon.serviceData = [BTHome.service: try #require(Hexadecimal.bytes(hex))]
    var configuration = Configuration()
    configuration.devices = []
    let inspection = try await Self.inspect(beacon, configuration)
    #expect(inspection.profile?.name == "bthome" && inspection.unread == unread)
    #expect(Self.heard(inspection) == values)
  }
}
