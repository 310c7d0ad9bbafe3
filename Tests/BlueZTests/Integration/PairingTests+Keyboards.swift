import DBus
import GATT
import Peripherals
import TestSupport
import Testing

@testable import BlueZ
@testable import BlueZSimulator

/// Keyboards and mice.
extension PairingTests {
  private static let battery = BluetoothUUID(short: 0x180F)
  private static let batteryLevel = BluetoothUUID(short: 0x2A19)
  private static let input = BluetoothUUID(short: 0x1812)

  /// A peripheral with a battery, and with HID over GATT.
  private static func keyboard(
    advertises: [BluetoothUUID] = [], disconnect: Duration = .milliseconds(20)
  ) async throws -> Fixture {
    try await Fixture { options in
      options.devices = 0
      options.timing.disconnect = disconnect
      options.described = [
        PeripheralDescription(
          name: "BBC micro:bit [zutug]", advertises: advertises,
          services: [
            .init(battery, [.init(batteryLevel, [.read, .notify], value: [50])]),
            .init(input, [.init(BluetoothUUID(short: 0x2A4D), [.read, .notify])]),
          ])
      ]
    }
  }

  @Test func aKeyboardIsNeitherConnectedNorPaired() async throws {
    let fixture = try await Self.keyboard(advertises: [Self.input])
    let (central, id) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(try await monitor.lines("Connect ", "Pair ").isEmpty)
  }

  @Test func aKeyboardThatDoesNotAdvertiseItIsNotUsed() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await !fixture.isLinked())
    // It is known from now on.
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(try await monitor.lines("Connect ").count == 1)
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(try await monitor.lines("Pair ").isEmpty)
  }

  @Test func aBondWithAKeyboardThatDoesNotAdvertiseItIsDeleted() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == .failed(.inputDevice))
    #expect(await !fixture.isLinked())
    #expect(await isFoundAgain(central, id))
  }

  @Test func aPeripheralThatBecomesAKeyboardIsReported() async throws {
    let fixture = try await Self.keyboard()
    await fixture.serve(Self.input, false)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == nil)
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    await fixture.serve(Self.input, true)
    _ = try await central.events.next("word of the keyboard") { event -> Bool? in
      if case .unusable(id, _) = event { true } else { nil }
    }
    // On a later link the bond alone does not make it one that may be used.
    await fixture.serve(Self.input, false)
    await central.central.disconnect(id)
    await fixture.serve(Self.input, true)
    await #expect(throws: CentralError.inputDevice) { try await central.central.connect(id) }
    #expect(await isFoundAgain(central, id))
  }

  @Test func aPeripheralThatBecomesAKeyboardWhileTheLinkEndsLosesItsBond() async throws {
    let fixture = try await Self.keyboard(disconnect: .seconds(3))
    await fixture.serve(Self.input, false)
    let (central, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(central, id) == nil)
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    async let ended: Void = central.central.disconnect(id)
    #expect(await central.central.wait(patience) { $0.isEnding(id) })
    await fixture.serve(Self.input, true)
    #expect(await isFoundAgain(central, id))
    await ended
  }

  /// Another program connects to it.
  @Test func aPeripheralThatAnEarlierRunHasPairedWithLosesItsBondAsAKeyboard() async throws {
    let fixture = try await Self.keyboard()
    await fixture.serve(Self.input, false)
    let (first, id) = try await fixture.centralAndMicroBit()
    #expect(await pair(first, id) == nil)
    await first.central.disconnect(id)
    try await first.end()
    let (next, _) = try await fixture.centralAndMicroBit()
    #expect(await next.central.wait(patience) { $0.tree.devices[id.path]?.isPaired == true })
    await next.central.keepsOwnBond(id)
    await fixture.serve(Self.input, true)
    let other = try await DBusConnection.open(fixture.bus.address) { _ in }
    let call = DBusCall("Connect", on: "org.bluez.Device1", of: id.path, at: "org.bluez")
    async let connected = try? await other.call(call, timeout: .seconds(3))
    #expect(await isFoundAgain(next, id))
    _ = await connected
    await other.close()
  }

  /// Its battery can be read, for example.
  @Test func aKeyboardThatAnotherProgramHasPairedWithIsUsed() async throws {
    let fixture = try await Self.keyboard()
    let (central, id) = try await fixture.centralAndMicroBit()
    let other = try await DBusConnection.open(fixture.bus.address) { _ in }
    func call(_ member: String, _ interface: String, of path: String, _ arguments: [DBusValue] = [])
      -> DBusCall
    {
      DBusCall(member, on: "org.bluez." + interface, of: path, at: "org.bluez", arguments)
    }
    for call in [
      call(
        "RegisterAgent", "AgentManager1", of: "/org/bluez", [.objectPath("/agent"), .string("KeyboardOnly")]),
      call("Pair", "Device1", of: id.path), call("Disconnect", "Device1", of: id.path),
    ] { _ = try await other.call(call, timeout: patience) }
    #expect(await central.central.wait(patience) { $0.tree.devices[id.path]?.isConnected == false })
    #expect(try await central.central.connect(id).contains { $0.uuid == Self.batteryLevel })
    #expect(await central.central.tree.devices[id.path]?.isPaired == true)
    await other.close()
  }
}
