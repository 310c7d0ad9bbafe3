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

  private static func start(
    _ options: String, _ services: [MicroBitService], state path: String? = nil, isInRange: Bool = true
  ) async throws -> Engine {
    let text = #"{"devices":[{"match":{"identifier":"\#(Engine.address)"}\#(options)}]}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    let tested = try await Engine(configuration, state: path, isInRange: isInRange) {
      $0.services = services
    }
    if isInRange { try await tested.frontEnd.availability(true) }
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

  private static let full = [UInt8](repeating: 0x1F, count: 5)
  private static let picture: [UInt8] = [0x0A, 0x1F, 0x1F, 0x0E, 0x04]

  /// What is set while it blinks holds afterwards.
  @Test func pictureThatIsSetMeanwhileIsShownAfterwards() async throws {
    let tested = try await Self.start(#","properties":["led"]"#, [.led])
    async let identified = tested.engine.identify(Engine.id)
    try await tested.wrote(Self.full, to: Self.matrix)
    let picture = Value.text(".#.#./#####/#####/.###./..#..")
    #expect(try await tested.command(picture, 0).final() == .applied(actual: picture))
    _ = try await identified
    #expect(try await tested.writes(Self.matrix).last == Self.picture)
    #expect(try await tested.writes(Self.matrix).count { $0 == Self.full } == 3)
    await tested.end()
  }

  @Test func oneAtATime() async throws {
    let tested = try await Self.start(#","properties":["led"]"#, [.led])
    async let identified = tested.engine.identify(Engine.id)
    try await tested.wrote(Self.full, to: Self.matrix)
    await #expect(throws: RequestError("c5a1b2c3d4e5 shows its name already")) {
      _ = try await tested.engine.identify(Engine.id)
    }
    _ = try await identified
    #expect(try await tested.writes(Self.matrix).last == [0, 0, 0, 0, 0])
    await tested.end()
  }

  /// Where the property for pictures is in use: the text leaves the LEDs dark.
  @Test(arguments: [true, false])
  func pictureIsShownAgainAfterTheText(isDesired: Bool) async throws {
    let desired = isDesired ? #""led":".#.#./#####/#####/.###./..#..","# : ""
    let tested = try await Self.start(
      #","properties":["led","led_text","scroll_delay"],"desired":{\#(desired)"scroll_delay":1}"#, [.led])
    if isDesired { try await tested.wrote(Self.picture, to: Self.matrix) }
    let (_, text) = try await tested.engine.identify(Engine.id)
    #expect(text != nil)
    #expect(
      try await tested.writes(Self.matrix) == (isDesired ? [Self.picture, Self.picture] : [[0, 0, 0, 0, 0]]))
    await tested.end()
  }

  /// Nor does a gateway that is started again leave them lit.
  @Test(arguments: [true, false])
  func lostLinkLeavesNothingLit(isRestarted: Bool) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var tested = try await Self.start(#","properties":["led"]"#, [.led], state: path)
    await tested.notify(Self.matrix, Hexadecimal.text(Self.picture))
    let identified = Task { [tested] in try await tested.engine.identify(Engine.id) }
    try await tested.wrote(Self.full, to: Self.matrix)
    await tested.vanish()
    await #expect(throws: RequestError.self) { _ = try await identified.value }
    if isRestarted {
      await tested.end()
      // A micro:bit that still shows it.
      tested = try await Self.start(#","properties":["led"]"#, [.led], state: path, isInRange: false)
      await tested.notify(Self.matrix, Hexadecimal.text(Self.full))
    }
    await tested.comeBack()
    try await tested.wrote(Self.picture, to: Self.matrix)
    try await tested.frontEnd.reading(0, .text(".#.#./#####/#####/.###./..#.."), sequence: .some(nil))
    await tested.end()
    #expect(try Engine.stored(in: path).first?.leds == nil)
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

extension EngineUnderTest {
  /// Waits until these bytes are written to a characteristic.
  fileprivate func wrote(_ bytes: [UInt8], to characteristic: BluetoothUUID) async throws {
    try await eventually("\(bytes) is written") { try await self.writes(characteristic).contains(bytes) }
  }
}
