import Testing

@testable import BlueZSimulator

/// bluetoothd with two adapters, as tried with 5.66: each has objects, discovery and links of its own.
@Suite struct AdapterTests {
  private static let device = "dev_D0_5A_00_00_C0_DE"

  private static func fixture(_ strengths: [Int?] = [-50, -70]) -> Fixture {
    Fixture { options in
      options.devices = 1
      options.adapters = 2
      options.strengths = [0: strengths]
    }
  }

  private func added(_ fixture: Fixture) -> [String] {
    fixture.takeLines().compactMap { line in
      let fields = line.split(separator: "\t")
      return fields.count > 2 && fields[2] == "InterfacesAdded" ? String(fields[1]) : nil
    }
  }

  @Test func eachAdapterFindsThePeripheralByItself() {
    let fixture = Self.fixture()
    fixture.call("A", "/org/bluez/hci1", .startDiscovery)
    fixture.advance(by: .seconds(1))
    #expect(added(fixture) == ["/org/bluez/hci1/\(Self.device)"])
    fixture.call("A", "/org/bluez/hci0", .startDiscovery)
    fixture.advance(by: .seconds(1))
    #expect(added(fixture) == ["/org/bluez/hci0/\(Self.device)"])
  }

  @Test func aPeripheralMayBeInRangeOfOneOnly() {
    let fixture = Self.fixture([nil, -70])
    for adapter in ["/org/bluez/hci0", "/org/bluez/hci1"] { fixture.call("A", adapter, .startDiscovery) }
    fixture.advance(by: .seconds(1))
    #expect(added(fixture) == ["/org/bluez/hci1/\(Self.device)"])
  }

  @Test func aLinkOfOneAdapterEndsWithThatAdapter() {
    let fixture = Self.fixture()
    for adapter in ["/org/bluez/hci0", "/org/bluez/hci1"] {
      fixture.call("A", adapter, .startDiscovery)
      fixture.advance(by: .seconds(1))
      fixture.call("A", adapter, .stopDiscovery)
    }
    fixture.call("A", "/org/bluez/hci1/\(Self.device)", .connect)
    fixture.advance(by: .seconds(1))
    #expect(fixture.model.peripherals[0].radio.linked == 1)
    // While it is connected, it does not advertise.
    fixture.call("A", "/org/bluez/hci0/\(Self.device)", .connect)
    fixture.advance(by: .seconds(1))
    #expect(fixture.unanswered == 1)
    fixture.give { $0.unplug(1) }
    fixture.advance(by: .seconds(1))
    #expect(fixture.model.peripherals[0].radio.linked == 0)
    #expect(fixture.unanswered == 0)
    #expect(fixture.model.tree.role(of: "/org/bluez/hci1") == nil)
    #expect(fixture.model.tree.role(of: "/org/bluez/hci0") == .adapter(0))
  }
}
