import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import BlueZ
@testable import Devices
@testable import Gateway

@Suite struct ScanTableTests {
  private static let address = BluetoothAddress(truncating: 0xE67A_0000_0001)
  private static let gateway = GatewayID(hostName: "here")

  private static func row(
    _ entries: String, and keys: String = #""profiles":{}"#, devices: [BluetoothAddress: JSONValue] = [:],
    records: [DeviceRecord] = [], isConnected: Bool = false,
    _ change: (inout Peripheral) -> Void = { _ in }
  ) throws -> ScanTable.Row {
    let configuration = try ConfigurationFile.parse(
      Array(#"{"devices":[\#(entries)],\#(keys)}"#.utf8), at: "/config.json", filesMayBeAway: false
    ).configuration
    var peripheral = Peripheral(
      id: PeripheralID(path: "/1"), address: address, name: nil, rssi: -60, isConnected: isConnected,
      isPaired: false)
    change(&peripheral)
    let stored = StoredGateway(configuration: configuration, id: gateway, records: records.byAddress)
    return try #require(ScanTable([peripheral], stored, devices: devices).rows.first)
  }

  @Test func senderOfServiceDataIsMatchedByIt() throws {
    let entry = #"{"match":{"service":"fcd2"},"profile":"bthome"}"#
    let row = try Self.row(entry) { $0.advertised.serviceData = [BTHome.service: [0x40, 0x01, 0x61]] }
    #expect(row.profile == "bthome")
    #expect(row.use == "hear")
    #expect(row.entry == nil)
  }

  /// A stranger that sends nothing for the profile becomes no device, one with an entry of its own does.
  @Test func strangerThatSendsNothingForItsProfileIsIgnored() throws {
    for (match, use) in [
      (#"{"manufacturer":76}"#, "ignored: no service data fcd2; it sends manufacturer 0x004c"),
      (#"{"identifier":"E6:7A:00:00:00:01"}"#, "hear"),
    ] {
      let row = try Self.row(#"{"match":\#(match),"profile":"bthome"}"#) {
        $0.advertised.manufacturerData = [76: [1]]
      }
      #expect(row.profile == "bthome" && row.use == use && row.entry == nil)
    }
  }

  /// bluetoothd replaces the services that were advertised by those of the link.
  @Test func runningGatewaySaysWhatItUses() throws {
    let device: JSONValue = ["id": "thingy", "profile": "environment", "session": "live"]
    let row = try Self.row("", devices: [Self.address: device])
    #expect(row.profile == "environment")
    #expect(row.use == "connect as thingy")
    #expect(row.entry == nil)
    let disabled = try Self.row("", devices: [Self.address: device.setting("session", to: "disabled")])
    #expect(disabled.use == "disabled")
  }

  @Test func whatRequestsHaveChangedIsKnown() throws {
    var record = DeviceRecord(address: Self.address)
    record.requested.isRemoved = true
    let entry = #"{"match":{"identifier":"E6:7A:00:00:00:01"},"id":"attic"}"#
    let removed = try Self.row(entry, records: [record])
    #expect(removed.use == "removed by a request" && removed.entry == nil)
    (record.requested.isRemoved, record.requested.isAdded) = (false, true)
    #expect(try Self.row("", records: [record]).use == "connect")
    // The gateway knows it better.
    let device: JSONValue = ["id": "attic", "profile": "microbit", "session": "live"]
    record.requested.isRemoved = true
    let running = try Self.row(entry, devices: [Self.address: device], records: [record])
    #expect(running.use == "connect as attic")
  }

  @Test func useIsInTheJSONAsWell() throws {
    let row = try Self.row(
      #"{"match":{"identifier":"E6:7A:00:00:00:01"},"id":"attic"}"#, isConnected: true)
    #expect(row.cells.last == "connect as attic (connected)")
    #expect(row.json["use"] == "connect as attic" && row.json["connected"] == JSONValue.bool(true))
  }

  @Test func unknownPeripheralIsIgnoredWithAnEntry() throws {
    let row = try Self.row("")
    #expect(row.use == "ignored")
    #expect(row.entry == #"{"match":{"identifier":"E6:7A:00:00:00:01"},"profile":"PROFILE"}"#)
  }

  /// Many peripherals send service data of 181a, and every module with a serial port has ffe0.
  @Test(
    arguments: [
      ("pvvx_thermometer", [], "service_data", "56341238c1a4ca09bf138a0b4e2a05"),
      ("atc_thermometer", [], "service_data", "a4c138abcdef00dd2f5c0b8e4a"),
      ("ruuvitag", [], "manufacturer_data", "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f"),
      ("-", [], "service_data", "bd9d47ec49ff2f56ac6a8c"),
      ("pvvx_thermometer", [0x181A], "service_data", "56341238c1a4ca09bf138a0b4e2a05"),
      ("environmental_sensing", [0x181A], "", ""), ("-", [0xFFE0], "", ""),
      ("heart_rate", [0x180D, 0x180F], "", ""),
    ] as [(String, [UInt32], String, String)])
  func readyProfileIsProposedOnlyWhereItFits(
    profile: String, services: [UInt32], data: String, hex: String
  ) throws {
    let folder = #""profiles_directory":"\#(repositoryPath("deploy/profiles"))""#
    let row = try Self.row("", and: folder) {
      $0.services = services.map { BluetoothUUID(short: $0) }
      let bytes = Hexadecimal.bytes(hex) ?? []
      if data == "service_data" { $0.advertised.serviceData = [BluetoothUUID(short: 0x181A): bytes] }
      if data == "manufacturer_data" { $0.advertised.manufacturerData = [0x0499: bytes] }
    }
    #expect(row.profile == profile)
  }

  @Test func profileThatAsksMostOfTheDataIsProposed() throws {
    func profile(_ name: String, _ source: String) -> String {
      #""\#(name)":{"properties":{"p":{"source":{"manufacturer_data":76\#(source)},"type":"bytes"}}}"#
    }
    let profiles = profile("any", "") + "," + profile("beacon", #","prefix":"0215""#)
    for (bytes, name): ([UInt8], String) in [([2, 0x15, 1], "beacon"), ([0x10, 5], "any")] {
      let row = try Self.row("", and: #""profiles":{\#(profiles)}"#) {
        $0.advertised.manufacturerData = [76: bytes]
      }
      #expect(row.profile == name)
    }
  }
}
