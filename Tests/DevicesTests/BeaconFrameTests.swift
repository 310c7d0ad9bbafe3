import Configuration
import EventLoop
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices

/// What sensors and remotes really send in BTHome: `Tests/Field/beacons.tsv`.
@Suite struct BeaconFrameTests {
  static let address = BluetoothAddress("54:48:E6:8F:80:A5")
  static let key = Hexadecimal.bytes("231d39c1d7cc1ab1aee224cd096db932")

  /// What these frames have besides.
  private static let more: [String: JSONValue] = [
    "4400f90520000d2000445a0044dc0046005e606d": ["wet": .bool(false)],
    "40015d624099dfff": ["speed": .number(-2.123456)],
    "40015061ac0d6402": ["rotational_speed": .integer(3500), "light_level": .integer(2)],
    "40000101643c0103": ["dimmer": ["event_type": "rotate_left", "steps": .integer(3)]],
  ]

  private static func lines() throws -> [(hex: String, expected: JSONValue)] {
    let text = String(decoding: try shipped("Tests/Field/beacons.tsv"), as: UTF8.self)
    return try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let columns = line.split(separator: "\t")
      return (String(columns[0]), try JSONParser.parse(Array(columns[1].utf8)))
    }
  }

  /// All values of a frame, by property.
  static func values(_ hex: String, key: [UInt8]? = nil) throws -> JSONValue {
    let data = try #require(Hexadecimal.bytes(hex))
    var reader = ObjectReader(counter: nil)
    let plain = try reader.read(data, key: key, from: try #require(address))
    let names = Set(try BTHome.Frame(plain).names)
    var members: [String: JSONValue] = [:]
    for property in Profile.bthome.limited(to: names, isAutomatic: true).properties {
      guard let value = try? property.codec.decode(plain) else { continue }
      let json = property.codec.json(value)
      members[property.name] =
        property.kind == .event && property.codec.fields == nil ? ["event": json] : json
    }
    return .object(members)
  }

  @Test func eachFrameHasTheValuesOfItsFile() throws {
    let lines = try Self.lines()
    #expect(lines.count > 10)
    for (hex, expected) in lines {
      let isEncrypted = hex.hasPrefix("41")
      let found = try Self.values(hex, key: isEncrypted ? Self.key : nil)
      let wanted = expected.merging(Self.more[hex] ?? [:])
      // Numbers by their value: 0 and 0.0 are alike.
      #expect(Self.flat(found) == Self.flat(wanted), "\(hex)")
    }
  }

  private static func flat(_ json: JSONValue) -> [String: String] {
    guard case .object(let object) = json else { return [:] }
    return Dictionary(
      uniqueKeysWithValues: object.members.map { member in
        let number: Double? =
          switch member.value {
          case .integer(let integer): Double(integer)
          case .number(let number): number
          case .null, .bool, .string, .array, .object: nil
          }
        return (member.name, number.map { "\($0)" } ?? String(decoding: member.value.bytes, as: UTF8.self))
      })
  }

  // MARK: Encryption

  private static func encrypted(_ counter: UInt8) -> [UInt8] {
    // Made by Python's cryptography: temperature 25.06, humidity 50.55, the counter in its lowest byte.
    Hexadecimal.bytes(frames[counter] ?? "") ?? []
  }

  private static let frames: [UInt8: String] = [
    3: "415bd7cf8576c303000000b91844f9",
    150: "411b0fe88f951596000000b528551d",
    151: "418097102cbfd29700000016ce936c",
    200: "41edc69293cfadc8000000dc5ab5f1",
  ]

  @Test func theCounterDoesNotGoBack() throws {
    let address = try #require(Self.address)
    var reader = ObjectReader(counter: nil)
    for counter: UInt8 in [150, 151, 151, 200] {
      _ = try reader.read(Self.encrypted(counter), key: Self.key, from: address)
      #expect(reader.counter == Int(counter))
    }
    #expect(throws: BTHome.Obstacle.repeated) {
      try reader.read(Self.encrypted(151), key: Self.key, from: address)
    }
    // After a new battery.
    _ = try reader.read(Self.encrypted(3), key: Self.key, from: address)
    var later = ObjectReader(counter: 200)
    #expect(throws: BTHome.Obstacle.repeated) {
      try later.read(Self.encrypted(151), key: Self.key, from: address)
    }
  }

  /// The last counter, and the frames after it, all with temperature 25.06: a new battery (bthome-ble#116), a program that starts
  /// anywhere, and one that counts to 65535 (home-assistant/core#118884).
  private static let countedAnew: [(last: Int, frames: [String])] = [
    (
      154_553,
      [
        "4194358594000000353bc481", "41a9adbd95000000faf90bd8", "411b0fe89600000075fecdc5",
        "4180971097000000eb276765",
      ]
    ),
    (
      3_103_785_729,
      [
        "4103f96ec58100001576d69c", "417ee72bc6810000629db6fc", "419302d9c78100006344eec1",
        "41c183a6c8810000ee9ec8c3",
      ]
    ),
    (
      65_531,
      [
        "41815c2dc74d0000abfd7871", "4144efadc84d0000d975c5b2", "412ae2a1c94d0000052126c2",
        "41c97d75ca4d0000342a6a02",
      ]
    ),
  ]

  /// Presses, with the counters from 151.
  private static let presses = [
    "45e3749700000081ad71ed", "453a6798000000b9b3e751", "456b58990000003138ec69", "45f6359a000000035975e0",
  ]

  /// Which frames are taken, all of them so long after the last one with the counter `last`.
  private static func taken(
    _ frames: [String], after seconds: Int, silence: Int = 0, last: Int
  ) throws -> [Bool] {
    let (address, start) = (try #require(Self.address), Moment.now)
    var reader = ObjectReader(counter: last, at: start)
    return frames.map { hex in
      let plain = try? reader.read(
        Hexadecimal.bytes(hex) ?? [], key: Self.key, from: address, silence: .seconds(silence),
        at: start + .seconds(seconds))
      return plain != nil
    }
  }

  @Test(arguments: countedAnew)
  func aSensorThatCountsAnewIsTakenAgain(last: Int, frames: [String]) throws {
    #expect(try Self.taken(frames, after: 299, last: last) == [false, false, false, false])
    #expect(try Self.taken(frames, after: 300, last: last) == [false, false, false, true])
    // One that sleeps for ten minutes.
    #expect(try Self.taken(frames, after: 1799, silence: 1800, last: last).last == false)
    #expect(try Self.taken(frames, after: 1800, silence: 1800, last: last).last == true)
    // The counters do not grow.
    #expect(try Self.taken(frames + frames.reversed(), after: 299, last: last).allSatisfy { !$0 })
    #expect(try Self.taken(frames.reversed(), after: 300, last: last).allSatisfy { !$0 })
  }

  /// Somebody has recorded them.
  @Test func pressesAreNotTakenAgain() throws {
    #expect(try Self.taken(Self.presses, after: 0, last: 150) == [true, true, true, true])
    #expect(try Self.taken(Self.presses, after: 86_400, last: 1000) == [false, false, false, false])
  }

  @Test func aSensorThatSendsItselfIsNotReplaced() throws {
    let (address, start) = (try #require(Self.address), Moment.now)
    var reader = ObjectReader(counter: nil)
    func isTaken(_ data: [UInt8], _ seconds: Int) -> Bool {
      (try? reader.read(data, key: Self.key, from: address, at: start + .seconds(seconds))) != nil
    }
    let recorded = Self.countedAnew[0].frames.compactMap { Hexadecimal.bytes($0) }
    #expect(isTaken(Self.encrypted(200), 0))
    for data in recorded.dropLast() { #expect(!isTaken(data, 600)) }
    #expect(isTaken(Self.encrypted(200), 600))
    #expect(!isTaken(recorded[3], 1200))
  }

  @Test func whyAFrameCannotBeRead() throws {
    let address = try #require(Self.address)
    func obstacle(_ data: [UInt8], _ key: [UInt8]?) -> BTHome.Obstacle? {
      var reader = ObjectReader(counter: nil)
      do throws(BTHome.Obstacle) {
        _ = try reader.read(data, key: key, from: address)
        return nil
      } catch {
        return error
      }
    }
    var frame = Self.encrypted(150)
    #expect(obstacle(frame, Self.key) == nil)
    #expect(obstacle(frame, nil) == .encrypted)
    #expect(obstacle([0x40, 0x01, 0x61], Self.key) == .notEncrypted)
    #expect(obstacle([0x20, 0x01, 0x61], nil) == .version(1))
    #expect(obstacle([], nil) == .version(0))
    for index in frame.indices.dropFirst() {
      frame[index] ^= 1
      #expect(obstacle(frame, Self.key) == .wrongKey, "\(index)")
      frame[index] ^= 1
    }
    for count in 1..<frame.count { #expect(obstacle(Array(frame[..<count]), Self.key) == .wrongKey) }
  }

  /// The address in a frame (bit 1) is part of the nonce.
  @Test func anEncryptedFrameWithAnAddress() throws {
    let plain = try #require(Hexadecimal.bytes("43a5808fe6485451dc36ca4f2c07000000fac56364"))
    var reader = ObjectReader(counter: nil)
    let other = try #require(BluetoothAddress("00:00:00:00:00:01"))
    #expect(try reader.read(plain, key: Self.key, from: other) == Hexadecimal.bytes("40" + "02ca0903bf13"))
  }
}
