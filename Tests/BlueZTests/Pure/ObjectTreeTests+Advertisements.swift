import DBus
import GATT
import Testing

@testable import BlueZ

/// What advertisements tell of a peripheral.
extension ObjectTreeTests {
  @Test func signalStrengthAppearsAndDisappears() {
    var tree = tree(after: [Recorded.adapterAdded()])
    #expect(tree.apply(Recorded.deviceAdded) == [.device(device)])
    var expected = Peripheral(
      id: Recorded.id, address: BluetoothAddress("D0:5A:00:00:C0:DE")!, name: "BBC micro:bit [zugev]",
      rssi: -50, isConnected: false, isPaired: false, lastAdvertisement: 1)
    #expect(tree.peripheral(at: device) == expected)
    #expect(expected.isInRange)
    // Discovery has stopped.
    #expect(tree.apply(Recorded.device([:], invalidated: ["RSSI"])) == [.device(device)])
    expected = Peripheral(
      id: expected.id, address: expected.address, name: expected.name, rssi: nil, isConnected: false,
      isPaired: false, lastAdvertisement: 1)
    #expect(tree.peripheral(at: device) == expected)
    #expect(!expected.isInRange)
    #expect(tree.apply(Recorded.device(["RSSI": .int16(-53)])) == [.device(device)])
    #expect(tree.peripheral(at: device)?.rssi == -53)
    // The same strength again is another advertisement.
    #expect(tree.apply(Recorded.device(["RSSI": .int16(-53)])) == [.device(device)])
    #expect(tree.peripheral(at: device)?.lastAdvertisement == 3)
  }

  @Test(arguments: ["public", "random"])
  func theTypeOfTheAddressIsTold(type: String) {
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    #expect(tree.peripheral(at: device)?.hasPublicAddress == false)
    _ = tree.apply(Recorded.device(["AddressType": .string(type)]))
    #expect(tree.peripheral(at: device)?.hasPublicAddress == (type == "public"))
  }

  /// A controller that cannot tell the strength gives 127 (Core Specification Vol 4, Part E, 7.7.65.2).
  @Test func anUnknownSignalStrengthIsTheWeakest() {
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    for (received, expected) in [(127, -127), (20, 20)] {
      _ = tree.apply(Recorded.device(["RSSI": .int16(Int16(received))]))
      #expect(tree.peripheral(at: device)?.rssi == expected && tree.peripheral(at: device)?.isInRange == true)
    }
  }

  /// bluetoothd reports the data of each advertisement, changed or not, if it is asked to.
  @Test func dataThatIsReceivedIsCounted() {
    let data = DBusValue.dictionary(
      key: "s", value: "v",
      [DBusValue.Entry(.string("0000feaa-0000-1000-8000-00805f9b34fb"), .variant(.bytes([0, 1])))])
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    #expect(tree.peripheral(at: device)?.lastReports.serviceData == 0)
    for count in 1...2 {
      _ = tree.apply(Recorded.device(["ServiceData": data]))
      #expect(tree.peripheral(at: device)?.lastReports.serviceData == count)
    }
    _ = tree.apply(Recorded.device(["RSSI": .int16(-60)]))
    #expect(tree.peripheral(at: device)?.lastReports.serviceData == 2)
    // Without a signal strength it is what was received earlier.
    _ = tree.apply(Recorded.device(["ServiceData": data], invalidated: ["RSSI"]))
    #expect(tree.peripheral(at: device)?.lastReports.serviceData == 2)
    // bluetoothd removes an object, and adds it when it receives it again; then it starts anew.
    for (count, isRestart) in [(3, false), (4, true)] {
      for event in Recorded.deviceRemoved { _ = tree.apply(event) }
      if isRestart {
        for owner in [nil, ":1.9"] { _ = tree.apply(.owner(owner)) }
        _ = tree.apply(Recorded.adapterAdded())
      }
      _ = tree.apply(Recorded.deviceAdded)
      _ = tree.apply(Recorded.device(["ServiceData": data]))
      #expect(tree.peripheral(at: device)?.lastReports.serviceData == count)
      #expect(tree.peripheral(at: device)?.lastAdvertisement == count)
    }
  }

