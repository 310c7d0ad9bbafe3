import GATT
import JSON
import Testing

@testable import Configuration

@Suite struct FleetConfigurationTests {
  private static let profile =
    #"{"properties":{"a":{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8"}}}"#
  private static let otherProfile = profile.replacing("uint8", with: "uint16")

  private static func file(_ text: String) throws -> ConfigurationFile {
    let bytes = Array(text.utf8)
    return ConfigurationFile(
      path: "config.json", configuration: try Configuration.parse(bytes).get(), digest: "",
      document: try JSONParser.parse(bytes), warnings: [])
  }

  private static func merged(_ message: String, into text: String) throws -> Configuration {
    try FleetConfiguration.read(Array(message.utf8)).merged(into: try file(text))
  }

  /// The ids of the entries, in their order; `*` where there is none.
  private static func ids(_ message: String, into text: String) throws -> [String] {
    try merged(message, into: text).devices.map { $0.id?.description ?? "*" }
  }

  private static func entry(_ index: Int, _ id: String) -> String {
    #"{"match":{"identifier":"C5:A1:B2:C3:D4:0\#(index)"},"id":"\#(id)"}"#
  }

  @Test func entriesAndProfilesAreAdded() throws {
    let merged = try Self.merged(
      #"{"version":1,"profiles":{"x":\#(Self.profile)},"devices":[{"match":{"name":"a"},"profile":"x"}]}"#,
      into: #"{"devices":[{"match":{"name":"b"}}]}"#)
    #expect(merged.devices.map(\.match.name) == ["b", "a"])
    #expect(merged.devices.map(\.isOfFleet) == [false, true])
    #expect(merged.profile(of: merged.devices[1].options).name == "x")
  }

  @Test func theFileWins() throws {
    let file =
      #"{"profiles":{"x":\#(Self.otherProfile)},"devices":[\#(Self.entry(1, "mine")),{"match":{"name":"a"}}]}"#
    let message = """
      {"version":1,"profiles":{"x":\(Self.profile)},"devices":[\(Self.entry(1, "theirs")),\(Self.entry(2, "mine")),
      {"match":{"name":"a"},"id":"b"},\(Self.entry(3, "new"))]}
      """
    #expect(try Self.ids(message, into: file) == ["new", "mine", "*"])
    #expect(try Self.merged(message, into: file).profiles == (try Self.file(file)).configuration.profiles)
    let fleet = try FleetConfiguration.read(Array(message.utf8))
    let overridden = try fleet.overridden(by: Self.file(file)).map(\.description)
    #expect(overridden == ["profiles.x", "devices[0]", "devices[1]", "devices[2]"])
  }

  @Test func anAddressComesBeforeThePatternsOfTheFile() throws {
    let file = #"{"devices":[{"match":{"name_prefix":"BBC"},"id":"any"}]}"#
    let message =
      #"{"version":1,"devices":[{"match":{"name":"BBC x"},"id":"last"},\#(Self.entry(1, "first"))]}"#
    #expect(try Self.ids(message, into: file) == ["first", "any", "last"])
  }

  @Test func itReplacesTheDefaultEntry() throws {
    #expect(try Self.ids(#"{"version":1,"devices":[\#(Self.entry(1, "a"))]}"#, into: "{}") == ["a"])
    #expect(try Self.ids(#"{"version":1}"#, into: "{}") == ["*"])
    #expect(
      try Self.ids(#"{"version":1,"devices":[\#(Self.entry(1, "a"))]}"#, into: #"{"devices":[]}"#) == ["a"])
  }

  private static let mistakes: [(message: String, error: String)] = [
    ("{", "line 1, column 2: "),
    ("[]", "line 1, column 1: expected an object, found a list"),
    ("{}", "line 1, column 1: version: this is missing (give each content another number)"),
    (#"{"version":-1}"#, "line 1, column 12: version: -1 is below 0"),
    (
      #"{"version":1,"mqtt":{}}"#,
      "line 1, column 14: mqtt: unknown key (it can only be set in the config.json of each gateway)"
    ),
    (
      #"{"version":1,"devices":[{"match":{"name":"a"},"period":0}]}"#,
      "line 1, column 56: devices[0].period: 0 is below 20"
    ),
    (
      #"{"version":1,"devices":[\#(entry(1, "a")),\#(entry(2, "a"))]}"#,
      "devices[1].id: devices[0] already has the id a"
    ),
    (
      #"{"version":1,"devices":[{"match":{"name":"a"},"passkey":123456}]}"#,
      "devices[0].passkey: it is secret, and this message is not (set it in the config.json of the gateway)"
    ),
    (
      #"{"version":1,"devices":[{"match":{"service":"fcd2"},"profile":"bthome","key_file":"k"}]}"#,
      "devices[0].key_file: it names a file of one gateway (set it in the config.json of the gateway)"
    ),
    (
      #"{"version":1,"devices":[{"match":{"name":"a"},"profile":"x"}]}"#,
      "devices[0].profile: there is no profile \"x\""
    ),
    (
      #"{"version":1,"devices":[{"matches":{}},{"matches":{}}]}"#,
      "devices[0].matches: unknown key (did you mean match?) (and 2 more)"
    ),
  ]

  @Test(arguments: mistakes)
  func mistakesAreFoundWithTheirPlace(message: String, error: String) throws {
    let found = try #require(Self.error(message))
    #expect(found.contains(error), "\(found)")
  }

  @Test func itsSizeIsLimited() throws {
    let large = #"{"version":1}"# + String(repeating: " ", count: 512 << 10)
    #expect(Self.error(large) == "524301 bytes, the maximum is 524288")
  }

  @Test func numbersAreLimited() {
    func entries(_ count: Int, _ match: (Int) -> String) -> String {
      let list = (0..<count).map { #"{"match":{\#(match($0))}}"# }.joined(separator: ",")
      return #"{"version":1,"devices":[\#(list)]}"#
    }
    func address(_ number: Int) -> String {
      #""identifier":"\#(BluetoothAddress(truncating: 0xC5A1_0000_0000 + UInt64(number)))""#
    }
    func name(_ number: Int) -> String { #""name":"\#(number)""# }
    #expect(Self.error(entries(4096, address)) == nil)
    #expect(Self.error(entries(4097, address)) == "4097 entries, the maximum is 4096")
    #expect(Self.error(entries(256, name)) == nil)
    #expect(Self.error(entries(257, name)) == "257 entries without an address, the maximum is 256")
    let numbers = Array(repeating: "1", count: 60_000).joined(separator: ",")
    #expect(
      Self.error(#"{"version":1,"devices":[\#(numbers)]}"#)?.contains("there are too many values") == true)
  }

  /// Nil: the message is valid.
  private static func error(_ message: String) -> String? {
    do {
      _ = try merged(message, into: "{}")
      return nil
    } catch {
      return (error as? ConfigurationErrors)?.summary ?? "\(error)"
    }
  }
}
