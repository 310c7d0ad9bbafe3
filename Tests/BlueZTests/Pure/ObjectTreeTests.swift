import DBus
import GATT
import Testing

@testable import BlueZ

@Suite struct ObjectTreeTests {
  private typealias Change = ObjectTree.Change
  let device = Recorded.device
  private let adapter = Recorded.adapter

  func tree(after events: [BlueZEvent]) -> ObjectTree {
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
