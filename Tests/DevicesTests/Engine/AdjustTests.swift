import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices

/// Adjusted values, against a simulated bluetoothd.
@Suite struct AdjustTests {
  typealias Engine = EngineUnderTest

  private static func patch(_ text: String) throws -> DeviceOptionsPatch {
    var errors: [ConfigurationError] = []
    let patch = try DeviceOptionsPatch.read(JSONParser.parse(Array(text.utf8)), nil, .root, &errors)
    return try #require(errors.isEmpty ? patch : nil)
  }

  private static func limited(_ entry: String = "") throws -> Configuration {
    let text =
      #"{"devices":[{"match":{"identifier":"\#(Engine.address)"},"properties":["temperature","period"]\#(entry)}]}"#
    return try Configuration.parse(Array(text.utf8)).get()
  }

  /// The link is not made again.
  @Test func offsetChangesWhileConnected() async throws {
    let tested = try await Engine(Self.limited(#","adjust":{"temperature":{"offset":-2}}"#))
    try await tested.frontEnd.availability(true)
    await tested.measure(21)
    try await tested.frontEnd.reading(Engine.temperature, 19)
    let before = tested.frontEnd.events.count
    let changed = try await tested.engine.change(
      Engine.id, Self.patch(#"{"adjust":{"temperature":{"offset":-4.5}}}"#))
    #expect(changed?.profile.properties[0].offset == -4.5)
    // The topic has no value of the offset before.
    try await tested.frontEnd.reading(Engine.temperature, .number(16.5), sequence: .some(nil), from: before)
    await tested.measure(22)
    try await tested.frontEnd.reading(Engine.temperature, .number(17.5), from: before)
    #expect(try await tested.get(Engine.temperature).final() == .read(actual: .number(17.5)))
    _ = try await tested.engine.change(Engine.id, Self.patch(#"{"adjust":null}"#))
    try await tested.frontEnd.reading(Engine.temperature, 20, sequence: .some(nil), from: before)
    let all = tested.frontEnd.events.elements[before...]
    #expect(all.allSatisfy { if case .changed(.description, _) = $0 { true } else { $0.isReading } })
    await tested.end()
  }

  /// Not a text, and not a value whose offset stays the same.
  @Test func offsetOfAValueOfAProgramChanges() async throws {
    let tested = try await Engine(Configuration()) { $0.services = [.uart] }
    try await tested.frontEnd.availability(true)
    await tested.notify(.microbitUART(2), Hexadecimal.text(Array("soil:40\nair:7\nmood:good\n".utf8)))
    try await tested.frontEnd.event("the last value") { $0 == .value("mood", .text("good")) }
    let before = tested.frontEnd.events.count
    _ = try await tested.engine.change(
      Engine.id, Self.patch(#"{"values":{"soil":{"offset":-2.5},"mood":{"name":"Mood"}}}"#))
    try await tested.frontEnd.event(from: before, "corrected") { $0 == .value("soil", .number(37.5)) }
    _ = try await tested.engine.change(Engine.id, Self.patch(#"{"values":{"soil":null}}"#))
    try await tested.frontEnd.event(from: before, "as it was") { $0 == .value("soil", 40) }
    let values = tested.frontEnd.events.elements[before...].filter {
      if case .value = $0 { true } else { false }
    }
    #expect(values == [.value("soil", .number(37.5)), .value("soil", 40)])
    await tested.end()
  }

  /// Requests add members to those of earlier ones.
  @Test func requestsDescribeABoundedNumberOfValues() async throws {
    let tested = try await Engine(Self.limited())
    try await tested.frontEnd.availability(true)
    func describe(_ names: ClosedRange<Int>, as value: String = #"{"unit":"m"}"#) async throws {
      let members = names.map { "\"v\($0)\":\(value)" }.joined(separator: ",")
      _ = try await tested.engine.change(Engine.id, Self.patch(#"{"values":{\#(members)}}"#))
    }
    try await describe(1...40)
    try await describe(41...64)
    do {
      try await describe(65...65)
      Issue.record("accepted")
    } catch {
      #expect("\(error)".contains("options.values: requests set at most 64 of them"), "\(error)")
    }
    _ = try await tested.engine.change(Engine.id, Self.patch(#"{"name":"Hall"}"#))
    try await describe(1...2, as: "null")
    try await describe(65...66)
    await tested.end()
  }

  @Test func badAdjustmentChangesNothing() async throws {
    let tested = try await Engine(Self.limited())
    try await tested.frontEnd.availability(true)
    for (text, reason) in [
      (
        #"{"adjust":{"period":{"offset":1}}}"#,
        "options.adjust.period.offset: period can be set: it has no offset"
      ),
      (
        #"{"adjust":{"temperature":{"offset":-1},"wings":{"unit":"m"}}}"#,
        "options.adjust.wings: the profile microbit has no property \"wings\""
      ),
    ] {
      do throws(RequestError) {
        let patch = try? Self.patch(text)
        _ = try await tested.engine.change(Engine.id, patch ?? DeviceOptionsPatch())
        Issue.record("accepted: \(text)")
      } catch {
        #expect(error.code == .invalid && error.reason.hasPrefix(reason))
      }
    }
    #expect(await tested.engine.device(Engine.id)?.settings.adjustJSON == [:])
    await tested.end()
  }
}

extension RecordingFrontEnd.Event {
  fileprivate var isReading: Bool { if case .reading = self { true } else { false } }
}
