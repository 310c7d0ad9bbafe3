import GATT
import JSON
import TestSupport
import Testing

@testable import Configuration

/// The shipped profiles of devices that are only heard, with what their makers give as examples.
@Suite struct HeardProfileTests {
  private static func values(_ name: String, _ hex: String) throws -> JSONValue {
    let file = try ProfilesDirectory.read(repositoryPath("deploy/profiles/\(name).json"))
    return try values(#require(file.profiles.first), hex)
  }

  private static func values(_ profile: Profile, _ hex: String) throws -> JSONValue {
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
      #"{"temperature":24.3,"humidity":53.49,"pressure":100044,"acceleration_x":0.004,"acceleration_y":-0.004,"acceleration_z":1.036,"voltage":2.977,"movements":66}"#
    ),
    (
      "057fffffFefffe7fff7fff7fffffdefefffecbb8334c884f",
      #"{"temperature":163.835,"humidity":163.835,"pressure":115534,"acceleration_x":32.767,"acceleration_y":32.767,"acceleration_z":32.767,"voltage":3.646,"movements":254}"#
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
        == Self.parse(#"{"uuid":"\#(uuid)","major":258,"minor":65534,"power":-59}"#))
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

  private static let contact = """
    "battery":{"source":{"service_data":"fd3d","prefix":"64","at":2},"type":"uint8","bits":[0,7]},
    "motion":{"source":{"service_data":"fd3d","prefix":"64","at":1},"type":"bool","bit":6},
    "light":{"source":{"service_data":"fd3d","prefix":"64","at":3},"type":"bool","bit":0},
    "open":{"source":{"service_data":"fd3d","prefix":"64","at":3},"type":"bool","bit":1},
    "left_open":{"source":{"service_data":"fd3d","prefix":"64","at":3},"type":"bool","bit":2},
    "presses":{"source":{"service_data":"fd3d","prefix":"64","at":8},"type":"uint8","bits":[0,4]}
    """
  private static let meter = """
    "battery":{"source":{"service_data":"fd3d","prefix":"54","at":2},"type":"uint8","bits":[0,7]},
    "humidity":{"source":{"service_data":"fd3d","prefix":"54","at":5},"type":"uint8","bits":[0,7]},
    "fahrenheit":{"source":{"service_data":"fd3d","prefix":"54","at":5},"type":"bool","bit":7}
    """
  private static let tank = """
    "voltage":{"source":{"manufacturer_data":89,"length":10,"at":1},"type":"uint8","bits":[0,7],"scale":0.03125},
    "temperature":{"source":{"manufacturer_data":89,"length":10,"at":2},"type":"uint8","bits":[0,7],"offset":-40},
    "button":{"source":{"manufacturer_data":89,"length":10,"at":2},"type":"bool","bit":7},
    "level":{"source":{"manufacturer_data":89,"length":10,"at":3},"type":"uint16","bits":[0,14]},
    "quality":{"source":{"manufacturer_data":89,"length":10,"at":3},"type":"uint16","bits":[14,2]}
    """
  private static let reed = """
    "open":{"source":{"service_data":"181a","length":15,"at":14},"type":"bool","bit":0,"inverted":true},
    "output":{"source":{"service_data":"181a","length":15,"at":14},"type":"bool","bit":1}
    """

  private static let beacon = """
    "beacon":{"source":{"manufacturer_data":"0x004c","prefix":"0215","length":23},"fields":[
      {"name":"uuid","type":"bytes","size":16},{"name":"major","type":"uint16","endian":"big"},
      {"name":"minor","type":"uint16","endian":"big"},{"name":"power","type":"int8"}]}
    """

  /// What SwitchBot's sensors, Mopeka's tank sensors and thermometers with the firmware of pvvx have sent, and an iBeacon.
  @Test(arguments: [
    (
      contact, "644064050075" + "00f812",
      #"{"battery":100,"motion":true,"light":true,"open":false,"left_open":true,"presses":2}"#
    ),
    (meter, "5400e4069835", #"{"battery":100,"humidity":53,"fahrenheit":false}"#),
    (
      tank, "087043b6c3e0f509fae3",
      #"{"voltage":3.5,"temperature":27,"button":false,"level":950,"quality":3}"#
    ),
    (
      tank, "08f24600c0e0f509f0d8",
      #"{"voltage":3.5625,"temperature":30,"button":false,"level":0,"quality":3}"#
    ),
    (
      tank, "0c60383c832aea8c31f8",
      #"{"voltage":3.0,"temperature":16,"button":false,"level":828,"quality":2}"#
    ),
    (
      reed, "f4830238c1a4" + "ca09" + "bf13" + "f80b" + "5f" + "19" + "05", #"{"open":false,"output":false}"#
    ),
    (
      beacon, "0215e2c56db5dffb48d2b060d0f5a71096e0" + "00010203c5",
      #"{"beacon":{"uuid":"e2c56db5dffb48d2b060d0f5a71096e0","major":1,"minor":515,"power":-59}}"#
    ),
  ])
  func partsOfABeacon(properties: String, hex: String, values: String) throws {
    let text = #"{"profiles":{"p":{"properties":{\#(properties)}}}}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    #expect(try Self.values(#require(configuration.profiles.first), hex) == Self.parse(values))
    #expect(try Configuration.parse(configuration.json.bytes).get() == configuration)
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