  @Test func eachKindOfDataIsCountedByItself() {
    func data(_ type: String, _ key: DBusValue) -> DBusValue {
      .dictionary(key: type, value: "v", [DBusValue.Entry(key, .variant(.bytes([0, 1])))])
    }
    let service = data("s", .string("0000feaa-0000-1000-8000-00805f9b34fb"))
    let manufacturer = data("q", .uint16(0x4C))
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    var before = AdvertisedData.Reports()
    for properties in [
      ["ServiceData": service], ["ManufacturerData": manufacturer],
      ["ServiceData": service, "ManufacturerData": manufacturer], ["RSSI": .int16(-60)],
    ] {
      _ = tree.apply(Recorded.device(properties))
      let reports = tree.peripheral(at: device)?.lastReports ?? before
      #expect((reports.serviceData != before.serviceData) == (properties["ServiceData"] != nil))
      #expect(
        (reports.manufacturerData != before.manufacturerData) == (properties["ManufacturerData"] != nil))
      before = reports
    }
  }

  @Test func advertisedDataIsKept() {
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    #expect(tree.peripheral(at: device)?.services == [])
    #expect(tree.peripheral(at: device)?.advertised.manufacturerData.keys.sorted() == [])
    let data = DBusValue.dictionary(
      key: "q", value: "v",
      [
        DBusValue.Entry(.uint16(0x0106), .variant(.bytes([1, 2]))),
        DBusValue.Entry(.uint16(0x4C), .variant(.bytes([]))),
        // No company has this identifier.
        DBusValue.Entry(.uint32(0x1004C), .variant(.bytes([9]))),
      ])
    _ = tree.apply(
      Recorded.device([
        "ManufacturerData": data,
        "ServiceData": .dictionary(
          key: "s", value: "v",
          [DBusValue.Entry(.string("0000fe95-0000-1000-8000-00805f9b34fb"), .variant(.bytes([3])))]),
        "AdvertisingFlags": .bytes([6]),
        "AdvertisingData": .dictionary(
          key: "y", value: "v",
          [
            DBusValue.Entry(.byte(0x19), .variant(.bytes([4, 5]))),
            DBusValue.Entry(.uint16(0x119), .variant(.bytes([9]))),
          ]),
        "UUIDs": .strings([
          "0000180d-0000-1000-8000-00805f9b34fb", "nonsense", "e95d6100-251d-470a-a062-fa1922dfa9a8",
        ]),
      ]))
    let services = [BluetoothUUID(short: 0x180D), .microbitTemperatureService]
    #expect(tree.peripheral(at: device)?.services == services)
    #expect(tree.peripheral(at: device)?.advertised.manufacturerData.keys.sorted() == [0x4C, 0x0106])
    let advertised = tree.peripheral(at: device)?.advertised
    #expect(advertised?.manufacturerData == [0x4C: [], 0x0106: [1, 2]])
    #expect(advertised?.serviceData == [BluetoothUUID(short: 0xFE95): [3]])
    #expect(advertised?.flags == [6] && advertised?.other == [0x19: [4, 5]])
    // A signal about something else says nothing of it; what is of another type is no list.
    _ = tree.apply(
      Recorded.device(["RSSI": .int16(-53), "ManufacturerData": .boolean(true), "UUIDs": .string("x")]))
    #expect(tree.peripheral(at: device)?.services == services)
    #expect(tree.peripheral(at: device)?.advertised.manufacturerData.keys.sorted() == [0x4C, 0x0106])
    #expect(tree.peripheral(at: device)?.removed.services == services)
    _ = tree.apply(Recorded.device(["UUIDs": .strings([])]))
    #expect(tree.peripheral(at: device)?.services == [])
  }
}
