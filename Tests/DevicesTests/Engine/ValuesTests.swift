import Configuration
import EventLoop
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices

/// The values that a program names itself, against a simulated bluetoothd.
@Suite struct ValuesTests {
  typealias Engine = EngineUnderTest

  private static func start(_ options: String = "", state path: String? = nil) async throws -> Engine {
    let text = #"{"devices":[{"match":{"identifier":"\#(Engine.address)"}\#(options)}]}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    let tested = try await Engine(configuration, state: path) { $0.services = [.uart] }
    try await tested.frontEnd.availability(true)
    return tested
  }

  /// One notification for each text, all at once.
  @LoopActor private static func send(_ texts: String..., by tested: Engine) async {
    for text in texts { await tested.notify(.microbitUART(2), Hexadecimal.text(Array(text.utf8))) }
  }

  private static func value(_ key: String, _ value: Value, by tested: Engine, from start: Int = 0)
    async throws
  {
    try await tested.frontEnd.event(from: start, "\(key) \(value)") { $0 == .value(key, value) }
  }

  @Test func linesAreValuesAlsoAfterARestart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    var tested = try await Self.start(#","values":{"soil":{"offset":-2,"unit":"%"}}"#, state: path)
    await Self.send("temp_C:21\r\n", by: tested)
    try await Self.value("temp", 21, by: tested)
    await Self.send("temp_C:22\r\nsoil:", "40.1\nhello\n", by: tested)
    try await Self.value("soil", .number(38.1), by: tested)
    try await tested.frontEnd.change("described") { device in
      device.namedValues.map(\.property.name) == ["values/soil", "values/temp"]
        && device.namedValues.map(\.isConfirmed) == [true, true]
        && device.namedValues.map(\.property.unit) == ["%", "°C"] && device.hasLines
    }
    try await tested.frontEnd.event("the last line") {
      if case .reading(_, .text("hello"), _) = $0 { true } else { false }
    }
    let lines = tested.frontEnd.events.elements.filter { if case .reading = $0 { true } else { false } }
    #expect(lines.count == 4, "each line is a reading of uart_rx as well")
    await tested.end()
    tested = try await Self.start(state: path)
    let known = await tested.engine.device(Engine.id)?.namedValues
    #expect(known?.map(\.written) == ["soil", "temp_C"])
    try await tested.engine.removeValue("soil", of: Engine.id)
    await #expect(throws: RequestError.self) { try await tested.engine.removeValue("soil", of: Engine.id) }
    #expect(await tested.engine.device(Engine.id)?.namedValues.map(\.key) == ["temp"])
    await tested.end()
    #expect(try Engine.stored(in: path).first?.valueTable.keys.sorted() == ["temp"])
  }

  /// Front ends begin anew: they get what has come before, as it may not come again soon.
  @Test func otherPropertiesLeaveWhatIsKnown() async throws {
    let tested = try await Self.start()
    await Self.send("soil:42\n", by: tested)
    try await Self.value("soil", 42, by: tested)
    await tested.vanish()
    try await tested.frontEnd.availability(false)
    let known = try #require(await tested.engine.device(Engine.id))
    #expect(known.rssi != nil && known.offlineSince != nil)
    let before = tested.frontEnd.events.count
    let now = try await tested.engine.change(Engine.id, ["exclude": ["button_a"]])
    try await Self.value("soil", 42, by: tested, from: before)
    #expect(now?.rssi == known.rssi && now?.offlineSince != nil && now?.isOnline == false)
    await tested.end()
  }

  @Test func lineThatIsTooLongIsCutAndCountedOnce() async throws {
    let tested = try await Self.start()
    await Self.send("a\n", by: tested)
    let part = String(repeating: "x", count: 500)
    await Self.send(part, part, part, part, part, "\nend\n", by: tested)
    try await tested.frontEnd.event("the last line") {
      if case .reading(_, .text("end"), _) = $0 { true } else { false }
    }
    #expect(await tested.engine.counters.malformed == 1)
    await tested.end()
  }

