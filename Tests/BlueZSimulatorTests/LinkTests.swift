import EventLoop
import DBus
import Testing

@testable import BlueZSimulator

/// What the recordings leave out, or show only in part: several at once, races, faults.
@Suite struct LinkTests {
  static let device = "/org/bluez/hci0/dev_D0_5A_00_00_C0_DE"
  static let second = "/org/bluez/hci0/dev_D1_5A_00_01_C0_DE"
  static let temperature = device + "/service0015/char0016"
  static let period = device + "/service0015/char0019"
  static let adapter = "/org/bluez/hci0"
  static let connected = "!\t\(device)\tPropertiesChanged\torg.bluez.Device1\t{Connected=b:true}\t"
  static let lost =
    "!\t\(device)\tPropertiesChanged\torg.bluez.Device1\t{ServicesResolved=b:false;Connected=b:false}\t"

  /// A fixture in which everybody has been discovered.
  static func discovered(_ change: (inout SimulatorOptions) -> Void = { $0.devices = 1 }) -> Fixture {
    let fixture = Fixture(change)
    fixture.call("A", adapter, .startDiscovery)
    fixture.advance(by: .milliseconds(300))
    fixture.call("A", adapter, .stopDiscovery)
    _ = fixture.takeLines()
    return fixture
  }

  /// A fixture in which the first micro:bit has a link.
  static func linked(_ change: (inout SimulatorOptions) -> Void = { $0.devices = 1 }) -> Fixture {
    let fixture = discovered(change)
    fixture.call("A", device, .connect)
    fixture.advance(by: .seconds(1))
    _ = fixture.takeLines()
    return fixture
  }

  // MARK: Connect

  @Test func aCallerThatLooksAtOnceFindsNoServicesYet() {
    let fixture = Self.discovered()
    fixture.call("A", Self.device, .connect)
    while !fixture.lines.contains("<\tA\tConnect\tok"), fixture.advanceToNextEvent(within: .seconds(1)) {}
    #expect(fixture.takeLines() == [Self.connected, "<\tA\tConnect\tok"])
    fixture.call("A", Self.temperature, .startNotify)
    #expect(fixture.takeLines().first?.contains("UnknownObject") == true)
    fixture.advance(by: .milliseconds(100))
    #expect(fixture.takeLines().last?.contains("ServicesResolved=b:true") == true)
  }

  @Test func connectsAreServedOneAfterTheOther() {
    let fixture = Self.discovered { $0.devices = 3 }
    let paths = (0..<3).map { BlueZName.devicePath(Identity.address(ofMicroBit: $0), of: Self.adapter) }
    for path in paths { fixture.call("A", path, .connect) }
    var order: [String] = []
    var connects: [Moment] = []
    while connects.count < 3, fixture.advanceToNextEvent(within: .seconds(2)) {
      for line in fixture.takeLines() where line.contains("{Connected=b:true}") {
        order.append(String(line.split(separator: "\t")[1]))
        connects.append(fixture.now)
      }
    }
    #expect(order == paths)
    #expect(zip(connects, connects.dropFirst()).allSatisfy { $0 + .milliseconds(400) <= $1 })
  }

