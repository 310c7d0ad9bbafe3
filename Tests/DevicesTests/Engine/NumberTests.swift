import Configuration
import EventLoop
import GATT
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// Numbering by a press of button A, against a simulated bluetoothd.
@Suite struct NumberTests {
  typealias Engine = EngineUnderTest

  private static let leds = BluetoothUUID.microbit(0x7B77)
  private static let picture: [UInt8] = [0x0A, 0x1F, 0x1F, 0x0E, 0x04]

  private static func start(_ services: [MicroBitService], isInRange: Bool = true) async throws -> Engine {
    let tested = try await Engine(isInRange: isInRange) { $0.services = services }
    if isInRange { try await tested.frontEnd.availability(true) }
    return tested
  }

  private static func name(_ tested: Engine) async throws {
    var patch = DeviceOptionsPatch()
    patch.options.name = "Table 1"
    _ = try await tested.engine.change(Engine.id, patch)
  }

  @LoopActor private static func endTurn(_ tested: Engine) {
    tested.engine.registry.byID[Engine.id]?.session.links?.endTurn()
  }

  /// Once it has a name, its LEDs show what they showed before.
  @Test func signIsShownUntilItHasAName() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led])
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.number(seconds: 60)
    try await tested.shows([Device.pressSign])
    // Renewed, it begins not anew.
    await tested.engine.number(seconds: 60)
    try await Self.name(tested)
    try await tested.shows([Device.pressSign, Self.picture])
    await tested.engine.number(seconds: 60)
    await tested.engine.number(seconds: 0)
    try await eventually("nothing is left to show") {
      await tested.engine.device(Engine.id)?.record.leds == nil
    }
    #expect(try await tested.writes(Self.leds).count == 2)
    await tested.end()
  }

  @Test func oneThatComesShowsTheSignUntilTheTimeIsOver() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led], isInRange: false)
    try await tested.frontEnd.adapterIsOn()
    await tested.engine.number(seconds: 60)
    await tested.comeBack()
    try await tested.shows([Device.pressSign])
    await tested.engine.number(seconds: 1)
    try await tested.shows([Device.pressSign, [0, 0, 0, 0, 0]])
    await tested.end()
  }

  /// The LEDs would keep the sign without a link, and a press would do nothing.
  @Test func signGoesBeforeTheLinkIsGivenUp() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led])
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.number(seconds: 60)
    try await tested.shows([Device.pressSign])
    await Self.endTurn(tested)
    try await tested.shows([Device.pressSign, Self.picture])
    try await tested.frontEnd.availability(true)
    await tested.end()
  }

  @Test func withoutButtonsNothingIsAwaited() async throws {
    let tested = try await Self.start([.temperature, .led])
    await tested.engine.number(seconds: 60)
    try await Self.name(tested)
    await tested.engine.number(seconds: 0)
    #expect(try await tested.writes(Self.leds) == [])
    await tested.end()
  }
}

extension EngineUnderTest {
  /// Waits until these pictures, one after the other, were shown.
  fileprivate func shows(_ pictures: [[UInt8]]) async throws {
    let leds = BluetoothUUID.microbit(0x7B77)
    try await eventually("\(pictures) are shown") { try await self.writes(leds) == pictures }
  }
}
