import EventLoop
import Glibc
import JSON
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import Configuration
@testable import Gateway

@LoopActor @Suite struct FleetTests {
  private let fleet = FleetUnderTest()

  private static func message(_ version: Int, _ ids: String...) -> [UInt8] {
    let entries = ids.map { #"{"match":{"name":"\#($0)"},"id":"\#($0)"}"# }.joined(separator: ",")
    return Array(#"{"version":\#(version),"devices":[\#(entries)]}"#.utf8)
  }

  private static func file(_ text: String = #"{"fleet":true}"#) throws -> ConfigurationFile {
    let bytes = Array(text.utf8)
    return ConfigurationFile(
      path: "config.json", configuration: try Configuration.parse(bytes).get(), digest: "",
      document: try JSONParser.parse(bytes), warnings: [])
  }

  @Test func theLastGoodOneStaysInForce() throws {
    let file = try Self.file()
    #expect(fleet.ids(file) == [nil] && fleet.status == nil)
    #expect(fleet.take(Self.message(7, "a"), file))
    #expect(fleet.ids(file) == ["a"] && fleet.status == FleetStatus(version: 7))
    #expect(!fleet.take(Self.message(8, "a", "a"), file))
    #expect(fleet.status?.reason?.hasSuffix("; version 7 stays in force") == true)
    #expect(fleet.status?.version == 8 && fleet.ids(file) == ["a"])
    #expect(!fleet.take(Array("{".utf8), file))
    #expect(fleet.ids(file) == ["a"])
    // An earlier version, too.
    #expect(fleet.take(Self.message(6, "b"), file))
    #expect(fleet.ids(file) == ["b"] && fleet.status == FleetStatus(version: 6))
    #expect(fleet.take([], file))
    #expect(fleet.ids(file) == [nil] && fleet.status == nil)
  }

  /// As `scan` and `doctor` use it while no gateway runs.
  @Test func whatIsInForceIsKnownWithoutTheGateway() async throws {
    let folder = try TemporaryFolder()
    let state = StateDatabase(path: folder.path + "/here.db")
    state.section(Fleet.section).put(Fleet.key, Self.message(7, "a"))
    await state.close()
    for (text, hasEntry) in [(#"{"fleet":true}"#, true), ("{}", false)] {
      let file = try Self.file(text)
      let stored = StoredGateway(configuration: file.configuration, id: GatewayID("here")!)
        .withState(of: file, ["STATE_DIRECTORY": folder.path])
      #expect(stored.configuration.devices.contains { $0.id?.description == "a" } == hasEntry)
    }
  }

  @Test func theSameIsNotAppliedTwice() throws {
    let file = try Self.file()
    #expect(fleet.take(Self.message(7, "a"), file))
    #expect(!fleet.take(Self.message(7, "a"), file))
    #expect(!fleet.take(Self.message(7, "a") + Array("\n".utf8), file))
    #expect(fleet.status == FleetStatus(version: 7))
    #expect(!fleet.take(Self.message(7, "b"), file))
    let reason = "this version has another content (give each content its own); version 7 stays in force"
    #expect(fleet.status == FleetStatus(version: 7, reason: reason))
  }

  @Test func aRejectedMessageKeepsItsVersion() throws {
    let file = try Self.file()
    for (text, version) in [
      (#"{"version":9,"devices":[{"match":{"name":"a"},"id":"A B"}]}"#, 9), (#"{"version":9,"x":1}"#, 9),
      (#"{"version":-1}"#, nil), (#"{"version":"9"}"#, nil), (#"{"version":9"#, nil), ("[]", nil),
    ] as [(String, Int?)] {
      #expect(!fleet.take(Array(text.utf8), file))
      #expect(fleet.status?.version == version && fleet.status?.reason != nil, "\(text)")
    }
  }

  @Test func ofManyMessagesTheNewestCounts() throws {
    #expect(fleet.received(Self.message(1, "a")))
    let first = try #require(fleet.next())
    for version in 2...1000 { #expect(!fleet.received(Self.message(version, "a"))) }
    #expect(fleet.decide(first, try Self.file()))
    #expect(fleet.next() == Self.message(1000, "a"))
    #expect(fleet.next() == nil)
  }

  @Test func ofTwoThatArriveAtOnceOneIsDecidedAtATime() throws {
    let file = try Self.file()
    #expect(fleet.received(Self.message(1, "a")))
    #expect(!fleet.received(Self.message(2, "b")))
    let newest = try #require(fleet.next())
    #expect(!fleet.received(Self.message(3, "c")))
    #expect(fleet.decide(newest, file))
    #expect(fleet.ids(file) == ["b"])
    #expect(fleet.next() == Self.message(3, "c"))
  }

  /// One that comes while an empty one is decided is not lost.
  @Test func anEmptyMessageDoesNotEndTheNextOne() throws {
    let file = try Self.file()
    #expect(fleet.take(Self.message(1, "a"), file))
    #expect(fleet.received([]))
    let empty = try #require(fleet.next())
    #expect(!fleet.received(Self.message(1, "a")))
    #expect(fleet.decide(empty, file))
    #expect(fleet.next() == Self.message(1, "a"))
  }

  /// A message that names the profile `x`, and a file with it.
  private static func profiled() throws -> (message: [UInt8], file: ConfigurationFile) {
    let message = #"{"version":7,"devices":[{"match":{"name":"a"},"id":"a","profile":"x"}]}"#
    let profile =
      #"{"properties":{"a":{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8"}}}"#
    return (Array(message.utf8), try file(#"{"fleet":true,"profiles":{"x":\#(profile)}}"#))
  }

  @Test func oneThatDoesNotFitTheFileWaitsUntilItDoes() throws {
    let (message, with) = try Self.profiled()
    #expect(fleet.take(message, with))
    #expect(fleet.ids(try Self.file()) == [nil])
    #expect(fleet.status?.reason?.contains(#"devices[0].profile: there is no profile "x""#) == true)
    #expect(fleet.ids(with) == ["a"] && fleet.status == FleetStatus(version: 7))
  }

  @Test func oneThatHasNeverFitIsInForceOnceItDoes() throws {
    let (message, with) = try Self.profiled()
    #expect(fleet.take(Self.message(6, "b"), try Self.file()))
    #expect(!fleet.take(message, try Self.file()))
    #expect(fleet.ids(try Self.file()) == ["b"])
    #expect(fleet.status?.version == 7)
    #expect(fleet.status?.reason?.hasSuffix("; version 6 stays in force") == true)
    #expect(fleet.ids(with) == ["a"] && fleet.status == FleetStatus(version: 7))
    // A newer one takes its place.
    #expect(fleet.take(Self.message(8, "b"), with))
    #expect(fleet.ids(with) == ["b"] && fleet.status == FleetStatus(version: 8))
  }

  /// One that was read while the gateway began to stop.
  @Test func nothingIsAppliedWhileTheGatewayStops() throws {
    let id = GatewayID("test-fleet-stopping")!
    // Where this user has a state folder.
    defer { if let path = StateFolder.path(of: .crash, id) { unlink(path) } }
    let gateway = Gateway(try Self.file(), id, StateDatabase(path: nil), ServiceManager())
    gateway.stop()
    gateway.decide(Fleet.Message(Self.message(7, "a")))
    #expect(!gateway.configuration.devices.contains { $0.id?.description == "a" })
  }

  @Test func nothingIsKeptWhereItIsNotAllowed() throws {
    #expect(fleet.take(Self.message(7, "a"), try Self.file()))
    #expect(fleet.ids(try Self.file("{}")) == [nil])
    fleet.forget()
    #expect(fleet.ids(try Self.file()) == [nil] && fleet.status == nil)
    #expect(fleet.take(Self.message(7, "a"), try Self.file()))
  }
}

@LoopActor private final class FleetUnderTest {
  private var fleet = Fleet(.inMemory(), isAllowed: true)

  var status: FleetStatus? { fleet.status }
  func received(_ payload: [UInt8]) -> Bool { fleet.received(payload) }
  func next() -> [UInt8]? { fleet.next() }
  func forget() { fleet.forget() }

  func decide(_ payload: [UInt8], _ file: ConfigurationFile) -> Bool {
    fleet.decide(Fleet.Message(payload), file)
  }

  /// A message arrives while none is being decided.
  /// - Returns: whether another one is in force.
  func take(_ payload: [UInt8], _ file: ConfigurationFile) -> Bool {
    let isToBeDecided = received(payload)
    #expect(isToBeDecided)
    guard let payload = next() else { return false }
    let isNew = decide(payload, file)
    #expect(next() == nil)
    return isNew
  }

  /// The ids of the entries.
  func ids(_ file: ConfigurationFile) -> [String?] {
    fleet.configuration(with: file).devices.map { $0.id?.description }
  }
}
