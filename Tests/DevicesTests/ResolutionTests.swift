import GATT
import Testing

@testable import BlueZ
@testable import Devices

@Suite struct ResolutionTests {
  /// Two characteristics of the micro:bit's UART service, with these flags.
  private func link(_ second: Characteristic.Flags, _ third: Characteristic.Flags) -> [Characteristic] {
    [(0x0002 as UInt16, second), (0x0003, third)].map { number, flags in
      Characteristic(
        uuid: .microbitUART(number), service: .microbitUARTService, flags: flags, path: "/\(number)",
        generation: 0, peripheral: PeripheralID(path: "/"))
    }
  }

  private func resolve(_ link: [Characteristic]) throws -> [BluetoothUUID?] {
    let profile = try Profile(name: "uart", properties: [.microbitUARTReceived, .microbitUARTSent])
    return Resolution(profile, link).characteristics.map { $0?.uuid }
  }

  /// A micro:bit's program may be built with the UART's characteristics the other way round.
  @Test func firstCharacteristicThatSupportsTheAccessIsUsed() throws {
    let (two, three) = (BluetoothUUID.microbitUART(0x0002), BluetoothUUID.microbitUART(0x0003))
    #expect(try resolve(link(.indicate, [.write, .writeWithoutResponse])) == [two, three])
    #expect(try resolve(link([.write, .writeWithoutResponse], .notify)) == [three, two])
    #expect(try resolve(link(.read, .indicate)) == [three, nil])
  }

  @Test func causeOfEachLackIsKnown() throws {
    let uart = BluetoothUUID.microbitUARTService
    func property(
      _ name: String, _ service: BluetoothUUID, _ characteristic: BluetoothUUID, _ access: Property.Access,
      _ mode: Property.WriteMode? = nil, instance: Int = 0, kind: Property.Kind = .state
    ) -> Property {
      Property(
        name: name, service: service, characteristic: characteristic, instance: instance, kind: kind,
        access: access, writeMode: mode, codec: .uint8)
    }
    let (two, three) = (BluetoothUUID.microbitUART(0x0002), BluetoothUUID.microbitUART(0x0003))
    let profile = try Profile(
      name: "lab",
      properties: [
        property("offered", uart, two, .notify), property("a", BluetoothUUID(short: 0x180F), two, .read),
        property("b", uart, BluetoothUUID(short: 0x2A19), .read), property("c", uart, two, .write),
        property("d", uart, three, .notify, kind: .event), property("e", uart, three, .write, .command),
        property("f", uart, two, .notify, instance: 1),
      ])
    let lacks = Resolution(profile, link(.indicate, [.read, .write])).lacks
    #expect(lacks[0] == nil)
    #expect(lacks[1] == "it has no service 180f")
    #expect(lacks[2] == "its service \(uart) has no characteristic 2a19")
    #expect(lacks[3] == "its characteristic \(two) cannot be written")
    #expect(lacks[4] == "its characteristic \(three) does not notify")
    #expect(lacks[5] == #"its characteristic \#(three) is written with "write": "request" only"#)
    #expect(lacks[6]?.hasSuffix("\(two) with the instance 1") == true)
  }

  /// A Battery Service must be readable, and may notify.
  @Test func aStateThatDoesNotNotifyIsRead() throws {
    let level = Property(
      name: "level", service: .microbitUARTService, characteristic: .microbitUART(0x0003),
      access: [.read, .notify], codec: .uint8)
    let link = link(.indicate, [.read, .write])
    #expect(Resolution(try Profile(name: "lab", properties: [level]), link).lacks.isEmpty)
    let alive = try Profile(name: "lab", alive: "level", properties: [level])
    #expect(Resolution(alive, link).lacks[0]?.hasSuffix("does not notify") == true)
  }

  @Test func requiredServicesThatAreMissingAreKnown() throws {
    let heart = BluetoothUUID(short: 0x180D)
    let profile = try Profile(
      name: "lab", requires: [heart, .microbitUARTService], properties: [.microbitUARTReceived])
    let resolution = Resolution(profile, link(.indicate, .write))
    #expect(!resolution.isSuitable)
    #expect(resolution.missingServices == [heart])
  }

  /// With any of the automatic properties it can be used; the temperature keeps a link alive where it is offered.
  @Test func programWithoutTemperatureIsSuitableIfItDecides() {
    let names: Set = ["temperature", "period", "uart_rx"]
    let uart = link(.indicate, .write)
    let temperature = Characteristic(
      uuid: .microbit(0x9250), service: .microbitTemperatureService, flags: [.read, .notify], path: "/t",
      generation: 0, peripheral: PeripheralID(path: "/"))
    let automatic = Profile.microbit.limited(to: names, isAutomatic: true)
    #expect(Resolution(automatic, uart).isSuitable && Resolution(automatic, uart).alive == nil)
    #expect(Resolution(automatic, uart + [temperature]).alive == 0)
    #expect(!Resolution(automatic, []).isSuitable)
    #expect(!Resolution(Profile.microbit.limited(to: names), uart).isSuitable)
  }
}
