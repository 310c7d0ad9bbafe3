import GATT
import JSON
import TestSupport
import Testing

@testable import Configuration

/// The shipped profiles of devices that are only heard, with what their makers give as examples.
@Suite struct HeardProfileTests {
  private static func values(_ name: String, _ hex: String) throws -> JSONValue {
    let profile = try #require(
      try ProfilesDirectory.read(repositoryPath("deploy/profiles/\(name).json")).profiles.first)
    let data = try #require(Hexadecimal.bytes(hex))
    var members: [String: JSONValue] = [:]
    for property in profile.properties {
      guard let bytes = property.source?.value(in: data, width: property.codec.width),
        let value = try? property.codec.decode(bytes)
      else { continue }
      members[property.name] = property.codec.json(value)
    }
    return .object(members)
  }

  /// Whatever the order of its members.
  private static func parse(_ text: String) throws -> JSONValue {
    guard case .object(let object) = try JSONParser.parse(Array(text.utf8)) else {
      throw Failure("no object")
    }
    return .object(Dictionary(uniqueKeysWithValues: object.members.map { ($0.name, $0.value) }))
  }

  /// The test vectors of docs.ruuvi.com, data format 5.
  @Test(arguments: [
    (
      "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f",
      #"{"temperature":24.3,"humidity":53.49,"pressure":100044,"acceleration_x":0.004,"acceleration_y":-0.004,"acceleration_z":1.036,"voltage":2.9776875,"movements":66}"#
    ),
    (
      "057fffffFefffe7fff7fff7fffffdefefffecbb8334c884f",
      #"{"temperature":163.835,"humidity":163.835,"pressure":115534,"acceleration_x":32.767,"acceleration_y":32.767,"acceleration_z":32.767,"voltage":3.6469375,"movements":254}"#
    ),
    (
      "058001000000008001800180010000000000cbb8334c884f",
      #"{"temperature":-163.835,"humidity":0.0,"pressure":50000,"acceleration_x":-32.767,"acceleration_y":-32.767,"acceleration_z":-32.767,"voltage":1.6,"movements":0}"#
    ),
    (
      "058000ffffffff800080008000ffffffffffffffffffffff",
      #"{"temperature":null,"humidity":null,"pressure":null,"acceleration_x":null,"acceleration_y":null,"acceleration_z":null,"voltage":null,"movements":null}"#
    ),
  ])
  func ruuviTag(hex: String, values: String) throws {
    #expect(try Self.values("ruuvitag", hex) == Self.parse(values))
  }

  /// The layout of Apple's "Proximity Beacon Specification"; some beacons send a byte more.
  @Test(arguments: ["", "64"])
  func iBeacon(more: String) throws {
    let uuid = "f7826da64fa24e988024bc5b71e0893e"
    #expect(
      try Self.values("ibeacon", "0215" + uuid + "0102" + "fffe" + "c5" + more)
        == Self.parse(#"{"major":258,"minor":65534,"power":-59}"#))
    // What iPhones send all the time.
    #expect(try Self.values("ibeacon", "10051b1c6a2d3e") == [:])
  }

  @Test func otherDataOfRuuviIsNotMeant() throws {
    #expect(try Self.values("ruuvitag", "03291a1ece1efc18f94202ca0b53") == [:])
  }

  /// Three formats on one UUID, which differ in their lengths alone; the one of 11 bytes is encrypted.
  @Test func thermometersOfXiaomi() throws {
    let atc = "a4c1380283f4" + "00a2" + "2f" + "5f" + "0bf8" + "19"
    let pvvx = "f4830238c1a4" + "ca09" + "bf13" + "f80b" + "5f" + "19" + "0f"
    let encrypted = "bd9d47ec49ff2f56ac6a8c"
    #expect(
      try Self.values("atc_thermometer", atc)
        == Self.parse(#"{"temperature":16.2,"humidity":47,"battery":95,"voltage":3.064}"#))
    #expect(
      try Self.values("pvvx_thermometer", pvvx)
        == Self.parse(#"{"temperature":25.06,"humidity":50.55,"battery":95,"voltage":3.064}"#))
    #expect(
      try Self.values("atc_thermometer", "a4c138690cff0127" + "28570ba8e2")
        == Self.parse(#"{"temperature":29.5,"humidity":40,"battery":87,"voltage":2.984}"#))
    for (profile, hex) in [("atc_thermometer", pvvx), ("pvvx_thermometer", atc)] {
      #expect(try Self.values(profile, hex) == [:])
      #expect(try Self.values(profile, encrypted) == [:])
    }
    // A damaged frame.
    #expect(
      try Self.values("atc_thermometer", "a4c1380283f4" + "7fff" + "ff" + "5f" + "0bf8" + "19")["temperature"]
        == nil)
  }

  /// The example of github.com/google/eddystone, and a beacon that measures nothing.
  @Test func eddystoneTLM() throws {
    #expect(
      try Self.values("eddystone", "2000" + "0bb8" + "1580" + "00000003" + "00000258")
        == Self.parse(#"{"battery":3.0,"temperature":21.5,"uptime":60.0}"#))
    let without = try Self.values("eddystone", "2000" + "0000" + "8000" + "00000003" + "00000258")
    #expect(without["battery"] == .null && without["temperature"] == .null)
  }
}
