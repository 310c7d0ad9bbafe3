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

  /// A world in which everybody has been discovered.
  static func discovered(_ change: (inout SimulatorOptions) -> Void = { $0.devices = 1 }) -> World {
    let world = World(change)
    world.call("A", adapter, "org.bluez.Adapter1.StartDiscovery")
    world.advance(by: .milliseconds(300))
    world.call("A", adapter, "org.bluez.Adapter1.StopDiscovery")
    _ = world.takeLines()
    return world
  }

  /// A world in which the first micro:bit has a link.
  static func linked(_ change: (inout SimulatorOptions) -> Void = { $0.devices = 1 }) -> World {
    let world = discovered(change)
    world.call("A", device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(1))
    _ = world.takeLines()
    return world
  }

  // MARK: Connect

  @Test func aCallerThatLooksAtOnceFindsNoServicesYet() {
    let world = Self.discovered()
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    while !world.lines.contains("<\tA\tConnect\tok"), world.advanceToNextEvent(within: .seconds(1)) {}
    #expect(world.takeLines() == [Self.connected, "<\tA\tConnect\tok"])
    world.call("A", Self.temperature, "org.bluez.GattCharacteristic1.StartNotify")
    #expect(world.takeLines().first?.contains("UnknownObject") == true)
    world.advance(by: .milliseconds(100))
    #expect(world.takeLines().last?.contains("ServicesResolved=b:true") == true)
  }

  @Test func connectsAreServedOneAfterTheOther() {
    let world = Self.discovered { $0.devices = 3 }
    let paths = (0..<3).map { BlueZName.devicePath(Identity.address(ofMicroBit: $0)) }
    for path in paths { world.call("A", path, "org.bluez.Device1.Connect") }
    var order: [String] = []
    var connects: [ContinuousClock.Instant] = []
    while connects.count < 3, world.advanceToNextEvent(within: .seconds(2)) {
      for line in world.takeLines() where line.contains("{Connected=b:true}") {
        order.append(String(line.split(separator: "\t")[1]))
        connects.append(world.now)
      }
    }
    #expect(order == paths)
    #expect(zip(connects, connects.dropFirst()).allSatisfy { $0 + .milliseconds(400) <= $1 })
  }

  @Test func anAbsentDeviceDoesNotHoldUpTheOthers() {
    let world = Self.discovered { $0.devices = 2 }
    world.take(world.model.vanish(0, at: world.now))
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    world.call("A", Self.second, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(1))
    #expect(world.takeLines().contains("<\tA\tConnect\tok"))
    world.advance(by: .seconds(40))
    #expect(
      world.takeLines() == ["<\tA\tConnect\torg.bluez.Error.Failed\tle-connection-abort-by-local"])
  }

  @Test func aDeviceFoundAgainIsNotMetByTheTimeOutOfItsForerunner() {
    let world = Self.linked()
    world.call("A", Self.device, "org.bluez.Device1.Disconnect")
    world.advance(by: .seconds(5))
    world.call("A", Self.adapter, "org.bluez.Adapter1.RemoveDevice", [.objectPath(Self.device)])
    world.call("A", Self.adapter, "org.bluez.Adapter1.StartDiscovery")
    world.advance(by: .seconds(20))
    world.call("A", Self.adapter, "org.bluez.Adapter1.StopDiscovery")
    world.take(world.model.vanish(0, at: world.now))
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    _ = world.takeLines()
    world.advance(by: .seconds(40))
    #expect(world.takeLines() == [])
    world.advance(by: .seconds(1))
    #expect(world.takeLines() == ["<\tA\tConnect\torg.bluez.Error.Failed\tle-connection-abort-by-local"])
  }

  @Test func duringDiscoveryAConnectWaitsForTheEndOfTheScan() {
    let world = World()
    world.call("A", Self.adapter, "org.bluez.Adapter1.StartDiscovery")
    world.advance(by: .milliseconds(300))
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(10))
    #expect(!world.takeLines().contains(Self.connected))
    world.advance(by: .seconds(1))
    #expect(world.takeLines().contains("<\tA\tConnect\tok"))
  }

  @Test func stoppingTheDiscoveryFreesTheRadioForAConnect() {
    let world = World()
    world.call("A", Self.adapter, "org.bluez.Adapter1.StartDiscovery")
    world.advance(by: .milliseconds(300))
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(1))
    world.call("A", Self.adapter, "org.bluez.Adapter1.StopDiscovery")
    world.advance(by: .seconds(1))
    #expect(world.takeLines().contains("<\tA\tConnect\tok"))
  }

  @Test func aMicroBitThatHangsUpWhileItIsResolvedIsNeverResolved() {
    let world = Self.discovered()
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    while !world.lines.contains("<\tA\tConnect\tok"), world.advanceToNextEvent(within: .seconds(1)) {}
    _ = world.takeLines()
    world.take(world.model.hangUp(0, at: world.now))
    world.advance(by: .seconds(5))
    #expect(
      world.takeLines() == ["!\t\(Self.device)\tPropertiesChanged\torg.bluez.Device1\t{Connected=b:false}\t"])
  }

  // MARK: Loss

  @Test func aMicroBitThatIsBackInTimeKeepsItsLink() {
    let world = Self.linked()
    world.take(world.model.vanish(0, at: world.now))
    world.advance(by: .milliseconds(300))
    world.take(world.model.comeBack(0, at: world.now))
    world.advance(by: .seconds(5))
    #expect(world.takeLines() == [])
    world.take(world.model.vanish(0, at: world.now))
    world.advance(by: .milliseconds(300))
    world.take(world.model.comeBack(0, at: world.now))
    world.take(world.model.vanish(0, at: world.now))
    world.advance(by: .milliseconds(419))
    #expect(world.takeLines() == [])
    world.advance(by: .milliseconds(1))
    #expect(world.takeLines() == [Self.lost])
  }

  @Test func aResetEndsTheLinkAndThePeriod() {
    let world = Self.linked { options in
      options.devices = 1
      options.period = 50
    }
    world.take(world.model.reset(0, at: world.now))
    #expect(world.takeLines() == [Self.lost])
    #expect(world.model.peripherals[0].microBit?.period == 1000)
    world.call("A", Self.device, "org.bluez.Device1.Connect")
    world.advance(by: .milliseconds(299))
    #expect(world.model.linking == nil)
    world.advance(by: .milliseconds(600))
    #expect(world.takeLines().contains(Self.connected))
  }

  @Test func aRequestUnderWayFailsWithTheLink() {
    let world = Self.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    world.call("A", Self.period, "org.bluez.GattCharacteristic1.ReadValue", [.properties([:])])
    world.call("A", Self.temperature, "org.bluez.GattCharacteristic1.ReadValue", [.properties([:])])
    world.take(world.model.hangUp(0, at: world.now))
    let failure = "<\tA\tReadValue\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(world.takeLines() == [Self.lost, failure, failure])
  }

  @Test func aRequestUnderWayNeverEndsWhenTheAdapterIsPulled() {
    let world = Self.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    world.call("A", Self.period, "org.bluez.GattCharacteristic1.ReadValue", [.properties([:])])
    world.take(world.model.plug(false, at: world.now))
    world.advance(by: .seconds(5))
    #expect(!world.takeLines().contains { $0.hasPrefix("<") })
  }

  // MARK: bluetoothd itself

  @Test func theLinkOutlivesAKilledBluetoothdUntilTheNextOneIsUp() {
    let world = Self.linked()
    world.take(world.model.vanish())
    #expect(world.takeLines() == [])
    #expect(world.model.peripherals[0].linked)
    world.advance(by: .seconds(1))
    world.take(world.model.restart(at: world.now))
    let lines = world.takeLines()
    #expect(lines.count == 3)
    #expect(lines.last?.hasPrefix("!\t\(Self.device)\tInterfacesAdded\t") == true)
    #expect(lines.last?.contains("Connected=b:true") == true)
    world.advance(by: .milliseconds(100))
    #expect(
      world.takeLines() == ["!\t\(Self.device)\tPropertiesChanged\torg.bluez.Device1\t{Connected=b:false}\t"])
    #expect(!world.model.peripherals[0].linked)
    world.call("A", Self.temperature, "org.bluez.GattCharacteristic1.ReadValue", [.properties([:])])
    #expect(world.takeLines().first?.contains("UnknownObject") == true)
  }
}
