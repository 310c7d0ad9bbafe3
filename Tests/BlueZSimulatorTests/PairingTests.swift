import DBus
import Testing

@testable import BlueZSimulator

/// Pairing, as recorded with bluetoothd 5.66 (Tests/RealBlueZ/recordings/pairing-debian12.tsv).
@Suite struct PairingTests {
  private static let device = "/org/bluez/hci0/dev_D0_5A_00_00_C0_DE"

  /// The micro:bit has been found, and requires pairing.
  private func fixture(_ method: PairingMethod, hasAgent: Bool = true) -> Fixture {
    let fixture = Fixture { options in
      options.devices = 1
      options.pairing = method
    }
    fixture.call("A", "/org/bluez/hci0", .startDiscovery)
    fixture.advance(by: .seconds(1))
    fixture.call("A", "/org/bluez/hci0", .stopDiscovery)
    if hasAgent { register(fixture) }
    _ = fixture.takeLines()
    return fixture
  }

  private func register(_ fixture: Fixture) {
    fixture.call(
      "A", "/org/bluez", "org.bluez.AgentManager1.RegisterAgent",
      [.objectPath("/agent"), .string("KeyboardOnly")])
  }

  private func call(_ fixture: Fixture, _ member: String, wait: Duration = .seconds(3)) -> [String] {
    fixture.call("A", Self.device, "org.bluez.Device1." + member)
    fixture.advance(by: wait)
    return lines(fixture)
  }

  /// What happened, without services.
  private func lines(_ fixture: Fixture) -> [String] {
    fixture.takeLines().filter { !$0.contains("/service") }.map { line in
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
      switch fields[0] {
      case "<": return fields.dropFirst(2).joined(separator: " ")
      case "!":
        return fields[2] == "PropertiesChanged"
          ? String(fields[4]).replacing(/UUIDs=[^;]*;/, with: "") : String(fields[2])
      default: return line
      }
    }
  }

  private static let up = "{Connected=b:true}"
  private static let down = "{Connected=b:false}"
  private static let allDown = "{ServicesResolved=b:false;Connected=b:false}"
  private static let resolved = "{ServicesResolved=b:true}"
  private static let bonded = "{Bonded=b:true;Paired=b:true}"
  private static let failed = "Pair org.bluez.Error.AuthenticationFailed Authentication Failed"
  private static let canceled = "Pair org.bluez.Error.AuthenticationCanceled Authentication Canceled"

  @Test func withoutAnAgent() {
    let fixture = fixture(.justWorks, hasAgent: false)
    #expect(call(fixture, "Pair") == [Self.up, Self.failed, Self.resolved])
  }

  @Test func agentsOfAClient() {
    let fixture = fixture(.justWorks)
    register(fixture)
    #expect(lines(fixture) == ["RegisterAgent org.bluez.Error.AlreadyExists Already Exists"])
    fixture.call("A", "/org/bluez", "org.bluez.AgentManager1.UnregisterAgent", [.objectPath("/agent")])
    fixture.call("A", "/org/bluez", "org.bluez.AgentManager1.UnregisterAgent", [.objectPath("/agent")])
    #expect(
      lines(fixture) == ["UnregisterAgent ok", "UnregisterAgent org.bluez.Error.DoesNotExist Does Not Exist"])
  }

  @Test func justWorks() {
    let fixture = fixture(.justWorks)
    #expect(call(fixture, "Pair") == [Self.up, Self.bonded, Self.resolved, "Pair ok"])
    // Not answered until the link ends.
    #expect(call(fixture, "Pair", wait: .seconds(60)) == [])
    #expect(call(fixture, "Disconnect").contains(Self.canceled))
    #expect(call(fixture, "Connect") == [Self.up, "Connect ok", Self.resolved])
  }

  @Test func refused() {
    let fixture = fixture(.justWorks)
    fixture.model.peripherals[0].security.pairs = false
    #expect(call(fixture, "Pair") == [Self.up, Self.failed, Self.down])
  }

  @Test func theLinkDrops() {
    let fixture = fixture(.justWorks)
    fixture.model.peripherals[0].security.fault = .drop
    #expect(call(fixture, "Pair") == [Self.up, Self.down, Self.canceled])
  }

  @Test func noResponse() {
    let fixture = fixture(.justWorks)
    fixture.model.peripherals[0].security.fault = .silence(.seconds(30))
    #expect(call(fixture, "Pair") == [Self.up, Self.resolved])
    fixture.advance(by: .seconds(30))
    #expect(lines(fixture) == [Self.allDown, Self.canceled])
    fixture.model.peripherals[0].security.fault = .silence(.seconds(30))
    #expect(call(fixture, "Pair") == [Self.up, Self.resolved])
    #expect(call(fixture, "CancelPairing") == [Self.allDown, Self.canceled, "CancelPairing ok"])
  }

  @Test func outOfRange() {
    let fixture = fixture(.justWorks)
    fixture.give { $0.vanish(0) }
    #expect(call(fixture, "Pair", wait: .seconds(20)) == [])
    #expect(call(fixture, "CancelPairing") == [Self.canceled, "CancelPairing ok"])
    #expect(call(fixture, "CancelPairing") == ["CancelPairing org.bluez.Error.DoesNotExist Does Not Exist"])
  }

  @Test func aLostBond() {
    let fixture = fixture(.justWorks)
    _ = call(fixture, "Pair")
    _ = call(fixture, "Disconnect")
    fixture.model.peripherals[0].security.hasBond = false
    #expect(call(fixture, "Connect") == [Self.up, Self.down, "Connect ok"])
    fixture.call("A", "/org/bluez/hci0", "org.bluez.Adapter1.RemoveDevice", [.objectPath(Self.device)])
    #expect(lines(fixture).last == "RemoveDevice ok")
    #expect(fixture.model.bonds.isEmpty)
  }

  @Test func passkeys() throws {
    let fixture = fixture(.passkey)
    for answer in [nil, 100_001, 100_000] {
      let asked = call(fixture, "Pair")
      #expect(asked.first == Self.up)
      #expect(asked.contains { $0.hasPrefix("?\tRequestPasskey") })
      let question = try #require(fixture.questions.last)
      fixture.give { $0.passkeyEntered(answer, for: question) }
      switch answer {
      case nil: #expect(lines(fixture) == [Self.failed])
      case 100_000: #expect(lines(fixture) == [Self.bonded, "Pair ok"])
      default: #expect(lines(fixture) == [Self.failed, Self.allDown])
      }
      _ = call(fixture, "Disconnect")
    }
    // Too late.
    let first = try #require(fixture.questions.first)
    fixture.model.take(at: fixture.now) { $0.passkeyEntered(1, for: first) }
  }
}
