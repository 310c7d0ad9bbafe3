import DBus
import Testing

@testable import BlueZSimulator

/// Discovery: repeating advertisements, filters, temporary devices.
@Suite struct DiscoveryTests {
  private static let start = "org.bluez.Adapter1.StartDiscovery"
  private static let stop = "org.bluez.Adapter1.StopDiscovery"
  private static let setFilter = "org.bluez.Adapter1.SetDiscoveryFilter"

  private func added(_ lines: [String]) -> [Substring] {
    lines.filter { $0.contains("InterfacesAdded") }.map { $0.split(separator: "\t")[1] }
  }

  @Test func advertisersAreToldOnceInAScan() {
    let world = World { options in
      options.devices = 2
      options.decoys = 1
    }
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(10))
    #expect(Set(added(world.takeLines())).count == 3)
    // The signal strength is signalled when it has changed in a scan: at most three times in three scans.
    world.advance(by: .seconds(32))
    let strengths = world.takeLines()
    #expect(strengths.allSatisfy { $0.hasSuffix("org.bluez.Device1\t{RSSI=n}\t") })
    #expect((3...9).contains(strengths.count))
  }

  @Test func aDeviceHeardAgainAndAgainIsNotForgotten() {
    let world = World()
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(300))
    #expect(!world.takeLines().contains { $0.contains("InterfacesRemoved") })
    world.take(world.model.vanish(0, at: world.now))
    world.advance(by: .seconds(31))
    #expect(world.takeLines().filter { $0.contains("InterfacesRemoved") }.count == 1)
    // Back within a scan it is found at once.
    world.take(world.model.comeBack(0, at: world.now))
    world.advance(by: .seconds(11))
    #expect(added(world.takeLines()) == [LinkTests.device[...]])
  }

  @Test func aDeviceThatAdvertisesNotIsNotFound() {
    let world = World()
    world.take(world.model.setAdvertising(0, false, at: world.now))
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(5))
    #expect(added(world.takeLines()) == [])
    world.take(world.model.setAdvertising(0, true, at: world.now))
    world.advance(by: .milliseconds(200))
    #expect(added(world.takeLines()) == [LinkTests.device[...]])
  }

  @Test(
    arguments: [
      (["Pattern": .string("BBC micro:bit")], 2), (["Pattern": .string("D1:5A")], 1),
      (["Pattern": .string("nobody")], 0), (["RSSI": .int16(0)], 0), (["RSSI": .int16(-127)], 3),
      (["UUIDs": .strings(["e95d6100-251d-470a-a062-fa1922dfa9a8"])], 0),
      (["Transport": .string("bredr")], 0), ([:], 3),
    ] as [(KeyValuePairs<String, DBusValue>, Int)])
  func filtersDecideWhoIsFound(_ filter: KeyValuePairs<String, DBusValue>, _ count: Int) {
    let world = World { options in
      options.devices = 2
      options.decoys = 1
    }
    world.call("A", LinkTests.adapter, Self.setFilter, [.properties(filter)])
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(1))
    #expect(added(world.takeLines()).count == count)
  }

  @Test func filtersOfSeveralClientsMerge() {
    let world = World { $0.devices = 2 }
    world.call("A", LinkTests.adapter, Self.setFilter, [.properties(["Pattern": .string("D0")])])
    world.call("A", LinkTests.adapter, Self.start)
    world.call("B", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(1))
    #expect(added(world.takeLines()).count == 2)
  }

  @Test func aClientThatLeavesTakesItsDiscoveryAlong() {
    let world = World()
    world.call("A", LinkTests.adapter, Self.start)
    world.call("B", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(1))
    _ = world.takeLines()
    world.take(world.model.clientLeft("A", at: world.now))
    world.take(world.model.clientLeft("C", at: world.now))
    #expect(world.takeLines() == [])
    world.take(world.model.clientLeft("B", at: world.now))
    #expect(
      world.takeLines() == [
        "!\t\(LinkTests.device)\tPropertiesChanged\torg.bluez.Device1\t{}\tRSSI",
        "!\t/org/bluez/hci0\tPropertiesChanged\torg.bluez.Adapter1\t{Discovering=b:false}\t",
      ])
    world.advance(by: .seconds(20))
    #expect(world.takeLines() == [])
  }

  @Test func aStrangerHasNoTemperature() {
    let world = LinkTests.discovered { options in
      options.devices = 0
      options.decoys = 1
    }
    world.call("A", "/org/bluez/hci0/dev_E5_7A_00_00_00_01", "org.bluez.Device1.Connect")
    world.advance(by: .seconds(1))
    let lines = world.takeLines()
    #expect(lines.last?.contains("ServicesResolved=b:true") == true)
    #expect(!lines.contains { $0.contains("e95d") })
    #expect(lines.contains { $0.contains("0000180a") })
  }

  @Test func aDeviceWithoutANameIsCalledByItsAddress() {
    let world = World { options in
      options.devices = 1
      options.names = [0: ""]
    }
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(1))
    let line = world.takeLines().last ?? ""
    #expect(line.contains("AddressType=s:random;Alias=s:D0-5A-00-00-C0-DE;Paired"))
  }

  @Test func aDeviceThatIsRemovedIsFoundAgainWithTheNextScan() {
    let world = LinkTests.discovered()
    world.call("A", LinkTests.adapter, Self.start)
    world.advance(by: .seconds(1))
    let remove = "org.bluez.Adapter1.RemoveDevice"
    world.call("A", LinkTests.adapter, remove, [.objectPath(LinkTests.device)])
    _ = world.takeLines()
    world.advance(by: .seconds(9))
    #expect(world.takeLines() == [])
    world.advance(by: .seconds(2))
    #expect(added(world.takeLines()) == [LinkTests.device[...]])
    // The age of the first device does not count for the second one.
    world.advance(by: .seconds(60))
    #expect(!world.takeLines().contains { $0.contains("InterfacesRemoved") })
  }

  @Test func everythingIsIntrospectable() throws {
    let world = LinkTests.linked()
    for path in ["/", "/org", "/org/bluez", LinkTests.adapter, LinkTests.temperature] {
      world.call("A", path, "org.freedesktop.DBus.Introspectable.Introspect")
    }
    #expect(world.takeLines() == Array(repeating: "<\tA\tIntrospect\tok", count: 5))
    world.call("A", "/net", "org.freedesktop.DBus.Introspectable.Introspect")
    #expect(world.takeLines().first?.contains("UnknownObject") == true)
  }
}
