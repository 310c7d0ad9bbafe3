import DBus
import Testing

@testable import BlueZSimulator

/// Discovery: repeating advertisements, filters, temporary devices.
@Suite struct DiscoveryTests {
  private static let setFilter = "org.bluez.Adapter1.SetDiscoveryFilter"

  private func added(_ lines: [String]) -> [Substring] {
    lines.filter { $0.contains("InterfacesAdded") }.map { $0.split(separator: "\t")[1] }
  }

  @Test func advertiserIsReportedOncePerScan() {
    let fixture = Fixture { options in
      options.devices = 2
      options.decoys = 1
    }
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(10))
    #expect(Set(added(fixture.takeLines())).count == 3)
    // The signal strength is signalled when it has changed in a scan: at most three times in three scans.
    fixture.advance(by: .seconds(32))
    let strengths = fixture.takeLines()
    #expect(strengths.allSatisfy { $0.hasSuffix("org.bluez.Device1\t{RSSI=n}\t") })
    #expect((3...9).contains(strengths.count))
  }

  @Test func aFilterForStrengthsIsChecked() {
    let fixture = Fixture()
    for filter: KeyValuePairs<String, DBusValue> in [
      ["RSSI": .int16(-128)], ["RSSI": .int16(21)], ["Pathloss": .uint16(138)],
      ["RSSI": .int16(-127), "Pathloss": .uint16(10)],
    ] {
      fixture.call("A", LinkTests.adapter, Self.setFilter, [.properties(filter)])
      #expect(fixture.takeLines().last?.contains("InvalidArguments") == true, "\(filter)")
    }
  }

  @Test func deviceThatKeepsAdvertisingIsNotRemoved() {
    let fixture = Fixture()
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(300))
    #expect(!fixture.takeLines().contains { $0.contains("InterfacesRemoved") })
    fixture.give { $0.vanish(0) }
    fixture.advance(by: .seconds(31))
    #expect(fixture.takeLines().filter { $0.contains("InterfacesRemoved") }.count == 1)
    // Back within a scan it is found at once.
    fixture.give { $0.comeBack(0) }
    fixture.advance(by: .seconds(11))
    #expect(added(fixture.takeLines()) == [LinkTests.device[...]])
  }

  @Test func deviceThatIsNotReceivedIsNotFound() {
    let fixture = Fixture()
    fixture.give { $0.setStrength(0, nil, of: 0) }
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(5))
    #expect(added(fixture.takeLines()) == [])
    fixture.give { $0.setStrength(0, -60, of: 0) }
    fixture.advance(by: .milliseconds(200))
    #expect(added(fixture.takeLines()) == [LinkTests.device[...]])
  }

  @Test func clientsDiscoveryEndsWithItsConnection() {
    let fixture = Fixture()
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.call("B", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(1))
    _ = fixture.takeLines()
    fixture.give { $0.clientLeft("A") }
    fixture.give { $0.clientLeft("C") }
    #expect(fixture.takeLines() == [])
    fixture.give { $0.clientLeft("B") }
    #expect(
      fixture.takeLines() == [
        "!\t\(LinkTests.device)\tPropertiesChanged\torg.bluez.Device1\t{}\tRSSI",
        "!\t/org/bluez/hci0\tPropertiesChanged\torg.bluez.Adapter1\t{Discovering=b:false}\t",
      ])
    fixture.advance(by: .seconds(20))
    #expect(fixture.takeLines() == [])
  }

  @Test func aStrangerHasNoTemperature() {
    let fixture = LinkTests.discovered { options in
      options.devices = 0
      options.decoys = 1
    }
    fixture.call("A", "/org/bluez/hci0/dev_E5_7A_00_00_00_01", .connect)
    fixture.advance(by: .seconds(1))
    let lines = fixture.takeLines()
    #expect(lines.last?.contains("ServicesResolved=b:true") == true)
    #expect(!lines.contains { $0.contains("e95d") })
    #expect(lines.contains { $0.contains("0000180a") })
  }

  @Test func aDeviceWithoutANameIsCalledByItsAddress() {
    let fixture = Fixture { options in
      options.devices = 1
      options.names = [0: ""]
    }
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(1))
    let line = fixture.takeLines().last ?? ""
    #expect(line.contains("AddressType=s:random;Alias=s:D0-5A-00-00-C0-DE;Paired"))
  }

  @Test func aDeviceThatIsRemovedIsFoundAgainWithTheNextScan() {
    let fixture = LinkTests.discovered()
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(1))
    let remove = "org.bluez.Adapter1.RemoveDevice"
    fixture.call("A", LinkTests.adapter, remove, [.objectPath(LinkTests.device)])
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(9))
    #expect(fixture.takeLines() == [])
    fixture.advance(by: .seconds(2))
    #expect(added(fixture.takeLines()) == [LinkTests.device[...]])
    // The age of the first device does not count for the second one.
    fixture.advance(by: .seconds(60))
    #expect(!fixture.takeLines().contains { $0.contains("InterfacesRemoved") })
  }
}
