import Configuration
import EventLoop
import Findings
import GATT
import Radio
import TestSupport
import Testing

@testable import Devices

/// Which micro:bits that are heard by radio are devices, and which of what they send are values.
@Suite struct RadioDevicesTests {
  typealias Engine = EngineUnderTest

  /// An entry for the micro:bit with these five letters.
  private static func entry(_ letters: String?) -> Configuration {
    var configuration = Configuration()
    var match = Configuration.Match()
    match.radio = letters.flatMap { MicrobitName($0) }
    configuration.devices = letters == nil ? [] : [Configuration.Device(match: match)]
    return configuration
  }

  private static func tested(
    _ letters: String?, _ body: (Engine) async throws -> Void
  ) async throws {
    let tested = try await Engine(entry(letters), isInRange: false)
    try await tested.frontEnd.adapterIsOn()
    try await body(tested)
    await tested.end()
  }

  /// A receiver has printed these lines.
  private static func hear(_ lines: [String], _ tested: Engine) async throws {
    let packets = try lines.map { try #require(RadioPacket(Array($0.utf8))) }
    await tested.engine.received(packets, from: "port")
  }

  /// The serial number of the micro:bit `zotut`, with a number of one's own.
  private static func serial(_ number: UInt32) throws -> UInt32 {
    number * 3125 + (try #require(MicrobitName("zotut")).number)
  }

  private static func line(_ serial: UInt32, _ name: String, _ value: Int) -> String {
    #"{"t":1,"s":\#(serial),"n":"\#(name)","v":\#(value)}"#
  }

  @Test func madeUpSerialNumbersDoNotTakeAllPlaces() async throws {
    try await Self.tested("zotut") { tested in
      for number in 1...20 {
        try await Self.hear([Self.line(try Self.serial(UInt32(number)), "temp", 21)], tested)
      }
      #expect(await tested.engine.devices.count == 4)
      #expect(await tested.engine.strangers.count == 16)
      // A request names one of them nevertheless.
      let last = BluetoothAddress(.serial(try Self.serial(20)))
      _ = try await tested.engine.add(last, DeviceOptionsPatch())
      #expect(await tested.engine.devices.count == 5)
    }
  }

  @Test func whoeverBeginsToSendTheSerialNumberStaysTheSameDevice() async throws {
    try await Self.tested("zotut") { tested in
      try await Self.hear(["zotut,temp,21"], tested)
      try await Self.hear([Self.line(try Self.serial(1), "temp", 22)], tested)
      #expect(await tested.engine.devices.map(\.id.description) == ["zotut"])
      _ = try await tested.frontEnd.event("the value") { $0 == .value("temp", .integer(22)) }
      // Another one with the same letters is another device.
      try await Self.hear([Self.line(try Self.serial(2), "temp", 23)], tested)
      #expect(await tested.engine.devices.count == 2)
    }
  }

  @Test func whoeverNoLongerSendsTheSerialNumberStaysTheSameDevice() async throws {
    try await Self.tested("zotut") { tested in
      try await Self.hear([Self.line(try Self.serial(1), "temp", 21)], tested)
      try await Self.hear(["zotut,temp,22"], tested)
      #expect(await tested.engine.devices.count == 1)
      _ = try await tested.frontEnd.event("the value") { $0 == .value("temp", .integer(22)) }
    }
  }

  @Test func aValueForOneOfTwoWithTheSameLettersIsRefused() async throws {
    try await Self.tested("zotut") { tested in
      for number in 1...2 as ClosedRange<UInt32> {
        try await Self.hear([Self.line(try Self.serial(number), "temp", 21)], tested)
        let address = BluetoothAddress(.serial(try Self.serial(1)))
        let reason = try await tested.engine.refusal(of: address) ?? "none"
        let expected = number == 1 ? "is not enabled" : "have the same five letters"
        #expect(reason.contains(expected), "\(reason)")
      }
    }
  }

  @Test func whatIsBeingSentEndsWhenAnotherGatewayHasTheDevice() async throws {
    try await Self.tested("zotut") { tested in
      try await Self.hear(["zotut,servo,21"], tested)
      let device = try #require(await tested.engine.devices.first)
      let outcomes = Record<Outcome>()
      await tested.engine.send(to: device.address) { outcomes.append($0) }
      await tested.engine.setOwner(.this, of: device.id)
      #expect(outcomes.elements.isEmpty)
      await tested.engine.setOwner(.other(GatewayID(hostName: "attic")), of: device.id)
      #expect(outcomes.elements.map(\.word) == ["failed"])
    }
  }

  @Test func theLettersOfAnEntryAreNotGivenToAnother() async throws {
    try await Self.tested("zotut") { tested in
      #expect(await tested.engine.lettersID("zotut", Engine.address) == nil)
      #expect(await tested.engine.lettersID("zotuv", Engine.address) != nil)
    }
  }

  @Test func aNameThatEndsWithANumberIsAValue() async throws {
    try await Self.tested("zotut") { tested in
      let serial = try Self.serial(1)
      try await Self.hear([Self.line(serial, "player 2", 25), Self.line(serial, "1", 20)], tested)
      _ = try await tested.frontEnd.event("the first value") { $0 == .value("player_2", .integer(25)) }
      _ = try await tested.frontEnd.event("the second value") { $0 == .value("1", .integer(20)) }
    }
  }

  @Test func aNameWithOtherNumbersIsAValueAndNoButton() async throws {
    try await Self.tested("zotut") { tested in
      try await Self.hear(["zotut,a,1"], tested)
      _ = try await tested.frontEnd.event("a press") {
        if case .reading(_, .text("press_start"), _) = $0 { true } else { false }
      }
      try await Self.hear(["zotut,a,500", "zotut,a,501", "zotut,a,1"], tested)
      _ = try await tested.frontEnd.event("the value") { $0 == .value("a", .integer(1)) }
    }
  }

  /// A joystick's program sends the state of its button again and again; another one each press alone.
  @Test func statesOfAButtonAreNoPresses() {
    var buttons = ButtonStates()
    var now = Moment.now
    func news(_ states: String, every milliseconds: Int) -> String {
      String(
        decoding: states.utf8.filter { state in
          now = now + .milliseconds(milliseconds)
          return !buttons.repeats(state, of: 0, at: now)
        }, as: UTF8.self)
    }
    #expect(news("1111", every: 300) == "1111", "it sends presses alone")
    #expect(news("0000011111000002222200", every: 100) == "01020")
    #expect(news("101010", every: 50) == "101010")
    #expect(news("1111", every: 2000) == "1111", "what came between was lost")
  }

  @Test("What is not heard is reported without a Bluetooth adapter", arguments: [true, false])
  func notHeard(isEnabled: Bool) async throws {
    var configuration = Self.entry("zotut")
    (configuration.radio.isEnabled, configuration.radio.ports) = (isEnabled, .paths(["/nonexistent"]))
    let tested = try await Engine(configuration, absentAdapter: 0)
    try await Self.hear(["zotut,temp,21"], tested)
    try await tested.frontEnd.availability(true)
    let description = try #require(await tested.engine.devices.first)
    await tested.engine.silence(description.address)
    let found = await tested.engine.findings
    let expected = isEnabled ? Finding.notHeard("zotut", isRadio: true) : .radioIsOff("zotut")
    #expect(found.contains(expected), "\(found)")
    await tested.end()
  }

  @Test func anOutageOfTheReceiverIsNoSilence() async throws {
    try await Self.tested("zotut") { tested in
      try await Self.hear(["zotut,temp,21"], tested)
      let address = try #require(await tested.engine.devices.first).address
      await tested.engine.hear(address, 10, after: .zero)
      var configuration = Self.entry("zotut")
      (configuration.radio.isEnabled, configuration.radio.ports) = (true, .paths(["/nonexistent"]))
      await tested.engine.configure(configuration)
      #expect(await tested.engine.hear(address, 2, after: .seconds(7200)) == .seconds(90))
    }
  }

  @Test func theProfileIsForRadioAlone() async throws {
    try await Self.tested(nil) { tested in
      var options = DeviceOptionsPatch()
      options.options.profile = Profile.radio.name
      do throws(RequestError) {
        _ = try await tested.engine.add(Engine.address, options)
        Issue.record("it was added")
      } catch {
        #expect(error.reason.contains("only what is heard by radio"))
      }
    }
  }
}

extension DeviceManager {
  /// The device was not heard for as long as it may be silent.
  fileprivate func silence(_ address: BluetoothAddress) {
    registry.byAddress[address]?.session.feedPresence { $0.stop() }
  }

  /// The device is heard every 30 s.
  /// - Returns: how long it is online after that.
  @discardableResult
  fileprivate func hear(_ address: BluetoothAddress, _ times: Int, after pause: Duration) -> Duration? {
    let session = registry.byAddress[address]?.session as? RadioSession
    let start = Moment.now + pause
    for count in 1...times { session?.followRhythm(at: start + .seconds(30 * count)) }
    return session?.limit
  }

  /// Why the device takes no value; nil: it does.
  fileprivate func refusal(of address: BluetoothAddress) throws -> String? {
    let session = try #require(registry.byAddress[address]?.session as? RadioSession)
    do throws(RequestError) {
      _ = try session.command("servo:90", as: "servo", reply: { _ in })
      return nil
    } catch {
      return error.reason
    }
  }

  /// Sends a value, without a receiver.
  fileprivate func send(
    to address: BluetoothAddress, reply: @escaping @LoopActor @Sendable (Outcome) -> Void
  ) {
    context.transmitter.send(
      RadioCommand(target: .init(device: address, value: "servo"), line: [], reply: reply))
  }
}
