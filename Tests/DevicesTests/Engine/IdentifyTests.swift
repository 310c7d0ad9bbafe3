import Configuration
import GATT
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// Which micro:bit is it, against a simulated bluetoothd.
@Suite struct IdentifyTests {
  typealias Engine = EngineUnderTest

  private static let text = BluetoothUUID.microbit(0x93EE)
  private static let matrix = BluetoothUUID.microbit(0x7B77)

  private static func start(_ options: String, _ services: [MicroBitService]) async throws -> Engine {
    let text = #"{"devices":[{"match":{"identifier":"\#(Engine.address)"}\#(options)}]}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    let tested = try await Engine(configuration) { $0.services = services }
    try await tested.frontEnd.availability(true)
    return tested
  }

  @Test(arguments: [
    ("Window", "Window"), ("Küche am Fenster", "kueche-am-fenster"), ("台所", "c5a1b2c3d4e5"),
    ("The window of the classroom", "The window of the cl"),
  ])
  func nameIsShown(name: String, shown: String) async throws {
    let tested = try await Self.start(#","name":"\#(name)""#, [.temperature, .led])
    let (property, text) = try await tested.engine.identify(Engine.id)
    #expect(property == "led_text" && text == shown)
    #expect(try await tested.writes(Self.text) == [Array(shown.utf8)])
    await tested.end()
  }

  /// Its letters, as on the list of `init`.
  @Test func withoutANameTheLettersAreShown() async throws {
    let tested = try await Self.start("", [.led])
    let name = try #require(await tested.engine.device(Engine.id)?.bluetoothName)
    let (_, text) = try await tested.engine.identify(Engine.id)
    #expect(text != nil && "BBC micro:bit [\(text ?? "")]" == name)
    await tested.end()
  }

  @Test func withoutTextTheLEDsBlinkAndShowThenWhatTheyShowed() async throws {
    let tested = try await Self.start(#","properties":["led"]"#, [.led])
    let (property, text) = try await tested.engine.identify(Engine.id)
    #expect(property == "led" && text == nil)
    let (full, empty) = ([UInt8](repeating: 0x1F, count: 5), [UInt8](repeating: 0, count: 5))
    #expect(try await tested.writes(Self.matrix) == [full, empty, full, empty, full, empty, empty])
    #expect(await tested.engine.device(Engine.id)?.desired == [:])
    await tested.end()
  }

  @Test(arguments: [
    (
      #","properties":["temperature"]"#, [MicroBitService.temperature, .led], RequestError.Code.invalid,
      "c5a1b2c3d4e5 cannot show anything: led_text or led must be among its properties"
    ),
    ("", [.temperature], .failed, "c5a1b2c3d4e5 cannot show anything: its program has no LED service"),
  ])
  func whyNothingIsShown(
    options: String, services: [MicroBitService], code: RequestError.Code, reason: String
  ) async throws {
    let tested = try await Self.start(options, services)
    #expect(await tested.engine.device(Engine.id)?.mayIdentify == false)
    await #expect(throws: RequestError(code, reason)) { _ = try await tested.engine.identify(Engine.id) }
    await tested.vanish()
    try await tested.frontEnd.availability(false)
    await #expect(throws: RequestError.self) { _ = try await tested.engine.identify(Engine.id) }
    await tested.end()
  }
}
