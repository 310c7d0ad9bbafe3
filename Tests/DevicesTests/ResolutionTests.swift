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
