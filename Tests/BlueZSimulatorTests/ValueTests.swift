import DBus
import Testing

@testable import BlueZSimulator

/// Values: reads that share, writes that collide, notifications and their cadence.
@Suite struct ValueTests {
  private static let read = "org.bluez.GattCharacteristic1.ReadValue"
  private static let write = "org.bluez.GattCharacteristic1.WriteValue"
  private static let none: DBusValue = .properties([:])

  @Test func readsAtTheSameTimeShareOneRequestAndWritesCollide() {
    let world = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    world.call("A", LinkTests.period, Self.read, [Self.none])
    world.call("B", LinkTests.period, Self.read, [Self.none])
    world.call("A", LinkTests.period, Self.write, [.bytes([0xF4, 1]), Self.none])
    world.call("B", LinkTests.period, Self.write, [.bytes([1, 0]), Self.none])
    #expect(world.takeLines() == ["<\tB\tWriteValue\torg.bluez.Error.InProgress\tIn Progress"])
    world.advance(by: .milliseconds(100))
    #expect(
      world.takeLines() == [
        "!\t\(LinkTests.period)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{Value=ay:e803}\t",
        "<\tA\tReadValue\tok\tay:e803", "<\tB\tReadValue\tok\tay:e803",
      ])
    world.advance(by: .milliseconds(100))
    #expect(world.takeLines() == ["<\tA\tWriteValue\tok"])
    #expect(world.model.peripherals[0].microBit?.period == 500)
  }

  @Test func aCommandToThePeriodIsAcceptedAndWithoutEffect() {
    let world = LinkTests.linked()
    world.call(
      "A", LinkTests.period, Self.write, [.bytes([1, 0]), .properties(["type": .string("command")])])
    #expect(world.takeLines() == ["<\tA\tWriteValue\tok"])
    #expect(world.model.peripherals[0].microBit?.period == 1000)
    let long = [UInt8](repeating: 1, count: 21)
    world.call("A", LinkTests.period, Self.write, [.bytes(long), .properties(["type": .string("command")])])
    #expect(world.takeLines() == ["<\tA\tWriteValue\torg.bluez.Error.Failed\tFailed to initiate write"])
  }

  @Test func thePeriodRulesTheCadence() {
    let world = LinkTests.linked()
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.AcquireNotify", [Self.none])
    world.advance(by: .seconds(10))
    #expect(world.takePackets().count == 10)
    world.call("A", LinkTests.period, Self.write, [.bytes([100, 0]), Self.none])
    // The sample already planned comes first, at most a second later.
    world.advance(by: .seconds(1))
    _ = world.takePackets()
    world.advance(by: .seconds(10))
    #expect(world.takePackets().count == 100)
    #expect(world.model.peripherals[0].sent >= 111)
    // None of this was signalled.
    #expect(!world.takeLines().contains { $0.contains("{Value=ay:1") })
  }

  @Test func theCadenceStartsAgainAfterAPause() {
    let world = LinkTests.linked()
    let start = "org.bluez.GattCharacteristic1.StartNotify"
    world.call("A", LinkTests.temperature, start)
    world.advance(by: .seconds(3))
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.StopNotify")
    _ = world.takeLines()
    world.advance(by: .seconds(10))
    #expect(world.takeLines() == [])
    world.call("A", LinkTests.temperature, start)
    world.call("B", LinkTests.temperature, start)
    _ = world.takeLines()
    world.advance(by: .seconds(5))
    #expect(world.takeLines().count == 5)
  }

  @Test func aSilentMicroBitKeepsItsLinkAndAnswers() {
    let world = LinkTests.linked()
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.StartNotify")
    world.model.peripherals[0].silent = true
    _ = world.takeLines()
    world.advance(by: .seconds(10))
    #expect(world.takeLines() == [])
    world.call("A", LinkTests.period, Self.read, [Self.none])
    #expect(world.takeLines().last == "<\tA\tReadValue\tok\tay:e803")
    world.model.peripherals[0].silent = false
    world.advance(by: .seconds(2))
    #expect(world.takeLines().count == 2)
  }

  @Test func theSocketEndsWithTheLinkAndStartNotifyDoesNot() {
    let world = LinkTests.linked()
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.AcquireNotify", [Self.none])
    #expect(world.channels.count == 1)
    world.take(world.model.hangUp(0, at: world.now))
    #expect(world.channels == [])
    world.call("A", LinkTests.device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(5))
    #expect(world.takePackets() == [])
    #expect(world.unanswered == 0)
  }

  @Test func aSubscriptionWithoutALinkTakesEffectWithTheNextOne() {
    let world = LinkTests.linked()
    world.take(world.model.hangUp(0, at: world.now))
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.StartNotify")
    #expect(world.takeLines().last == "<\tA\tStartNotify\tok")
    world.call("A", LinkTests.device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(5))
    let lines = world.takeLines()
    #expect(lines.contains { $0.contains("{Notifying=b:true}") })
    #expect(lines.contains { $0.contains("{Value=ay:") })
  }

  @Test(arguments: [[], [1, 2], Array(repeating: 7, count: 20)] as [[UInt8]])
  func anyBytesCanBeMadeToCome(_ bytes: [UInt8]) {
    let world = LinkTests.linked()
    world.model.peripherals[0].microBit?.raw = bytes
    world.call("A", LinkTests.temperature, "org.bluez.GattCharacteristic1.AcquireNotify", [Self.none])
    world.advance(by: .seconds(1))
    #expect(world.takePackets() == [bytes])
  }

  @Test func theInformationServiceSaysWhatItIs() {
    let world = LinkTests.linked()
    let service = LinkTests.device + "/service000e"
    for characteristic in ["char000f", "char0011", "char0013"] {
      world.call("A", "\(service)/\(characteristic)", Self.read, [Self.none])
    }
    let values = ["BBC micro:bit", "1234567890", "2.1.1"].map { text in
      "<\tA\tReadValue\tok\tay:" + text.utf8.map { hex(Int($0), digits: 2).lowercased() }.joined()
    }
    #expect(world.takeLines().filter { $0.hasPrefix("<") } == values)
  }
}
