import DBus
import Testing

@testable import BlueZ

@Suite struct BlueZEventTests {
  private func signal(
    _ member: String, on interface: String, of path: String = "/", _ arguments: [DBusValue],
    from sender: String? = Recorded.owner
  ) -> DBusSignal {
    DBusSignal(member, on: interface, of: path, arguments, sender: sender)
  }

  private func event(_ signal: DBusSignal, owner: String? = Recorded.owner) -> BlueZEvent? {
    BlueZEvent(signal, owner: owner)
  }

  private let interfaces = DBusValue.dictionary(
    key: "s", value: "a{sv}",
    [
      .init(.string("org.freedesktop.DBus.Properties"), .properties([:])),
      .init(
        .string("org.bluez.Device1"), .properties(["Connected": .boolean(true), "RSSI": .int16(-50)])),
    ])

  @Test func interfacesAdded() {
    let added = signal(
      "InterfacesAdded", on: DBusName.objectManager, [.objectPath(Recorded.device), interfaces])
    #expect(
      event(added)
        == .added(
          path: Recorded.device,
          interfaces: [
            "org.freedesktop.DBus.Properties": [:],
            "org.bluez.Device1": ["Connected": .boolean(true), "RSSI": .int16(-50)],
          ]))
  }

  @Test func interfacesRemoved() {
    let removed = signal(
      "InterfacesRemoved", on: DBusName.objectManager,
      [.objectPath(Recorded.device), .strings(["org.bluez.Device1"])])
    #expect(event(removed) == .removed(path: Recorded.device, interfaces: ["org.bluez.Device1"]))
  }

  @Test(arguments: [("Timed out", "Timed out"), ("", "Timeout")])
  func endOfALink(text: String, reason: String) {
    let ended = signal(
      "Disconnected", on: "org.bluez.Device1", of: Recorded.device,
      [.string("org.bluez.Reason.Timeout"), .string(text)])
    #expect(event(ended) == .linkEnded(path: Recorded.device, reason: reason))
  }

  @Test func propertiesChanged() {
    let changed = signal(
      "PropertiesChanged", on: DBusName.properties, of: Recorded.device,
      [.string("org.bluez.Device1"), .properties(["Connected": .boolean(false)]), .strings(["RSSI"])])
    #expect(
      event(changed)
        == .changed(
          path: Recorded.device, interface: "org.bluez.Device1", properties: ["Connected": .boolean(false)],
          invalidated: ["RSSI"]))
  }

  @Test func theOwnerComesAndGoes() {
    func changed(
      _ old: String, _ new: String, of name: String = "org.bluez", from sender: String = DBusName.bus
    )
      -> DBusSignal
    {
      signal(
        "NameOwnerChanged", on: DBusName.bus, of: DBusName.busPath,
        [.string(name), .string(old), .string(new)], from: sender)
    }
    #expect(event(changed("", ":1.7"), owner: nil) == .owner(":1.7"))
    #expect(event(changed(":1.7", "")) == .owner(nil))
    #expect(event(changed(":1.7", ":1.8")) == .owner(":1.8"))
    // Names of others, and others who say so.
    #expect(event(changed("", ":1.7", of: "org.example")) == nil)
    #expect(event(changed("", ":1.66", from: ":1.66")) == nil)
  }

  @Test func othersSayNothingAboutItsObjects() {
    let arguments: [DBusValue] = [.objectPath(Recorded.device), .strings(["org.bluez.Device1"])]
    let fromAnother = signal("InterfacesRemoved", on: DBusName.objectManager, arguments, from: ":1.66")
    #expect(event(fromAnother) == nil)
    #expect(event(signal("InterfacesRemoved", on: DBusName.objectManager, arguments, from: nil)) == nil)
    // Nor does bluetoothd before it is known who that is.
    #expect(event(signal("InterfacesRemoved", on: DBusName.objectManager, arguments), owner: nil) == nil)
  }

  @Test(arguments: [
    ("InterfacesAdded", DBusName.objectManager), ("InterfacesRemoved", DBusName.objectManager),
    ("PropertiesChanged", DBusName.properties), ("NameOwnerChanged", DBusName.bus),
  ])
  func argumentsOfAnotherShapeAreNoEvent(member: String, interface: String) {
    let shapes: [[DBusValue]] = [
      [], [.string("x")], [.byte(1), .byte(2)], [.byte(1), .byte(2), .byte(3)],
      [.objectPath("/x"), .string("y")], [.objectPath("/x"), .properties([:]), .byte(0)],
      [.string("org.bluez"), .byte(0), .byte(0)], [.string("x"), .strings([]), .strings([])],
      [.string("x"), .properties([:]), .string("RSSI")],
    ]
    for arguments in shapes {
      let sender = member == "NameOwnerChanged" ? DBusName.bus : Recorded.owner
      #expect(event(signal(member, on: interface, arguments, from: sender)) == nil)
    }
  }

  @Test func otherSignalsAreNoEvents() {
    let path = DBusValue.objectPath(Recorded.device)
    #expect(event(signal("Disconnected", on: "org.bluez.Adapter1", [.string("x"), .string("y")])) == nil)
    #expect(event(signal("InterfacesAdded", on: "org.example", [path, interfaces])) == nil)
    #expect(event(signal("PropertiesChanged", on: DBusName.objectManager, [path, interfaces])) == nil)
  }

  @Test func managedObjectsComeParentsFirst() {
    func object(_ path: String) -> DBusValue.Entry {
      .init(.objectPath(path), .dictionary(key: "s", value: "a{sv}", []))
    }
    let paths = [Recorded.temperature, Recorded.adapter, Recorded.service, "/org/bluez", Recorded.device]
    let reply = DBusValue.dictionary(key: "o", value: "a{sa{sv}}", paths.map(object))
    #expect(
      BlueZEvent.objects([reply])
        == ["/org/bluez", Recorded.adapter, Recorded.device, Recorded.service, Recorded.temperature].map {
          .added(path: $0, interfaces: [:])
        })
    #expect(BlueZEvent.objects([]) == nil)
    #expect(BlueZEvent.objects([.string("x")]) == nil)
  }
}