  @Test func entryCanSwitchValuesOff() async throws {
    let tested = try await Self.start(#","values":false"#)
    await Self.send("a:1\n", by: tested)
    try await tested.frontEnd.event("the line") {
      if case .reading(_, .text("a:1"), _) = $0 { true } else { false }
    }
    #expect(await tested.engine.device(Engine.id)?.namedValues == [])
    await tested.end()
  }

  /// A V1 drops what is beyond 20 bytes: what is left of the line must not be a value.
  @Test func lineThatWasCutIsNoValue() async throws {
    let tested = try await Self.start()
    await Self.send("soil_moisture_12:345", by: tested)
    try await tested.frontEnd.event("the line") {
      if case .reading(_, .text("soil_moisture_12:345"), _) = $0 { true } else { false }
    }
    await Self.send("a:1", by: tested)
    try await Self.value("a", 1, by: tested)
    #expect(await tested.engine.device(Engine.id)?.namedValues.map(\.key) == ["a"])
    #expect(await tested.engine.counters.malformed == 1)
    await tested.end()
  }

  /// What has no end yet is a reading of a device that is still online.
  @Test func theEndOfALineComesBeforeTheDeviceIsOffline() async throws {
    let tested = try await Self.start()
    // Before it is sent: on a machine that stands still for half a second it is a reading before the device is disabled.
    let mark = tested.frontEnd.events.count
    await Self.send("a:1\nhello", by: tested)
    try await Self.value("a", 1, by: tested)
    var patch = DeviceOptionsPatch()
    patch.options.isEnabled = false
    _ = try await tested.engine.change(Engine.id, patch)
    try await tested.frontEnd.availability(false, from: mark)
    let events = tested.frontEnd.events.elements[mark...]
    let line = events.firstIndex { if case .reading(_, .text("hello"), _) = $0 { true } else { false } }
    let offline = events.firstIndex {
      if case .changed(_, let device) = $0 { !device.isOnline } else { false }
    }
    let (first, second) = (try #require(line), try #require(offline))
    #expect(first < second)
    await tested.end()
  }

  @Test func otherNumberOfColumnsIsCounted() async throws {
    let tested = try await Self.start(#","values":{"columns":["seq","temp"],"a":{"columns":["x","y"]}}"#)
    await Self.send("1,20\n2,20,5\nseq,temp\na:1,2,3\n3\n4,21\n", by: tested)
    try await Self.value("temp", 21, by: tested)
    #expect(await tested.engine.counters.malformed == 2)
    await tested.end()
  }

  /// The sensor warms up; later it fails for a moment.
  @Test func textsAreNoValuesOfANumber() async throws {
    let tested = try await Self.start()
    await Self.send("t:--\nt:--\nt:20 C\nt:21 C\nt:--\n\u{1}\na:\u{9B}2J\nt:22 C\n", by: tested)
    try await Self.value("t", 22, by: tested)
    let values = tested.frontEnd.events.elements.filter { if case .value = $0 { true } else { false } }
    #expect(
      values == [
        .value("t", .text("--")), .value("t", .text("--")), .value("t", 20), .value("t", 21), .value("t", 22),
      ])
    try await tested.frontEnd.change("described") { $0.namedValues.first?.property.unit == "°C" }
    #expect(await tested.engine.counters.malformed == 3)
    await tested.end()
  }

  /// A command that stayed in memory would be one more for each change of a slider.
  @Test func nothingIsKeptOfACommandThatEnded() async throws {
    final class Reply: Sendable {
      let gone: Record<Bool>
      init(_ gone: Record<Bool>) { self.gone = gone }
      deinit { gone.append(true) }
    }
    let tested = try await Self.start()
    let (outcomes, gone) = (Record<Outcome>(), Record<Bool>())
    var reply: Reply? = Reply(gone)
    try await tested.engine.execute(Command(Engine.id, "values/servo", 90)) { [reply] result in
      withExtendedLifetime(reply) { outcomes.append(result.outcome) }
    }
    reply = nil
    #expect(try await outcomes.final() == .sent)
    try await eventually("the command is gone") { !gone.elements.isEmpty }
    await tested.end()
  }

  /// - Parameter line: what the program sends at once.
  @LoopActor private func set(
    _ value: JSONValue, _ name: String = "values/servo", of tested: Engine, sendingBack line: String? = nil
  ) async -> Record<Outcome> {
    let outcomes = Record<Outcome>()
    do throws(RequestError) {
      try tested.engine.execute(Command(Engine.id, name, value)) { outcomes.append($0.outcome) }
    } catch {
      outcomes.append(.rejected(reason: error.reason))
    }
    if let line { await Self.send(line, by: tested) }
    return outcomes
  }

  @Test func programConfirmsAValueByItsEcho() async throws {
    let tested = try await Self.start()
    #expect(try await set(90, of: tested).final() == .sent)
    let outcomes = await set("45.0", of: tested, sendingBack: "other:45\nservo:45\n")
    #expect(try await outcomes.final() == .applied(actual: .number(45)))
    // Observers are told of the values alone, not of the lines that they are sent in.
    let words = tested.frontEnd.outcomes.elements.compactMap { $0?.word }
    #expect(words.filter { $0 != "pending" } == ["sent", "applied"])
    let text = await set("left", "values/side", of: tested, sendingBack: "side:left\n")
    #expect(try await text.final() == .applied(actual: .text("left")))
    for (name, value) in [
      ("values/servo", ""), ("values/servo", "a:b"), ("values/servo", "a\nb"), ("values/Servo", "1"),
      ("values/", "1"), ("values/servo", .array([])),
    ] as [(String, JSONValue)] {
      #expect(try await set(value, name, of: tested).final().word == "rejected")
    }
    #expect(
      try await set(#"{"value":1,"value":2}"#, of: tested).final()
        == .rejected(
          reason: #"the payload is not a JSON object: line 1, column 12: duplicate key "value""#))
    for word in ["unavailable", "None", "NaN", "Infinity", .bool(true)] as [JSONValue] {
      let reason = "\(Excerpt(word.payload)) is not a number"
      #expect(try await set(word, of: tested).final() == .rejected(reason: reason))
    }
    // It is no time, as it is known as a number.
    await Self.send("player 2:1\n", by: tested)
    try await Self.value("player_2", 1, by: tested)
    let player = await set(25, "values/player_2", of: tested, sendingBack: "player 2:25\n")
    #expect(try await player.final() == .applied(actual: .integer(25)))
    // It waits to be sent back, or is still being written.
    let unanswered = await set(1, of: tested)
    await tested.end()
    #expect(unanswered.elements.count == 1 && ["sent", "timeout"].contains(unanswered.elements[0].word))
  }
}
