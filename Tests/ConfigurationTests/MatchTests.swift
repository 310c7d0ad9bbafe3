import GATT
import TestSupport
import Testing

@testable import Configuration

@Suite struct MatchTests {
  private static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  private static let heartRate = BluetoothUUID(short: 0x180D)
  /// The advertisement of the peripheral in the tables below.
  private static let advertisement = Advertisement(
    name: "Polar H7", services: [BluetoothUUID(short: 0x180F), heartRate], manufacturers: [76, 107])

  private static func match(_ text: String) throws -> Configuration.Match {
    let configuration = try Configuration.parse(Array(#"{"devices":[{"match":{\#(text)}}]}"#.utf8)).get()
    return try #require(configuration.devices.first).match
  }

  @Test(
    arguments: [
      (#""identifier":"C5:A1:B2:C3:D4:E5""#, true), (#""identifier":"C5:A1:B2:C3:D4:E6""#, false),
      (#""name":"Polar H7""#, true), (#""name":"Polar""#, false), (#""name":"polar h7""#, false),
      (#""name_prefix":"Polar""#, true), (#""name_prefix":"olar""#, false),
      (#""name_prefix":"Polar H7 ""#, false),
      (#""name_contains":"lar H""#, true), (#""name_contains":"Polar H7""#, true),
      (#""name_contains":"H8""#, false),
      (#""service":"180d""#, true), (#""service":"0000180D-0000-1000-8000-00805F9B34FB""#, true),
      (#""service":"180e""#, false),
      (#""manufacturer":"0x006b""#, true), (#""service":"0x180f""#, true), (#""manufacturer":107"#, true),
      (#""manufacturer":108"#, false),
      // All conditions that are given must hold.
      (#""name_prefix":"P","name_contains":"H","name":"Polar H7","service":"180f","manufacturer":76"#, true),
      (#""name_prefix":"P","service":"180e""#, false), (#""name_prefix":"Q","service":"180d""#, false),
      (#""identifier":"C5:A1:B2:C3:D4:E5","name":"Polar H8""#, false),
      (#""service":"180d","manufacturer":1"#, false),
      // The signal strength is not part of the advertisement, and is not checked here.
      (#""service":"180d","min_rssi":0"#, true),
    ] as [(String, Bool)])
  func allConditionsMustHold(text: String, isMatch: Bool) throws {
    #expect(try Self.match(text).matches(Self.address, Self.advertisement) == isMatch)
  }

  @Test func emptyAdvertisementMatchesNothing() throws {
    for text in [
      #""name":"x""#, #""name_prefix":"x""#, #""name_contains":"x""#, #""service":"180d""#,
      #""manufacturer":1"#,
    ] {
      #expect(try !Self.match(text).matches(Self.address, Advertisement()), "\(text)")
    }
    let byAddress = try Self.match(#""identifier":"C5:A1:B2:C3:D4:E5","min_rssi":-50"#)
    #expect(byAddress.matches(Self.address, Advertisement()))
    #expect(byAddress.isIdentifier && !byAddress.needsAdvertisement)
    #expect(try Self.match(#""identifier":"C5:A1:B2:C3:D4:E5","service":"180d""#).needsAdvertisement)
    #expect(try !Self.match(#""service":"180d""#).isIdentifier)
  }

  /// The two encodings of é look the same, but are different names.
  @Test func namesAreComparedByTheirBytes() throws {
    let decomposed = Advertisement(name: "Cafe\u{301}")
    for text in [#""name":"Café""#, #""name_prefix":"Café""#, #""name_contains":"é""#] {
      #expect(try !Self.match(text).matches(Self.address, decomposed), "\(text)")
    }
    #expect(try Self.match(#""name_contains":"Cafe""#).matches(Self.address, decomposed))
  }

  @Test(arguments: [
    (#""name_prefix":"BBC""#, #""name":"BBC micro:bit""#, true),
    (#""name_prefix":"BBC""#, #""name_prefix":"BBC micro""#, true),
    (#""name_prefix":"BBC micro""#, #""name_prefix":"BBC""#, false),
    (#""name_contains":"micro""#, #""name_prefix":"BBC micro:bit""#, true),
    (#""name_contains":"micro""#, #""name_contains":"BBC""#, false),
    (#""service":"180d""#, #""service":"180d","name":"x""#, true),
    (#""service":"180d","name":"x""#, #""service":"180d""#, false),
    (#""service":"180d","min_rssi":-60"#, #""service":"180d""#, true),
    (#""manufacturer":1"#, #""manufacturer":2"#, false),
    (#""name_prefix":"x""#, #""identifier":"C5:A1:B2:C3:D4:E5","name":"x""#, true),
    (#""name_prefix":"x""#, #""identifier":"C5:A1:B2:C3:D4:E5""#, false),
  ])
  func entryCoveredByAnEarlierOneHasAWarning(first: String, second: String, isCovered: Bool) throws {
    #expect(try Self.match(first).covers(try Self.match(second)) == isCovered)
    let text = #"{"devices":[{"match":{\#(first)}},{"match":{\#(second)}}]}"#
    let warnings = try Configuration.parse(Array(text.utf8)).get().warnings().map(\.description)
    let unused = "devices[1]: never used: devices[0] comes first and matches the same peripherals"
    #expect(warnings.contains(unused) == isCovered)
  }

  @Test func identifierAfterAPatternHasAWarning() throws {
    let text =
      #"{"devices":[{"match":{"service":"180d","manufacturer":1}},{"match":{"identifier":"C5:A1:B2:C3:D4:E5"}}]}"#
    let warnings = try Configuration.parse(Array(text.utf8)).get().warnings().map(\.description)
    #expect(
      warnings == [
        "devices[1]: devices[0] may match first, by its service and manufacturer (move this entry up)"
      ])
  }

  @Test(
    "A micro:bit by radio and a Bluetooth device are never matched by the same entry",
    arguments: [
      (#""radio":"zotut""#, #""identifier":"C5:A1:B2:C3:D4:E5""#),
      (#""name_prefix":"x""#, #""identifier":"radio:usb_12345678""#),
    ])
  func radioAndBluetoothAreApart(first: String, second: String) throws {
    let text =
      #"{"devices":[{"match":{\#(first)}},{"match":{\#(second)}}],"radio":{"enabled":true}}"#
    #expect(try Configuration.parse(Array(text.utf8)).get().warnings().isEmpty)
  }

  @Test(
    arguments: [
      (
        #"{"devices":[{"match":{"name":"zotut"}}]}"#,
        #"devices[0].match.name: this is the whole Bluetooth name (that of a micro:bit is "BBC micro:bit [zotut]")"#
      ),
      (
        #"{"devices":[{"name":"zotut"}]}"#,
        "devices[0].name: every device that the entry matches gets this name "
          + #"(for one: {"match": {"name": "BBC micro:bit [zotut]"}})"#
      ),
      (
        #"{"devices":[{"pair":true}]}"#,
        "devices[0].pair: whatever imitates a device that the entry matches gets a pairing (match it by its identifier, or add its passkey)"
      ),
      (
        #"{"http":{"enabled":true,"proxy":"172.30.32.2"}}"#,
        #"http.proxy: the page is for this computer only (add "address", one of this computer that the proxy can reach)"#
      ),
      (#"{"http":{"enabled":true,"proxy":"127.0.0.1"}}"#, nil),
      (#"{"http":{"enabled":true,"address":"::","proxy":"172.30.32.2"}}"#, nil),
      (#"{"radio":{"send":true}}"#, #"radio.send: has no effect (add "enabled": true)"#),
      (#"{"devices":[{"match":{"radio":"zotut"},"name":"zotut"}],"radio":{"enabled":true}}"#, nil),
      (
        #"{"devices":[{},{"match":{"radio":"zotut"}},{"match":{"radio":"zotup"}}]}"#,
        #"devices[1].match: nothing is heard by radio (add "radio": {"enabled": true})"#
      ),
      (#"{"devices":[{"match":{"radio":"zotut"},"enabled":false}]}"#, nil),
      (#"{"devices":[{"pair":true,"passkey":123456}]}"#, nil),
    ] as [(String, String?)])
  func probableMistakeHasAWarning(text: String, warning: String?) throws {
    let warnings = try Configuration.parse(Array(text.utf8)).get().warnings().map(\.description)
    #expect(warnings == [warning].compactMap { $0 })
  }

  @Test func entryIsTheFirstThatMatchesHoweverItIsFound() throws {
    let matches = [
      #""identifier":"C5:A1:B2:C3:D4:E5","name":"b""#, #""name":"a""#, #""identifier":"C5:A1:B2:C3:D4:E5""#,
      #""service":"180d""#, #""identifier":"C5:A1:B2:C3:D4:E6""#, #""name_prefix":"a""#,
    ]
    let advertisements = [
      Advertisement(), Advertisement(name: "a"), Advertisement(name: "b", services: [Self.heartRate]),
      Advertisement(name: "ab"),
    ]
    let addresses = (0..<3).map { BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5 + UInt64($0)) }
    for shift in matches.indices {
      let order = matches[shift...] + matches[..<shift]
      var configuration = Configuration()
      configuration.devices = try order.map { Configuration.Device(match: try Self.match($0)) }
      for address in addresses {
        for advertisement in advertisements {
          let first = configuration.devices.first { $0.match.matches(address, advertisement) }
          #expect(configuration.device(matching: address, advertisement) == first)
        }
        let isNamed = configuration.devices.contains { $0.match.identifier == address }
        #expect(configuration.names(address) == isNamed)
      }
    }
  }

  @Test(
    arguments: [
      (#"{"name":"A"}"#, #"{"name":"B"}"#, "A", "B", 0), (#"{"name":"B"}"#, #"{"name":"A"}"#, "A", "B", 1),
      (#"{"name_prefix":"B"}"#, #"{"name_prefix":"A"}"#, "A", "B", 0),
      (#"{"name_prefix":"A"}"#, #"{"name_prefix":"B"}"#, "A", "B", 0),
      (#"{"name":"A1"}"#, #"{"name_prefix":"A"}"#, "A", "A1", 0),
      (#"{"name":"C"}"#, #"{"name":"A"}"#, "A", "B", 1),
      (#"{"identifier":"C5:A1:B2:C3:D4:E5"}"#, #"{"name":"A"}"#, "A", "B", 0),
      (#"{"name":"A"}"#, #"{"identifier":"C5:A1:B2:C3:D4:E5"}"#, "A", "B", 0),
      (#"{"name":"C"}"#, #"{"name":"D"}"#, "A", "B", nil),
    ] as [(String, String, String, String, Int?)])
  func entryKeepsWhatItMatchedByAnEarlierName(
    first: String, second: String, earlier: String, name: String, index: Int?
  ) throws {
    let text = #"{"devices":[{"match":\#(first)},{"match":\#(second)}]}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    let known = Advertisement(name: name, matchedName: earlier)
    #expect(
      configuration.device(matching: Self.address, known)?.match
        == index.map { configuration.devices[$0].match })
  }

  @Test func earlierAdvertisementsAreAccumulated() {
    let earlier = Advertisement(name: "a", services: [Self.heartRate], manufacturers: [1])
    let later = Advertisement(services: [BluetoothUUID(short: 0x180F), Self.heartRate], manufacturers: [2])
    let known = later.adding(to: earlier)
    #expect(known.name == "a")
    #expect(known.services == [Self.heartRate, BluetoothUUID(short: 0x180F)])
    #expect(known.manufacturers == [1, 2])
    #expect(known.adding(to: known) == known)
    #expect(Advertisement(name: "b").adding(to: known).name == "b")
    // The lists are bounded, whatever is received.
    let many = Advertisement(manufacturers: Array(0..<1000))
    #expect(many.adding(to: earlier).manufacturers.count == 128)
    #expect(many.adding(to: Advertisement()).manufacturers.count == 128)
  }
}
