import Configuration
import GATT
import JSON
import Testing

@testable import BlueZ
@testable import Devices
@testable import Gateway

@Suite struct ScanTableTests {
  private static let address = BluetoothAddress(truncating: 0xE67A_0000_0001)
  private static let gateway = GatewayID(hostName: "here")

  private static func row(
    _ entries: String, devices: [BluetoothAddress: JSONValue] = [:], records: [DeviceRecord] = [],
    isConnected: Bool = false,
    _ change: (inout Peripheral) -> Void = { _ in }
  ) throws -> ScanTable.Row {
    let configuration = try Configuration.parse(Array(#"{"devices":[\#(entries)]}"#.utf8)).get()
    var peripheral = Peripheral(
      id: PeripheralID(path: "/1"), address: address, name: nil, rssi: -60, isConnected: isConnected,
      isPaired: false)
    change(&peripheral)
    return try #require(
      ScanTable([peripheral], configuration, gateway: gateway, records: records, devices: devices).rows.first)
  }

  @Test func senderOfServiceDataIsMatchedByIt() throws {
    let entry = #"{"match":{"service":"fcd2"},"profile":"bthome"}"#
    let row = try Self.row(entry) { $0.advertised.serviceData = [BTHome.service: [0x40, 0x01, 0x61]] }
    #expect(row.profile == "bthome")
    #expect(row.use == "hear")
    #expect(row.entry == nil)
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
    record.isRemoved = true
    let entry = #"{"match":{"identifier":"E6:7A:00:00:00:01"},"id":"attic"}"#
    let removed = try Self.row(entry, records: [record])
    #expect(removed.use == "removed by a request" && removed.entry == nil)
    (record.isRemoved, record.isAdded) = (false, true)
    #expect(try Self.row("", records: [record]).use == "connect")
    // The gateway knows it better.
    let device: JSONValue = ["id": "attic", "profile": "microbit", "session": "live"]
    record.isRemoved = true
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
}
