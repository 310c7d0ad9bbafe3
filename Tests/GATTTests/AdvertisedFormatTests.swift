import TestSupport
import Testing

@testable import GATT

@Suite struct AdvertisedFormatTests {
  private func decode(_ format: String, _ hex: String, at index: Int = 0) throws -> Value {
    let format = try #require(AdvertisedFormat(rawValue: format))
    let bytes = try #require(Hexadecimal.bytes(hex))
    return try Codec(.advertised(format, index)).decode(bytes)
  }

  // MARK: Eddystone

  /// MakeCode's `advertiseUid(42, instance, …)`, without the two reserved bytes and with them.
  @Test(arguments: ["", "0000"])
  func uidOfMakeCode(reserved: String) throws {
    let space: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 42]
    #expect(
      try decode("eddystone_uid", "ec" + "0000000000000000002a" + "000000000015" + reserved)
        == .record([.integer(-20), .bytes(space), .integer(21)]))
    #expect(
      try decode("eddystone_uid", "00" + "0000000000000000002a" + "0000fffffffd" + reserved)
        == .record([.integer(0), .bytes(space), .integer(-3)]))
    // Not MakeCode's.
    #expect(
      try decode("eddystone_uid", "00" + "0000000000000000002a" + "010000000000" + reserved)
        == .record([.integer(0), .bytes(space), .integer(1 << 40)]))
  }

  @Test func uidsOfOtherLengthsAreRefused() {
    for count in 0...40 where count != 17 && count != 19 {
      #expect(throws: CodecError.self) { try decode("eddystone_uid", String(repeating: "00", count: count)) }
    }
  }

  private static let knownURLs: [(hex: String, url: String)] = [
    ("10036d6963726f6269742e6f7267", "https://microbit.org"), ("10006d0078", "http://www.m.com/x"),
    ("10016d0d", "https://www.m.gov"), ("1002", "http://"),
  ]

  @Test(arguments: knownURLs)
  func urls(hex: String, url: String) throws { #expect(try decode("eddystone_url", hex) == .text(url)) }

  private static let brokenURLs: [String] = [
    "", "10", "1004", "10030e", "100320", "10037f", "1003ff", "1003" + String(repeating: "61", count: 18),
  ]

  @Test(arguments: brokenURLs)
  func wrongURLs(hex: String) {
    #expect(throws: CodecError.self) { try decode("eddystone_url", hex) }
  }

  @Test(arguments: ["1004ff", "1003ff"])
  func whatStandsForNothingInAURLIsNoMatterOfUTF8(hex: String) throws {
    let bytes = try #require(Hexadecimal.bytes(hex))
    #expect(throws: CodecError.notEddystoneURL(bytes)) { try decode("eddystone_url", hex) }
  }

  // MARK: BTHome

  private static let knownObjects: [(name: String, hex: String, value: Value)] = [
    ("temperature", "4002ca09", Value.number(25.06)), ("temperature", "400200ff", .number(-2.56)),
    ("temperature", "40451101", .number(27.3)), ("temperature", "4057ea", .integer(-22)),
    ("temperature", "4058ea", .number(-7.7)), ("humidity", "4002ca0903bf13", .number(50.55)),
    ("battery", "4000090161", .integer(97)), ("illuminance", "4405138a14", .number(13460.67)),
    ("button", "4400093a01", .text("press")), ("button", "443a80", .text("hold_press")),
    ("text", "40530548656c6c6f0161", .text("Hello")),
    ("battery", "40530548656c6c6f0161", .integer(97)),
    ("motion", "402101", .bool(true)), ("count", "403e2a2c0960", .integer(1_611_213_866)),
    ("acceleration", "40518756", .number(22.151)), ("power", "405c02fbffff", .number(-12.78)),
  ]

  @Test(arguments: knownObjects)
  func objects(name: String, hex: String, value: Value) throws {
    #expect(try decode("bthome_\(name)", hex) == value)
  }

  @Test func severalObjectsOfOneName() throws {
    let two = "40" + "02ca09" + "02cb09"
    #expect(try decode("bthome_temperature", two, at: 1) == .number(25.07))
    #expect(throws: CodecError.absent) { try decode("bthome_temperature", two, at: 2) }
  }

  /// What came before it counts; its length is not known, so what follows does not.
  @Test func anUnknownObjectEndsTheSearch() throws {
    let hex = "40" + "0161" + "ee00" + "02ca09"
    #expect(try decode("bthome_battery", hex) == .integer(97))
    #expect(throws: CodecError.absent) { try decode("bthome_temperature", hex) }
  }

  @Test func noPressIsNoEvent() {
    #expect(throws: CodecError.absent) { try decode("bthome_button", "44" + "3a00") }
  }

  /// What every frame says of itself: the address in it is skipped, a packet id may be missing.
  @Test func whatAFrameSaysOfItself() throws {
    func frame(_ hex: String) throws -> BTHome.Frame { try BTHome.Frame(#require(Hexadecimal.bytes(hex))) }
    let press = try frame("44" + "0009" + "3a01")
    let rest = try frame("44" + "000a" + "3a00")
    #expect(press.hasEvents && !rest.hasEvents)
    #expect(press.packetID == 9 && press.isTriggerOnly && !press.isEncrypted && press.unknownObject == nil)
    #expect(try frame("42" + "188d38c1a400" + "0102").packetID == nil)
    #expect(try frame("42" + "188d38c1a400" + "0102").value("battery", at: 0) == .integer(2))
    #expect(try frame("40" + "0009" + "02").packetID == 9)
    #expect(try frame("40" + "0161" + "ee00").unknownObject == 0xEE)
    let encrypted = try frame("45" + "a47266c95f730011223378237214")
    #expect(encrypted.isEncrypted && encrypted.isTriggerOnly && encrypted.packetID == nil)
  }

  @Test func encryptedAndOtherVersions() {
    #expect(throws: CodecError.unreadable(.encrypted)) {
      try decode("bthome_battery", "41" + "a47266c95f730011223378237214")
    }
    #expect(throws: CodecError.unreadable(.version(1))) { try decode("bthome_battery", "20" + "0161") }
    #expect(throws: CodecError.unreadable(.version(0))) { try decode("bthome_battery", "") }
  }

  /// Each prefix of a packet of all kinds of content either has whole objects or is refused.
  @Test func everyWrongLength() throws {
    let hex = "40" + "000902ca09" + "3e2a2c0960" + "530548656c6c6f" + "2101"
    let whole = try #require(Hexadecimal.bytes(hex))
    let ends: Set = [1, 3, 6, 11, 18, 20]
    let codec = try Codec(.advertised(.bthome("motion"), 0))
    for count in 1..<whole.count {
      let expected = ends.contains(count) ? CodecError.absent : nil
      do throws(CodecError) {
        _ = try codec.decode(Array(whole[..<count]))
        Issue.record("\(count) bytes have a value")
      } catch {
        if let expected {
          #expect(error == expected, "\(count)")
        } else {
          #expect(error != .absent, "\(count)")
        }
      }
    }
    #expect(try codec.decode(whole) == .bool(true))
  }

  /// As Home Assistant's own decoder shows it.
  @Test func aBatteryIsOfTheDeviceItself() {
    for property in Profile.bthome.properties {
      #expect(property.homeAssistant.first?.category == (property.name == "battery" ? .diagnostic : nil))
    }
  }

  @Test func randomBytesAreDecodedOrRefused() {
    let seed = UInt64.random(in: 1...1_000_000)
    print("AdvertisedFormatTests: seed \(seed)")
    var random = SplitMix64(state: seed)
    for _ in 0..<2000 {
      let bytes = (0..<Int.random(in: 0...31)).map { _ in UInt8.random(in: 0...255, using: &random) }
      for format in AdvertisedFormat.allCases {
        _ = try? Codec(.advertised(format, 0)).decode([0x40] + bytes)
      }
    }
  }

  @Test func eachFormatHasAWord() {
    for format in AdvertisedFormat.allCases { #expect(AdvertisedFormat(rawValue: format.rawValue) == format) }
    #expect(AdvertisedFormat(rawValue: "bthome_packet_id") == nil)
  }
}
