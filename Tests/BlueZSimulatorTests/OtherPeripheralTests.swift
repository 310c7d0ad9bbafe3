import Configuration
import DBus
import GATT
import Glibc
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator

/// Peripherals that are no micro:bits, made from a description or a profile.
@Suite struct OtherPeripheralTests {
  private static let device = Fixture.described

  private static func uuid(_ short: UInt32) -> BluetoothUUID { BluetoothUUID(short: short) }

  /// A heart-rate monitor and a counter, in one.
  private static func profile() throws -> Profile {
    try Profile(
      name: "both", requires: [uuid(0x180D)],
      properties: [
        Property(
          name: "heart_rate", service: uuid(0x180D), characteristic: uuid(0x2A37), access: .notify,
          codec: .uint8),
        Property(
          name: "battery", service: uuid(0x180F), characteristic: uuid(0x2A19), access: [.read, .notify],
          codec: .uint8),
        Property(
          name: "add", service: uuid(0x1111), characteristic: uuid(0x2222), kind: .event, access: .write,
          writeMode: .request, codec: .uint8),
        Property(
          name: "send", service: uuid(0x1111), characteristic: uuid(0x2223), instance: 1, kind: .event,
          access: .write, writeMode: .command, codec: .uint8),
      ])
  }

  private static let described = PeripheralDescription(
    name: "Both", advertises: [uuid(0x180D), uuid(0x180F)],
    services: [
      PeripheralDescription.Service(
        uuid(0x180D), [PeripheralDescription.Characteristic(uuid(0x2A37), [.notify])]),
      PeripheralDescription.Service(
        uuid(0x180F), [PeripheralDescription.Characteristic(uuid(0x2A19), [.read, .notify])]),
      PeripheralDescription.Service(
        uuid(0x1111),
        [
          PeripheralDescription.Characteristic(uuid(0x2222), [.write]),
          PeripheralDescription.Characteristic(uuid(0x2223), []),
          PeripheralDescription.Characteristic(uuid(0x2223), [.command]),
        ]),
    ])

  private static let heart = device + "/service000e/char000f"
  private static let add = device + "/service0016/char0017"
  private static let send = device + "/service0016/char001b"

  @Test func aProfileSaysWhatIsServed() throws {
    let profile = try Self.profile()
    let made = PeripheralDescription(
      name: "Both", profile: profile, advertises: [Self.uuid(0x180D), Self.uuid(0x180F)])
    // The same, and each characteristic of a property has the property's codec.
    var described = Self.described
    for property in profile.properties {
      let service = try #require(described.services.firstIndex { $0.uuid == property.service })
      let same = described.services[service].characteristics.indices.filter {
        described.services[service].characteristics[$0].uuid == property.characteristic
      }
      described.services[service].characteristics[same[property.instance]].content = .coded(property.codec)
    }
    #expect(made == described)
  }

