import Configuration
import GATT
import TestSupport
import Testing

@testable import Devices

/// An entry keeps what it has matched by its name, against a simulated bluetoothd.
@Suite struct NameTests {
  typealias Engine = EngineUnderTest

  private static let kitchen = "kitchen"
  private static let short = "BBC micro:bit"

  private static func configuration(_ entries: String) throws -> Configuration {
    try Configuration.parse(Array(#"{"devices":[\#(entries)]}"#.utf8)).get()
  }

  /// As a micro:bit that is paired does.
  @Test(arguments: ["BBC micro:bit", "Something else"])
  func entryKeepsADeviceWhoseNameChanges(name: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let configuration = try Self.configuration(
      #"{"match":{"name":"BBC micro:bit [zugev]"},"id":"kitchen"},{"match":{"name_prefix":"BBC micro:bit"}}"#)
    var tested = try await Engine(configuration, state: path)
    try await tested.frontEnd.availability(true)
    await tested.rename(to: name)
    try await tested.frontEnd.change("the name") {
      $0.bluetoothName == name && $0.id.description == Self.kitchen
    }
    #expect(await tested.engine.devices.map(\.id.description) == [Self.kitchen])
    await tested.hangUp()
    try await tested.frontEnd.availability(false)
    await tested.end()

    tested = try await Engine(configuration, state: path) { $0.names = [0: name] }
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.devices.map(\.id.description) == [Self.kitchen])
    await tested.end()
    #expect(try Engine.stored(in: path).first?.matchedName == "BBC micro:bit [zugev]")

    tested = try await Engine(configuration, state: path) { $0.names = [0: name] }
    try await tested.frontEnd.availability(true)
    #expect(await tested.engine.devices.map(\.id.description) == [Self.kitchen], "as often as it is started")
    // Undone by a request, after which the name that it has now counts.
    _ = try await tested.engine.remove(DeviceID(Self.kitchen))
    #expect(try await tested.engine.add(Engine.address, DeviceOptionsPatch()).id == Engine.id)
    await tested.end()
  }

  /// Before its first link is complete.
  @Test func entryKeepsADeviceThatIsRenamedWhileItConnects() async throws {
    let entry = #"{"match":{"name":"BBC micro:bit [zugev]"},"id":"kitchen"}"#
    let tested = try await Engine(try Self.configuration(entry)) { $0.timing.connect = .milliseconds(300) }
    try await tested.frontEnd.change("connecting") { $0.session == .connecting }
    await tested.rename(to: Self.short)
    try await tested.frontEnd.change("online") {
      $0.isOnline && $0.id.description == Self.kitchen && $0.bluetoothName == Self.short
    }
    // Undone by a change of the entry.
    await tested.engine.configure(
      try Self.configuration(#"{"match":{"name":"BBC micro:bit [zzzzz]"},"id":"kitchen"}"#))
    try await tested.frontEnd.detached(.removed)
    await tested.end()
  }

  /// The first that is received of it may be the short one.
  @Test func fullNameDecidesWhenItIsReceived() async throws {
    let entries =
      #"{"match":{"name":"BBC micro:bit [zugev]"},"id":"kitchen"},{"match":{"name_prefix":"BBC"},"id":"any"}"#
    let tested = try await Engine(try Self.configuration(entries)) { $0.names = [0: Self.short] }
    try await tested.frontEnd.availability(true)
    await tested.rename(to: "BBC micro:bit [zugev]")
    try await tested.frontEnd.change("kitchen") { $0.id.description == Self.kitchen }
    await tested.rename(to: Self.short)
    try await tested.frontEnd.change("the name") {
      $0.bluetoothName == Self.short && $0.id.description == Self.kitchen
    }
    await tested.end()
  }
}
