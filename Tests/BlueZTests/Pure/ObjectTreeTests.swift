import DBus
import GATT
import Testing

@testable import BlueZ

@Suite struct ObjectTreeTests {
  private typealias Change = ObjectTree.Change
  private let device = Recorded.device
  private let adapter = Recorded.adapter

  private func tree(after events: [BlueZEvent]) -> ObjectTree {
    var tree = ObjectTree(adapter: Recorded.adapter)
    for event in events { _ = tree.apply(event) }
    return tree
  }

  /// A micro:bit that is connected and resolved.
  private var linked: ObjectTree {
    tree(
      after: [Recorded.adapterAdded(), Recorded.deviceAdded, Recorded.device(["Connected": .boolean(true)])]
        + Recorded.servicesAdded + [Recorded.device(["ServicesResolved": .boolean(true)])])
  }

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
      ])
    _ = tree.apply(
      Recorded.device([
        "ManufacturerData": data,
        "ServiceData": .dictionary(
          key: "s", value: "v",
          [DBusValue.Entry(.string("0000fe95-0000-1000-8000-00805f9b34fb"), .variant(.bytes([3])))]),
        "AdvertisingFlags": .bytes([6]),
        "AdvertisingData": .dictionary(
          key: "y", value: "v", [DBusValue.Entry(.byte(0x19), .variant(.bytes([4, 5])))]),
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

  @Test func descriptorsBelongToTheirCharacteristic() throws {
    var tree = linked
    let temperature = try #require(tree.characteristics(of: Recorded.id).temperature)
    let period = try #require(tree.characteristics(of: Recorded.id).period)
    #expect(tree.descriptors(of: temperature).map(\.uuid) == [BluetoothUUID(short: 0x2902)])
    #expect(tree.descriptors(of: temperature).map(\.path) == [Recorded.temperature + "/desc0018"])
    #expect(tree.descriptors(of: period).isEmpty)
    for event in Recorded.deviceRemoved.prefix(2) { _ = tree.apply(event) }
    #expect(tree.descriptors(of: temperature).isEmpty)
  }

  /// A hostile peripheral may have as many characteristics as there are handles.
  @Test func tableThatIsTooLargeIsNotKept() throws {
    var tree = tree(
      after: [Recorded.adapterAdded(), Recorded.deviceAdded, Recorded.device(["Connected": .boolean(true)])])
    _ = tree.apply(Recorded.servicesAdded[0])
    let added = (0..<20_000).map { number in
      BlueZEvent.added(
        path: Recorded.service + "/char\(number)",
        interfaces: [
          "org.bluez.GattCharacteristic1": [
            "UUID": .string("e95d9250-251d-470a-a062-fa1922dfa9a8"), "Flags": .strings(["read"]),
          ]
        ])
    }
    let start = ContinuousClock.now
    for event in added { _ = tree.apply(event) }
    // Without a limit the time grows with the square of the number: minutes.
    #expect(start.duration(to: .now) < .seconds(60))
    #expect(tree.devices[Recorded.device]?.services.isTooLarge == true)
    #expect(tree.characteristics(of: Recorded.id).count < 1000)
    // It has another table now.
    _ = tree.apply(Recorded.removed(Recorded.service, "org.bluez.GattService1"))
    for event in Recorded.servicesAdded { _ = tree.apply(event) }
    #expect(tree.devices[Recorded.device]?.services.isTooLarge == false)
    #expect(tree.characteristics(of: Recorded.id).count == 2)
  }

  @Test func aBondAndHIDTogetherMakeAnInputDevice() {
    let input = Recorded.device(["UUIDs": .strings(["00001812-0000-1000-8000-00805f9b34fb"])])
    let other = Recorded.device(["UUIDs": .strings(["e95d6100-251d-470a-a062-fa1922dfa9a8"])])
    let paired = Recorded.device(["Paired": .boolean(true)])
    for (first, second) in [(input, paired), (paired, input)] {
      var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded, other])
      #expect(tree.apply(first) == [.device(device)])
      #expect(tree.apply(second) == [.inputDevice(device), .device(device)])
      // Once, until it is no longer one.
      #expect(tree.apply(second) == [.device(device)])
      #expect(tree.apply(other) == [.device(device)])
      #expect(tree.apply(input) == [.inputDevice(device), .device(device)])
    }
  }

  @Test func connectResolveDisconnect() {
    var tree = tree(after: [Recorded.adapterAdded(), Recorded.deviceAdded])
    #expect(tree.apply(Recorded.device(["Connected": .boolean(true)])) == [.device(device)])
    #expect(tree.devices[device]?.isConnected == true)
    #expect(tree.characteristics(of: Recorded.id).isEmpty)
    for event in Recorded.servicesAdded { _ = tree.apply(event) }
    #expect(tree.devices[device]?.servicesResolved == false)
    _ = tree.apply(
      Recorded.device([
        "UUIDs": .strings(["e95d6100-251d-470a-a062-fa1922dfa9a8"]), "ServicesResolved": .boolean(true),
      ]))
    #expect(tree.devices[device]?.servicesResolved == true)
    // The micro:bit hangs up: both in one signal.
    let ended = tree.apply(
      Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
    #expect(ended == [.disconnected(device, reason: nil), .device(device)])
    #expect(tree.devices[device]?.servicesResolved == false)
    // The objects stay, for the next link.
    #expect(tree.characteristics(of: Recorded.id).count == 2)
  }

  @Test func aDisconnectFromThisSideComesInTwoSignals() {
    var tree = linked
    #expect(tree.apply(Recorded.device(["ServicesResolved": .boolean(false)])) == [.device(device)])
    #expect(
      tree.apply(Recorded.device(["Connected": .boolean(false)])) == [
        .disconnected(device, reason: nil), .device(device),
      ])
    // Reported again: not another disconnect.
    #expect(tree.apply(Recorded.device(["Connected": .boolean(false)])) == [.device(device)])
  }

  /// bluetoothd 5.83 and newer send the reason at once, and `Connected` when they are idle.
  @Test func theReasonOfAnEndIsPartOfIt() {
    let reason = BlueZEvent.linkEnded(path: device, reason: "x")
    let isDown = Recorded.device(["Connected": .boolean(false)])
    for end in [isDown, Recorded.deviceRemoved.last!] {
      var tree = linked
      #expect(tree.apply(reason) == [])
      #expect(tree.apply(end).first == .disconnected(device, reason: "x"))
      // Of a link that is known to have ended, or was never known.
      #expect(tree.apply(reason) == [])
    }
    // It is that of one link: the next one may be up before bluetoothd is idle.
    for isSeen in [false, true] {
      var tree = linked
      for event in [reason] + (isSeen ? [isDown] : []) { _ = tree.apply(event) }
      _ = tree.apply(Recorded.device(["Connected": .boolean(true)]))
      #expect(tree.apply(isDown) == [.disconnected(device, reason: nil), .device(device)])
    }
  }

  @Test func everyWordAboutTheLinkIsCounted() {
    var tree = linked
    let before = tree.devices[device]!.linkChanges
    _ = tree.apply(Recorded.device(["RSSI": .int16(-1)]))
    #expect(tree.devices[device]!.linkChanges == before)
    _ = tree.apply(Recorded.device(["Connected": .boolean(false)]))
    _ = tree.apply(Recorded.device(["Connected": .boolean(false)]))
    #expect(tree.devices[device]!.linkChanges == before + 2)
  }

  @Test func characteristicsKnowTheirServiceFlagsAndOrder() {
    let characteristics = linked.characteristics(of: Recorded.id)
    #expect(
      characteristics.map(\.uuid) == [Property.microbitTemperature, .microbitPeriod].map(\.characteristic))
    #expect(characteristics.allSatisfy { $0.service == .microbitTemperatureService })
    #expect(characteristics.map(\.flags) == [[.read, .notify], [.read, .write]])
    #expect(characteristics.map(\.peripheral) == [Recorded.id, Recorded.id])
    #expect(linked.characteristics(of: PeripheralID(path: device + "0")).isEmpty)
  }

  @Test func flagsWithoutMeaningForACentralAreIgnored() {
    let names = [
      "broadcast", "read", "write-without-response", "write", "notify", "indicate",
      "authenticated-signed-writes", "encrypt-read", "", "READ",
    ]
    #expect(
      Characteristic.Flags(names: names) == [.read, .write, .writeWithoutResponse, .notify, .indicate])
    #expect(Characteristic.Flags(names: ["encrypt-read"]) == [])
  }

  @Test func removalWhileConnectedIsADisconnectionToo() {
    var tree = linked
    var changes: [Change] = []
    for event in Recorded.deviceRemoved { changes += tree.apply(event) }
    let characteristics = Array(repeating: Change.characteristics(device), count: 3)
    #expect(changes == characteristics + [.disconnected(device, reason: nil), .deviceRemoved(device)])
    #expect(tree.devices.isEmpty)
    #expect(tree.characteristics(of: Recorded.id).isEmpty)
    // Reported twice, but removed once.
    #expect(tree.apply(Recorded.deviceRemoved.last!) == [])
  }

  @Test func removalOfAnUnusedInterfaceChangesNothing() {
    var tree = linked
    #expect(tree.apply(.removed(path: adapter, interfaces: ["org.bluez.Media1"])) == [])
    #expect(tree.adapter != nil)
    #expect(tree.apply(.removed(path: "/org/bluez", interfaces: ["org.bluez.AgentManager1"])) == [])
  }

  @Test func theAdapterIsPulledAndPluggedIn() {
    var tree = linked
    var changes = tree.apply(
      Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
    for event in Recorded.deviceRemoved { changes += tree.apply(event) }
    changes += tree.apply(Recorded.adapter(["Powered": .boolean(false), "Discovering": .boolean(false)]))
    changes += tree.apply(Recorded.removed(adapter, "org.bluez.Adapter1"))
    #expect(
      changes == [
        .disconnected(device, reason: nil), .device(device), .deviceRemoved(device), .adapter, .adapter,
        .addresses,
      ])
    #expect(tree.addresses == [:])
    #expect(tree.adapter == nil)
    // A change of an unknown adapter is ignored.
    #expect(tree.apply(Recorded.adapter(["Powered": .boolean(true)])) == [])
    #expect(tree.apply(Recorded.adapterAdded(powered: false)) == [.adapter, .addresses])
    #expect(tree.addresses == ["hci0": "02:00:5E:00:53:01"])
    #expect(tree.adapter?.isPowered == false)
    #expect(tree.apply(Recorded.adapter(["Powered": .boolean(true)])) == [.adapter])
    #expect(
      tree.adapter
        == .init(address: "02:00:5E:00:53:01", isPowered: true, isDiscovering: false, powerState: nil))
  }

  @Test(arguments: ["/org/bluez/hci1", "/org/bluez/hci01", "/org/bluez/hci"])
  func ofOtherAdaptersOnlyTheAddressesAreKept(other: String) {
    var tree = linked
    let own = tree.addresses
    let device = other + "/dev_D0_5A_00_00_C0_DE"
    let properties: BlueZEvent.Properties = [
      "Address": .string("D0:5A:00:00:C0:DE"), "Powered": .boolean(false),
    ]
    let objects: [(String, String, [ObjectTree.Change])] = [
      (other, "org.bluez.Adapter1", [.addresses]), (device, "org.bluez.Device1", []),
    ]
    for (path, interface, changes) in objects {
      #expect(tree.apply(.added(path: path, interfaces: [interface: properties])) == changes)
      #expect(tree.addresses.count == own.count + changes.count)
      let changed = BlueZEvent.changed(
        path: path, interface: interface, properties: properties, invalidated: [])
      #expect(tree.apply(changed) == [])
      #expect(tree.apply(.removed(path: path, interfaces: [interface])) == changes)
      #expect(tree.addresses == own)
    }
    #expect(tree.adapter?.isPowered == true && tree.devices.count == 1)
  }

  @Test func bluetoothdsEndIsTheEndOfEverything() {
    var tree = linked
    #expect(
      tree.apply(.owner(nil)) == [.disconnected(device, reason: nil), .deviceRemoved(device), .adapter])
    #expect(tree.devices.isEmpty && tree.adapter == nil)
    #expect(tree.characteristics(of: Recorded.id).isEmpty)
    #expect(tree.apply(.owner(":1.8")) == [.adapter])
  }

  @Test func repeatedObjectCausesNoDisconnection() {
    var tree = linked
    // In GetManagedObjects after a signal: first the old state, then the new one.
    #expect(tree.apply(Recorded.adapterAdded()) == [.adapter])
    let again = BlueZEvent.added(
      path: device, interfaces: ["org.bluez.Device1": ["Connected": .boolean(true)]])
    #expect(tree.apply(again) == [.device(device)])
    #expect(tree.devices[device]?.isConnected == true)
    #expect(tree.peripheral(at: device)?.name == "BBC micro:bit [zugev]")
    for event in Recorded.servicesAdded { _ = tree.apply(event) }
    #expect(tree.characteristics(of: Recorded.id).count == 2)
  }

  @Test func nonsenseIsPassedOver() {
    var tree = ObjectTree(adapter: Recorded.adapter)
    func device(_ properties: BlueZEvent.Properties) -> BlueZEvent {
      .added(path: "/org/bluez/hci0/d", interfaces: ["org.bluez.Device1": properties])
    }
    _ = tree.apply(device([:]))
    #expect(tree.peripheral(at: "/org/bluez/hci0/d") == nil)
    var properties: BlueZEvent.Properties = [
      "Address": .string("nowhere"), "Name": .byte(7), "RSSI": .string("loud"), "Connected": .string("yes"),
      "ServicesResolved": .int32(1),
    ]
    _ = tree.apply(device(properties))
    #expect(tree.devices.isEmpty)
    properties["Address"] = .string("D0:5A:00:00:C0:DE")
    _ = tree.apply(device(properties))
    #expect(tree.devices["/org/bluez/hci0/d"]?.isConnected == false)
    for properties: BlueZEvent.Properties in [
      [:],
      [
        "UUID": .string("x"), "Device": .objectPath("/org/bluez/hci0/d"),
        "Service": .objectPath("/org/bluez/hci0/s"),
      ],
      ["UUID": .string("180a")],
      ["Device": .objectPath("/org/bluez/hci0/d"), "Service": .objectPath("/org/bluez/hci0/s")],
    ] {
      #expect(
        tree.apply(.added(path: "/org/bluez/hci0/s", interfaces: ["org.bluez.GattService1": properties]))
          == [])
      #expect(
        tree.apply(
          .added(path: "/org/bluez/hci0/c", interfaces: ["org.bluez.GattCharacteristic1": properties])) == [])
    }
    // A characteristic of an unknown service.
    _ = tree.apply(
      .added(
        path: "/org/bluez/hci0/c",
        interfaces: [
          "org.bluez.GattCharacteristic1": [
            "UUID": .string("2a6e"), "Service": .objectPath("/org/bluez/hci0/s"),
          ]
        ]))
    #expect(tree.characteristics(of: PeripheralID(path: "/org/bluez/hci0/d")).isEmpty)
    #expect(
      tree.apply(
        .changed(path: "/org/bluez/hci0/x", interface: "org.bluez.Device1", properties: [:], invalidated: []))
        == []
    )
  }
}