  /// What a real bluetoothd 5.66 showed of such a peripheral: the UUIDs advertised, then those of the services; flags
  /// in their order, and WriteAcquired before NotifyAcquired.
  @Test func itLooksAsARealOneDoes() {
    let all = PeripheralDescription(
      name: "Beacon", advertises: [Self.uuid(0x180D), Self.uuid(0x180F)],
      services: [
        PeripheralDescription.Service(
          Self.uuid(0x180D),
          [
            PeripheralDescription.Characteristic(
              Self.uuid(0x2223), Set(GATTDatabase.Flag.allCases), value: [7])
          ])
      ])
    let fixture = Fixture { $0.describe(all) }
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .milliseconds(300))
    fixture.call("A", LinkTests.adapter, .stopDiscovery)
    let base = "-0000-1000-8000-00805f9b34fb"
    #expect(fixture.takeLines().contains { $0.contains("UUIDs=as:0000180d\(base),0000180f\(base);") })
    fixture.call("A", Self.device, .connect)
    fixture.advance(by: .seconds(1))
    let lines = fixture.takeLines()
    #expect(
      lines.contains {
        $0.hasPrefix("!\t\(Self.heart)\tInterfacesAdded\t")
          && $0.contains(
            "Value=ay:;Notifying=b:false;Flags=as:read,write-without-response,write,notify,indicate;"
              + "WriteAcquired=b:false;NotifyAcquired=b:false;MTU=q:23")
      })
    #expect(lines.contains { $0.hasPrefix("!\t\(Self.heart)/desc0011\t") })
    #expect(
      lines.last?.contains(
        "UUIDs=as:00001800\(base),00001801\(base),0000180d\(base);ServicesResolved=b:true") == true)
    fixture.call("A", Self.heart, .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:07")
  }

  // MARK: Values

  @Test func valueThatWasSetIsNotifiedAndRead() throws {
    let fixture = Fixture.linked(to: Self.described)
    let database = fixture.model.peripherals[0].database
    let battery = try #require(database.characteristic(Self.uuid(0x2A19)))
    let heart = try #require(database.characteristic(Self.uuid(0x2A37)))
    fixture.call("A", Self.heart, .startNotify)
    _ = fixture.takeLines()
    for bytes in [[0, 72], [0, 73], [0, 73]] as [[UInt8]] {
      #expect(fixture.set(heart, to: bytes))
    }
    #expect(fixture.set(battery, to: [99]))
    let change = "!\t\(Self.heart)\tPropertiesChanged\torg.bluez.GattCharacteristic1"
    #expect(fixture.takeLines() == ["0048", "0049", "0049"].map { "\(change)\t{Value=ay:\($0)}\t" })
    fixture.call("A", Self.device + "/service0012/char0013", .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:63")
    fixture.call("A", Self.heart, .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\torg.bluez.Error.NotPermitted\tRead not permitted")
  }

  @Test func writtenValueIsReadBack() {
    let store = PeripheralDescription(
      name: "Store",
      services: [
        PeripheralDescription.Service(
          Self.uuid(0x1111), [PeripheralDescription.Characteristic(Self.uuid(0x2222), [.read, .write])])
      ])
    let fixture = Fixture.linked(to: store)
    let path = Self.device + "/service000e/char000f"
    for bytes in [[1], [], Array(repeating: 2, count: 512)] as [[UInt8]] {
      fixture.call("A", path, .writeValue, [.bytes(bytes), .noOptions])
      #expect(fixture.takeLines() == ["<\tA\tWriteValue\tok"])
      #expect(fixture.model.peripherals[0].values.stored[0x0F] == bytes)
    }
    fixture.call("A", path, .writeValue, [.bytes(Array(repeating: 2, count: 513)), .noOptions])
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\torg.bluez.Error.InvalidArguments\tInvalid Length"])
    #expect(fixture.model.peripherals[0].writes[0x0F]?.count == 3)
  }

  /// As measured on a real bluetoothd 5.66: without a type the flags decide.
  @Test func theFlagsDecideHowIsWritten() {
    let fixture = Fixture.linked(to: Self.described)
    func outcome(_ path: String, _ count: Int, _ type: String?) -> String? {
      let options: DBusValue = type.map { .properties(["type": .string($0)]) } ?? .noOptions
      fixture.call("A", path, .writeValue, [.bytes(Array(repeating: 1, count: count)), options])
      return fixture.takeLines().first.map { $0.split(separator: "\t").dropFirst(3).joined(separator: " ") }
    }
    let failed = "org.bluez.Error.Failed Failed to initiate write"
    #expect(outcome(Self.send, 1, nil) == "ok")
    #expect(outcome(Self.send, 20, "command") == "ok")
    #expect(outcome(Self.send, 21, "command") == failed)
    #expect(outcome(Self.send, 21, nil) == failed)
    #expect(fixture.model.peripherals[0].writes[0x1B]?.last.map(\.count) == [1, 20])
    #expect(outcome(Self.send, 1, "request") == "org.bluez.Error.NotPermitted Write not permitted")
    #expect(outcome(Self.add, 1, nil) == "ok")
    #expect(outcome(Self.add, 1, "request") == "ok")
    // Sent, and dropped by the peripheral.
    #expect(outcome(Self.add, 1, "command") == "ok")
    #expect(fixture.model.peripherals[0].writes[0x17]?.count == 2)
    #expect(outcome(Self.heart, 1, nil) == "org.bluez.Error.NotSupported Operation is not supported")
  }

  @Test func commandThePeripheralMissesOrRejectsIsLost() {
    let fixture = Fixture.linked(to: Self.described)
    func command() {
      fixture.call("A", Self.send, .writeValue, [.bytes([1]), .noOptions])
      #expect(fixture.takeLines() == ["<\tA\tWriteValue\tok"])
    }
    fixture.model.peripherals[0].security.isRequired = true
    command()
    fixture.model.peripherals[0].security.isRequired = false
    fixture.give { $0.vanish(0) }
    command()
    #expect(fixture.model.peripherals[0].writes.isEmpty)
    fixture.give { $0.comeBack(0) }
    command()
    #expect(fixture.model.peripherals[0].writes[0x1B]?.count == 1)
  }

  // MARK: JSON

  private func parse(_ json: String) throws -> PeripheralDescription {
    let folder = try TemporaryFolder()
    let path = folder.path + "/peripheral.json"
    let file = try #require(fopen(path, "w"))
    fputs(json, file)
    fclose(file)
    return try PeripheralDescription.parse(file: path)
  }

  @Test func aFileDescribesOne() throws {
    let made = try parse(
      #"""
      {"name": "Polar", "address": "e6:7a:00:00:00:01", "advertises": ["180d"], "services": [
        {"uuid": "180D", "characteristics": [
          {"uuid": "00002a37-0000-1000-8000-00805f9b34fb", "flags": ["notify"], "value": "00fF"},
          {"uuid": "2a39", "flags": ["write", "write-without-response"]}]}]}
      """#)
    #expect(
      made
        == PeripheralDescription(
          name: "Polar", address: BluetoothAddress("E6:7A:00:00:00:01"), advertises: [Self.uuid(0x180D)],
          services: [
            PeripheralDescription.Service(
              Self.uuid(0x180D),
              [
                PeripheralDescription.Characteristic(Self.uuid(0x2A37), [.notify], value: [0x00, 0xFF]),
                PeripheralDescription.Characteristic(Self.uuid(0x2A39), [.write, .command]),
              ])
          ]))
  }

  @Test func aFileMayHoldAProfileOfTheConfiguration() throws {
    let made = try parse(
      #"""
      {"name": "Both", "advertises": ["180d", "180f"], "profile": {"requires": ["180d"], "properties": {
        "heart_rate": {"service": "180d", "characteristic": "2a37", "access": ["notify"], "type": "uint8"},
        "battery": {"service": "180f", "characteristic": "2a19", "access": ["read", "notify"], "type": "uint8"},
        "add": {"service": "1111", "characteristic": "2222", "access": ["write"], "write": "request",
          "kind": "event", "type": "uint8"},
        "send": {"service": "1111", "characteristic": "2223", "instance": 1, "access": ["write"],
          "write": "command", "kind": "event", "type": "uint8"}}}}
      """#)
    let profile = try Self.profile()
    #expect(
      made == PeripheralDescription(name: "Both", profile: profile, advertises: Self.described.advertises))
  }

  @Test(arguments: [
    "", "[]", #"{"names":"x"}"#, #"{"name":"x","services":[{"uuid":"18","characteristics":[]}]}"#,
    #"{"services":[{"characteristics":[]}]}"#,
    #"{"name":"x","services":[],"address":"1:2"}"#, #"{"name":"x","services":[],"advertises":["x"]}"#,
    #"{"name":"x","services":[{"uuid":"180d","characteristics":[{"uuid":"2a37","flags":["fly"]}]}]}"#,
    #"{"name":"x","services":[{"uuid":"180d","characteristics":[{"uuid":"2a37","flags":[],"value":"0"}]}]}"#,
    #"{"name":"x","profile":{"properties":{"a":{"service":"1111","characteristic":"1","access":[]}}}}"#,
    #"{"name":"x","profile":{"properties":{"a":{"service":"1111","characteristic":"2222","instance":-1,"access":[]}}}}"#,
  ])
  func invalidDescriptionIsRefused(_ json: String) {
    #expect(throws: ConfigurationErrors.self) { try parse(json) }
  }

  @Test func aFileThatIsNotThereIsNamed() {
    #expect { try PeripheralDescription.parse(file: "/nonexistent/file") } throws: { error in
      "\(error)" == "/nonexistent/file: No such file or directory"
    }
  }
}