  @Test func anAbsentDeviceDoesNotHoldUpTheOthers() {
    let fixture = Self.discovered { $0.devices = 2 }
    fixture.give { $0.vanish(0) }
    fixture.call("A", Self.device, .connect)
    fixture.call("A", Self.second, .connect)
    fixture.advance(by: .seconds(1))
    #expect(fixture.takeLines().contains("<\tA\tConnect\tok"))
    fixture.advance(by: .seconds(40))
    #expect(
      fixture.takeLines() == ["<\tA\tConnect\torg.bluez.Error.Failed\tle-connection-abort-by-local"])
  }

  @Test func timeOutOfARemovedDeviceDoesNotAffectItsSuccessor() {
    let fixture = Self.linked()
    fixture.call("A", Self.device, .disconnect)
    fixture.advance(by: .seconds(5))
    fixture.call("A", Self.adapter, "org.bluez.Adapter1.RemoveDevice", [.objectPath(Self.device)])
    fixture.call("A", Self.adapter, .startDiscovery)
    fixture.advance(by: .seconds(20))
    fixture.call("A", Self.adapter, .stopDiscovery)
    fixture.give { $0.vanish(0) }
    fixture.call("A", Self.device, .connect)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(40))
    #expect(fixture.takeLines() == [])
    fixture.advance(by: .seconds(1))
    #expect(fixture.takeLines() == ["<\tA\tConnect\torg.bluez.Error.Failed\tle-connection-abort-by-local"])
  }

  @Test func eachCallThatRemovesADeviceIsAnswered() {
    let fixture = Self.linked()
    for client in ["A", "B"] {
      fixture.call(client, Self.adapter, "org.bluez.Adapter1.RemoveDevice", [.objectPath(Self.device)])
    }
    fixture.advance(by: .seconds(5))
    let answers = fixture.takeLines().filter { $0.hasPrefix("<") }
    #expect(answers == ["<\tA\tRemoveDevice\tok", "<\tB\tRemoveDevice\tok"])
  }

  @Test func duringDiscoveryAConnectWaitsForTheEndOfTheScan() {
    let fixture = Fixture()
    fixture.call("A", Self.adapter, .startDiscovery)
    fixture.advance(by: .milliseconds(300))
    fixture.call("A", Self.device, .connect)
    fixture.advance(by: .seconds(10))
    #expect(!fixture.takeLines().contains(Self.connected))
    fixture.advance(by: .seconds(1))
    #expect(fixture.takeLines().contains("<\tA\tConnect\tok"))
  }

  @Test func stoppingTheDiscoveryFreesTheRadioForAConnect() {
    let fixture = Fixture()
    fixture.call("A", Self.adapter, .startDiscovery)
    fixture.advance(by: .milliseconds(300))
    fixture.call("A", Self.device, .connect)
    fixture.advance(by: .seconds(1))
    fixture.call("A", Self.adapter, .stopDiscovery)
    fixture.advance(by: .seconds(1))
    #expect(fixture.takeLines().contains("<\tA\tConnect\tok"))
  }

  @Test func aMicroBitThatHangsUpWhileItIsResolvedIsNeverResolved() {
    let fixture = Self.discovered()
    fixture.call("A", Self.device, .connect)
    while !fixture.lines.contains("<\tA\tConnect\tok"), fixture.advanceToNextEvent(within: .seconds(1)) {}
    _ = fixture.takeLines()
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    fixture.advance(by: .seconds(5))
    #expect(
      fixture.takeLines() == [
        "!\t\(Self.device)\tPropertiesChanged\torg.bluez.Device1\t{Connected=b:false}\t"
      ])
  }

  // MARK: Loss

  @Test func aMicroBitThatIsBackInTimeKeepsItsLink() {
    let fixture = Self.linked()
    fixture.give { $0.vanish(0) }
    fixture.advance(by: .milliseconds(300))
    fixture.give { $0.comeBack(0) }
    fixture.advance(by: .seconds(5))
    #expect(fixture.takeLines() == [])
    fixture.give { $0.vanish(0) }
    fixture.advance(by: .milliseconds(300))
    fixture.give { $0.comeBack(0) }
    fixture.give { $0.vanish(0) }
    fixture.advance(by: .milliseconds(419))
    #expect(fixture.takeLines() == [])
    fixture.advance(by: .milliseconds(1))
    #expect(fixture.takeLines() == [Self.lost])
  }

  @Test func aRequestOutOfRangeIsAnsweredIfTheMicroBitIsBackInTime() {
    let fixture = Self.linked()
    fixture.give { $0.vanish(0) }
    fixture.call("A", Self.temperature, .readValue, [.properties([:])])
    fixture.advance(by: .milliseconds(300))
    #expect(fixture.takeLines() == [])
    fixture.give { $0.comeBack(0) }
    fixture.advance(by: .milliseconds(50))
    #expect(fixture.takeLines().last?.hasPrefix("<\tA\tReadValue\tok") == true)
  }

  @Test func aResetEndsTheLinkAndThePeriod() {
    let fixture = Self.linked { options in
      options.devices = 1
      options.period = 50
    }
    fixture.give { $0.reset(0) }
    #expect(fixture.takeLines() == [Self.lost])
    #expect(fixture.model.peripherals[0].values.microBit?.period == 1000)
    fixture.call("A", Self.device, .connect)
    fixture.advance(by: .milliseconds(299))
    #expect(fixture.model.adapters[0].linking == nil)
    fixture.advance(by: .milliseconds(600))
    #expect(fixture.takeLines().contains(Self.connected))
  }

  @Test func aRequestUnderWayFailsWithTheLink() {
    let fixture = Self.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    fixture.call("A", Self.period, .readValue, [.properties([:])])
    fixture.call("A", Self.temperature, .readValue, [.properties([:])])
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    let failure = "<\tA\tReadValue\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(fixture.takeLines() == [Self.lost, failure, failure])
  }

  @Test func aRequestUnderWayNeverEndsWhenTheAdapterIsPulled() {
    let fixture = Self.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    fixture.call("A", Self.period, .readValue, [.properties([:])])
    fixture.give { $0.unplug(0) }
    fixture.advance(by: .seconds(5))
    #expect(!fixture.takeLines().contains { $0.hasPrefix("<") })
  }

  // MARK: bluetoothd itself

  @Test func theLinkOutlivesAKilledBluetoothdUntilTheNextOneIsUp() {
    let fixture = Self.linked()
    fixture.give { $0.vanish() }
    #expect(fixture.takeLines() == [])
    #expect(fixture.model.peripherals[0].radio.linked == 0)
    fixture.advance(by: .seconds(1))
    fixture.give { $0.restart() }
    let lines = fixture.takeLines()
    #expect(lines.count == 3)
    #expect(lines.last?.hasPrefix("!\t\(Self.device)\tInterfacesAdded\t") == true)
    #expect(lines.last?.contains("Connected=b:true") == true)
    fixture.advance(by: .milliseconds(100))
    #expect(
      fixture.takeLines() == [
        "!\t\(Self.device)\tPropertiesChanged\torg.bluez.Device1\t{Connected=b:false}\t"
      ])
    #expect(fixture.model.peripherals[0].radio.linked == nil)
    fixture.call("A", Self.temperature, .readValue, [.properties([:])])
    #expect(fixture.takeLines().first?.contains("UnknownObject") == true)
  }
}
