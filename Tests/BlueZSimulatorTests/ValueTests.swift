import DBus
import GATT
import Peripherals
import Testing

@testable import BlueZSimulator

/// Values: reads that share, writes that collide, notifications and their cadence.
@Suite struct ValueTests {

  @Test func readsAtTheSameTimeShareOneRequestAndWritesCollide() {
    let fixture = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(100)
    }
    fixture.call("A", LinkTests.period, .readValue, [.noOptions])
    fixture.call("B", LinkTests.period, .readValue, [.noOptions])
    fixture.call("A", LinkTests.period, .writeValue, [.bytes([0xF4, 1]), .noOptions])
    fixture.call("B", LinkTests.period, .writeValue, [.bytes([1, 0]), .noOptions])
    #expect(fixture.takeLines() == ["<\tB\tWriteValue\torg.bluez.Error.InProgress\tIn Progress"])
    fixture.advance(by: .milliseconds(100))
    #expect(
      fixture.takeLines() == [
        "!\t\(LinkTests.period)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{Value=ay:e803}\t",
        "<\tA\tReadValue\tok\tay:e803", "<\tB\tReadValue\tok\tay:e803",
      ])
    fixture.advance(by: .milliseconds(100))
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\tok"])
    #expect(fixture.model.peripherals[0].values.microBit?.period == 500)
  }

  @Test func aCommandToThePeriodIsAcceptedAndWithoutEffect() {
    let fixture = LinkTests.linked()
    fixture.call(
      "A", LinkTests.period, .writeValue, [.bytes([1, 0]), .properties(["type": .string("command")])])
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\tok"])
    #expect(fixture.model.peripherals[0].values.microBit?.period == 1000)
    let long = [UInt8](repeating: 1, count: 21)
    fixture.call(
      "A", LinkTests.period, .writeValue, [.bytes(long), .properties(["type": .string("command")])])
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\torg.bluez.Error.Failed\tFailed to initiate write"])
  }

  @Test func thePeriodRulesTheCadence() {
    let fixture = LinkTests.linked()
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    fixture.advance(by: .seconds(10))
    #expect(fixture.takePackets().count == 10)
    fixture.call("A", LinkTests.period, .writeValue, [.bytes([100, 0]), .noOptions])
    // The sample already planned comes first, at most a second later.
    fixture.advance(by: .seconds(1))
    _ = fixture.takePackets()
    fixture.advance(by: .seconds(10))
    #expect(fixture.takePackets().count == 100)
    #expect(fixture.model.peripherals[0].radio.sent >= 111)
    // None of this was signalled.
    #expect(!fixture.takeLines().contains { $0.contains("{Value=ay:1") })
  }

  @Test func theCadenceStartsAgainAfterAPause() {
    let fixture = LinkTests.linked()
    let start = "org.bluez.GattCharacteristic1.StartNotify"
    fixture.call("A", LinkTests.temperature, start)
    fixture.advance(by: .seconds(3))
    fixture.call("A", LinkTests.temperature, .stopNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(10))
    #expect(fixture.takeLines() == [])
    fixture.call("A", LinkTests.temperature, start)
    fixture.call("B", LinkTests.temperature, start)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(5))
    #expect(fixture.takeLines().count == 5)
  }

  @Test func aSilentMicroBitKeepsItsLinkAndAnswers() {
    let fixture = LinkTests.linked()
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.model.peripherals[0].radio.isSilent = true
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(10))
    #expect(fixture.takeLines() == [])
    fixture.call("A", LinkTests.period, .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:e803")
    fixture.model.peripherals[0].radio.isSilent = false
    fixture.advance(by: .seconds(2))
    #expect(fixture.takeLines().count == 2)
  }

  @Test func theSocketEndsWithTheLinkAndStartNotifyDoesNot() {
    let fixture = LinkTests.linked()
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    #expect(fixture.channels.count == 1)
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    #expect(fixture.channels == [])
    fixture.call("A", LinkTests.device, .connect)
    fixture.advance(by: .seconds(5))
    #expect(fixture.takePackets() == [])
    #expect(fixture.unanswered == 0)
  }

  @Test func aSubscriptionWithoutALinkTakesEffectWithTheNextOne() {
    let fixture = LinkTests.linked()
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    fixture.call("A", LinkTests.temperature, .startNotify)
    #expect(fixture.takeLines().last == "<\tA\tStartNotify\tok")
    fixture.call("A", LinkTests.device, .connect)
    fixture.advance(by: .seconds(5))
    let lines = fixture.takeLines()
    #expect(lines.contains { $0.contains("{Notifying=b:true}") })
    #expect(lines.contains { $0.contains("{Value=ay:") })
  }

  @Test(arguments: [[], [1, 2], Array(repeating: 7, count: 20)] as [[UInt8]])
  func anyBytesCanBeMadeToCome(_ bytes: [UInt8]) {
    let fixture = LinkTests.linked()
    fixture.model.peripherals[0].values.microBit?.raw = bytes
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    fixture.advance(by: .seconds(1))
    #expect(fixture.takePackets() == [bytes])
  }

  @Test func theInformationServiceSaysWhatItIs() {
    let fixture = LinkTests.linked()
    let service = LinkTests.device + "/service000e"
    for characteristic in ["char000f", "char0011", "char0013"] {
      fixture.call("A", "\(service)/\(characteristic)", .readValue, [.noOptions])
    }
    let values = ["BBC micro:bit V2", "1234567890", "2.1.1"].map { text in
      "<\tA\tReadValue\tok\tay:" + Hexadecimal.text(text.utf8)
    }
    #expect(fixture.takeLines().filter { $0.hasPrefix("<") } == values)
  }
}
