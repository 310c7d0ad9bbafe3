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

  private static let buttonA = BluetoothUUID.microbit(0xDA90)
  private static let text = BluetoothUUID.microbit(0x93EE)
  private static let leds = BluetoothUUID.microbit(0x7B77)
  private static let picture: [UInt8] = [0x0A, 0x1F, 0x1F, 0x0E, 0x04]

  private static func start(_ services: [MicroBitService], isInRange: Bool = true) async throws -> Engine {
    let tested = try await Engine(isInRange: isInRange) { $0.services = services }
    if isInRange { try await tested.frontEnd.availability(true) }
    return tested
  }

  private static func startTwo() async throws -> (Engine, other: DeviceDescription) {
    let tested = try await Engine {
      $0.services = [.temperature, .buttons]
      $0.devices = 2
    }
    try await eventually("both are online") { await tested.engine.onlineCount == 2 }
    return (tested, try #require(await tested.engine.devices.first { $0.id != Engine.id }))
  }

  private static func press(_ tested: Engine) async {
    for state in ["01", "00"] { await tested.notify(buttonA, state) }
  }

  @LoopActor private static func endTurn(_ tested: Engine) {
    tested.engine.registry.byID[Engine.id]?.session.linkSession?.endTurn()
  }

  /// As many devices as there are links show the sign, and one more waits for a link.
  private static func start(links: Int) async throws -> Engine {
    var configuration = Configuration()
    (configuration.bluetooth.links, configuration.bluetooth.stay) = (links, 3600)
    let tested = try await Engine(configuration) {
      $0.services = [.temperature, .buttons, .led]
      $0.devices = links + 1
      $0.timing.attribute = .milliseconds(50)
    }
    await tested.engine.permitNumbering(seconds: 60)
    try await eventually("one waits while the others show the sign") { await isFull(tested, links) }
    return tested
  }

  @LoopActor private static func isFull(_ tested: Engine, _ links: Int) -> Bool {
    let shown = tested.engine.registry.all.count { $0.isLive && $0.record.leds != nil && !$0.isBusy }
    return shown == links && waiting(tested) != nil
  }

  @LoopActor private static func waiting(_ tested: Engine) -> DeviceID? {
    tested.engine.registry.all.first { $0.context.scheduler.isWaiting($0) }?.id
  }

  @LoopActor private static func busy(_ tested: Engine) -> DeviceID? {
    tested.engine.registry.all.first { $0.isLive && $0.isBusy }?.id
  }

  /// The device that waits is to get a link. While the LEDs of another one are restored, steps begin there.
  @LoopActor private static func endTurn(
    _ tested: Engine, during steps: [SequenceStep]
  ) async throws -> (DeviceID, [CommandResult]) {
    try tested.engine.number(try #require(waiting(tested)))
    try await eventually("LEDs are being restored") { await busy(tested) != nil }
    let id = try #require(busy(tested))
    return (id, try await tested.engine.sequence(steps, on: id, within: 60))
  }

  private static func isLeaving(
    _ event: RecordingFrontEnd.Event, where isMeant: (DeviceID) -> Bool
  ) -> Bool {
    guard case .changed(_, let device) = event else { return false }
    return device.session == .leaving && isMeant(device.id)
  }

  @LoopActor private static func isBusy(_ tested: Engine) -> Bool {
    tested.engine.registry.byAddress[Engine.address]?.isBusy != false
  }

  /// Once it has a number, its LEDs show what they showed before.
  @Test func signIsShownUntilItHasANumber() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led])
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table")
    try await tested.shows([Device.pressSign])
    await Self.press(tested)
    try await tested.shows([Device.pressSign, Self.picture])
    try await tested.hasName("Table 1", id: "table-1")
    // Renewed, it begins not anew; another press gives no other number.
    await tested.engine.permitNumbering(seconds: 60)
    await Self.press(tested)
    try await eventually("it shows its number again") {
      try await tested.writes(Self.text).map { String(decoding: $0, as: UTF8.self) } == ["1", "1"]
    }
    #expect(await tested.engine.numbering?.next == 2)
    await tested.engine.permitNumbering(seconds: 60)
    await tested.engine.permitNumbering(seconds: 0)
    try await eventually("nothing is left to show") {
      await tested.engine.devices.first?.record.leds == nil
    }
    #expect(try await tested.writes(Self.leds).count == 2)
    await tested.end()
  }

  @LoopActor private static func useElsewhere(_ id: String, _ tested: Engine) throws {
    tested.frontEnd.usedElsewhere = [try DeviceID(id)]
  }

  @Test func oneThatWasRemovedGetsTheNextNumberThatNobodyUses() async throws {
    let tested = try await Self.start([.temperature, .buttons])
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table")
    await Self.press(tested)
    try await tested.hasName("Table 1", id: "table-1")
    let before = tested.frontEnd.events.count
    _ = try await tested.engine.remove(DeviceID("table-1"))
    _ = try await tested.engine.add(Engine.address, [:])
    try await tested.frontEnd.availability(true, from: before)
    try await Self.useElsewhere("table-2", tested)
    await Self.press(tested)
    try await tested.hasName("Table 3", id: "table-3")
    #expect(await tested.engine.numbering?.given.count == 1)
    await tested.end()
  }

  /// A picture ends a text that is running.
  @Test func numberIsShownAfterThePicture() async throws {
    let tested = try await Engine {
      $0.services = [.temperature, .buttons, .led]
      $0.timing.attribute = .milliseconds(50)
    }
    try await tested.frontEnd.availability(true)
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.permitNumbering(seconds: 60)
    try await tested.shows([Device.pressSign])
    await Self.press(tested)
    try await eventually("it shows its number") { try await !tested.writes(Self.text).isEmpty }
    #expect(try await tested.writes(Self.leds) == [Device.pressSign, Self.picture])
    await tested.end()
  }

  /// The picture would end the text on the new link.
  @Test func numberIsShownAfterALostLink() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led])
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.permitNumbering(seconds: 60)
    try await tested.shows([Device.pressSign])
    await tested.vanish()
    try await tested.frontEnd.availability(false)
    try await tested.engine.number(Engine.id)
    let before = tested.frontEnd.events.count
    await tested.comeBack()
    try await tested.frontEnd.availability(true, from: before)
    try await eventually("it shows its number") { try await !tested.writes(Self.text).isEmpty }
    try await eventually("nothing more is under way") { await !Self.isBusy(tested) }
    #expect(try await tested.writes(Self.leds) == [Device.pressSign])
    await tested.end()
  }

  @Test func oneThatComesShowsTheSignUntilTheTimeIsOver() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led], isInRange: false)
    try await tested.frontEnd.adapterIsOn()
    await tested.engine.permitNumbering(seconds: 60)
    await tested.comeBack()
    try await tested.shows([Device.pressSign])
    await tested.engine.permitNumbering(seconds: 1)
    try await tested.shows([Device.pressSign, [0, 0, 0, 0, 0]])
    await tested.end()
  }

  /// The LEDs would keep the sign without a link, and a press would do nothing.
  @Test func signGoesBeforeTheLinkIsGivenUp() async throws {
    let tested = try await Self.start([.temperature, .buttons, .led])
    await tested.notify(Self.leds, Hexadecimal.text(Self.picture))
    await tested.engine.permitNumbering(seconds: 60)
    try await tested.shows([Device.pressSign])
    let before = tested.frontEnd.events.count
    await Self.endTurn(tested)
    try await tested.shows([Device.pressSign, Self.picture])
    // bluetoothd does not know at once that it is still in range.
    _ = try await tested.frontEnd.events.first(from: before, "it is connected again") { event in
      if case .changed(.availability, let device) = event { device.session == .live } else { false }
    }
    for case .changed(_, let device) in tested.frontEnd.events.elements.dropFirst(before) {
      #expect(device.session != .absent)
    }
    await tested.end()
  }

  /// A request that comes while the LEDs are restored.
  @Test func linkIsGivenUpAfterTheStepsOfARequest() async throws {
    let tested = try await Self.start(links: 1)
    let before = tested.frontEnd.events.count
    let steps = Array(repeating: SequenceStep("temperature"), count: 8)
    let (id, results) = try await Self.endTurn(tested, during: steps)
    #expect(results.count == 8 && results.allSatisfy(\.outcome.isSuccess))
    try await tested.frontEnd.event(from: before, "the end of its link") { event in
      Self.isLeaving(event) { $0 == id }
    }
    await tested.end()
  }

  @Test func anotherLinkIsGivenUpDuringTheStepsOfARequest() async throws {
    let tested = try await Self.start(links: 2)
    let before = tested.frontEnd.events.count
    let steps = Array(repeating: SequenceStep("temperature"), count: 16)
    let (id, results) = try await Self.endTurn(tested, during: steps)
    #expect(results.count == 16 && results.allSatisfy(\.outcome.isSuccess))
    let events = tested.frontEnd.events.elements.dropFirst(before)
    #expect(events.contains { event in Self.isLeaving(event) { $0 != id } })
    await tested.end()
  }

  @Test func withoutButtonsNothingIsAwaited() async throws {
    let tested = try await Self.start([.temperature, .led])
    await tested.engine.permitNumbering(seconds: 60)
    #expect(await tested.engine.numberingJSON?["waiting"] == .integer(0))
    try await tested.engine.number(Engine.id)
    try await tested.hasName("1", id: "1")
    await tested.engine.permitNumbering(seconds: 0)
    #expect(try await tested.writes(Self.leds) == [])
    let id = try DeviceID("1")
    await #expect(throws: RequestError.self) { try await tested.engine.number(id) }
    await tested.end()
  }

  @Test func withoutLEDsItIsPressedToo() async throws {
    let tested = try await Self.start([.temperature, .buttons])
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table", next: 7)
    let shown = await tested.engine.numberingJSON
    #expect(shown?["waiting"] == .integer(1) && shown?["without_leds"] == .integer(1))
    await Self.press(tested)
    try await tested.hasName("Table 7", id: "table-7")
    await tested.engine.permitNumbering(seconds: 4)
    try await eventually("it ends without a new number, though it is pressed") {
      await Self.press(tested)
      return await tested.engine.numbering == nil
    }
    await tested.end()
  }

  /// One that was numbered in another lesson gives up its name.
  @Test func aNameGoesToTheOneThatIsPressed() async throws {
    let (tested, other) = try await Self.startTwo()
    try await tested.engine.rename(other.id, name: "Table 1")
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table")
    await Self.press(tested)
    try await tested.hasName("Table 1", id: "table-1")
    let names = await tested.engine.devices.map { $0.settings.name }
    #expect(names.count { $0 == "Table 1" } == 1 && names.count == 2)
    await tested.end()
  }

  /// Another one has the id, under another name.
  @Test func anIDGoesToTheOneThatIsPressed() async throws {
    let (tested, other) = try await Self.startTwo()
    try await tested.engine.rename(other.id, name: "Hall", to: DeviceID("table-1"))
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table")
    await Self.press(tested)
    try await tested.hasName("Table 1", id: "table-1")
    let id = await tested.engine.devices.first { $0.address == other.address }?.id.description
    #expect(id == other.bluetoothName.flatMap(Profile.microbitLetters))
    await tested.end()
  }

  @Test func aNumberOfThisLessonIsLeftOut() async throws {
    let (tested, other) = try await Self.startTwo()
    await tested.engine.permitNumbering(seconds: 60, prefix: "Table")
    try await tested.engine.number(other.id)
    await tested.engine.permitNumbering(seconds: 60, next: 1)
    await Self.press(tested)
    try await tested.hasName("Table 2", id: "table-2")
    #expect(await tested.engine.numbering?.next == 3)
    await tested.end()
  }
}

extension EngineUnderTest {
  fileprivate func hasName(_ name: String, id: String) async throws {
    try await eventually("it is called \(name)") {
      await self.engine.devices.contains {
        $0.address == Self.address && $0.settings.name == name && $0.id.description == id
      }
    }
  }

  /// Waits until these pictures, one after the other, were shown.
  fileprivate func shows(_ pictures: [[UInt8]]) async throws {
    let leds = BluetoothUUID.microbit(0x7B77)
    try await eventually("\(pictures) are shown") { try await self.writes(leds) == pictures }
  }
}
