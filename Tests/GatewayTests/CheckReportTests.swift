import Configuration
import GATT
import JSON
import Testing

@testable import Devices
@testable import Gateway

@Suite struct CheckReportTests {
  let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  func report(_ text: String, _ records: [DeviceRecord] = []) throws -> String {
    let document = try JSONParser.parse(Array(text.utf8))
    var configuration = try Configuration.parse(Array(text.utf8)).get()
    configuration.mqtt.password = Array("secret".utf8)
    let gateway = configuration.gateway.id ?? GatewayID(hostName: "pi")
    let stored = StoredGateway(configuration: configuration, id: gateway, records: records.byAddress)
    return "\(CheckReport(stored: stored, document: document))"
  }

  /// The columns of the first line after the line `title` that begins with `key`.
  func columns(_ report: String, _ key: String, below title: String? = nil) throws -> [String] {
    let lines = report.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let start = try title.map { title in try #require(lines.firstIndex(of: title), "no \(title)") } ?? 0
    // A title may begin with the name of a key.
    let rows = lines[start...].dropFirst(title == nil ? 0 : 1)
    let line = try #require(rows.first { $0.split(separator: " ").first == key[...] })
    return line.replacing(/\u{20}{2,}/, with: "\t").split(separator: "\t").map(String.init)
  }

  func record(_ address: BluetoothAddress, _ change: (inout DeviceRecord) -> Void) -> DeviceRecord {
    var record = DeviceRecord(address: address)
    change(&record)
    return record
  }

  @Test func wholeReportIsPrinted() throws {
    let record = record(address) {
      $0.name = "BBC micro:bit [zugev]"
      $0.requested.changes.name = "Küche"
      $0.requested.desired = ["period": DeviceRecord.Desired(value: .integer(5000), source: .command)]
    }
    let expected = """
      gateway.id                lab             config.json
      gateway.area              –               default
      bluetooth.adapters        ["hci0"]        default
      bluetooth.adapter         –               default
      bluetooth.links           7               default
      bluetooth.stay            60              default
      mqtt.host                 broker.example  config.json
      mqtt.hosts                –               default
      mqtt.port                 1883            default
      mqtt.protocol             5               default
      mqtt.username             –               default
      mqtt.password_file        –               default
      mqtt.base_topic           microbit        default
      mqtt.qos                  1               default
      mqtt.readings             false           config.json
      mqtt.tls                  –               default
      spool.enabled             true            default
      spool.max_age             604800          default
      spool.max_size            268435456       default
      spool.rate                500             default
      home_assistant.discovery  true            default
      home_assistant.prefix     homeassistant   default
      http.enabled              false           default
      http.address              127.0.0.1       default
      http.port                 8484            default
      http.password_file        –               default
      http.read_password_file   –               default
      http.proxy                –               default
      http.language             auto            default
      radio.enabled             false           default
      radio.ports               auto            default
      radio.send                false           default
      fleet                     false           default

      C5:A1:B2:C3:D4:E5 "BBC micro:bit [zugev]"
        id                      kitchen         config.json
        name                    Küche           request
        area                    –               default
        profile                 microbit        default
        properties              auto            default
        exclude                 []              default
        values                  {}              default
        adjust                  {}              default
        period                  5000 ms         command
        enabled                 true            default
        gateway                 –               default
        adapter                 –               default
        pair                    ask             default
        passkey                 –               default
        key                     –               default
        key_file                –               default
        connect                 –               default
        every                   600             default
        offline_after           –               default
        log                     false           default
      """
    let text =
      #"{"gateway":{"id":"lab"},"mqtt":{"host":"broker.example","readings":false},"devices":[{"match":"#
      + #"{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"}]}"#
    #expect(try report(text, [record]) == expected)
  }

  @Test func entryThatKeepsADeviceByItsEarlierName() throws {
    var record = DeviceRecord(address: address)
    record.advertisement = Advertisement(name: "BBC micro:bit", matchedName: "BBC micro:bit [zugev]")
    let report = try report(
      #"{"devices":[{"match":{"name":"BBC micro:bit [zugev]"},"id":"kitchen"}]}"#, [record])
    let title =
      #"C5:A1:B2:C3:D4:E5 "BBC micro:bit": an entry has matched it as "BBC micro:bit [zugev]", and keeps it"#
    #expect(try columns(report, "id", below: title) == ["id", "kitchen", "config.json"])
  }

  @Test func columnsAreAligned() throws {
    let long = String(repeating: "x", count: 100)
    let lines = try report("{\"mqtt\":{\"host\":\"\(long)\"},\"gateway\":{\"area\":\"Küche\"}}")
      .split(separator: "\n")
    let rows = lines.filter { $0.hasSuffix("  default") || $0.hasSuffix("  config.json") }
    #expect(rows.count > 10)
    func column(_ row: Substring) -> Int { row.count - (row.split(separator: " ").last?.count ?? 0) }
    #expect(Set(rows.filter { !$0.contains(long) }.map(column)).count == 1)
    #expect(rows.contains { $0.contains(long) }, "shown in full")
  }

  @Test func everyKeyIsShown() throws {
    let report = try report("{}")
    for key in Configuration.keys {
      guard case .object(let members) = key.shape else { continue }
      for member in members { #expect(report.contains("\(key.name).\(member.name)  ")) }
    }
    #expect(try columns(report, "gateway.id") == ["gateway.id", "pi", "default"])
    let title = #"every micro:bit whose name begins with "BBC micro:bit""#
    #expect(try columns(report, "id", below: title) == ["id", "its address", "default"])
    // Each desired value has its own row, such as `period`.
    for member in Configuration.Device.keys.map(\.name) where member != "match" && member != "desired" {
      #expect(throws: Never.self) { try columns(report, member, below: title) }
    }
  }

  @Test func defaultValuesInTheFileAreAttributedToIt() throws {
    let report = try report(
      #"{"mqtt":{"port":1883,"tls":{}},"devices":[{"match":{"name_prefix":"a"},"enabled":true,"id":"x"}]}"#)
    #expect(try columns(report, "mqtt.port") == ["mqtt.port", "1883", "config.json"])
    #expect(try columns(report, "mqtt.tls") == ["mqtt.tls", "{}", "config.json"])
    let title = #"every micro:bit whose name begins with "a""#
    #expect(try columns(report, "enabled", below: title) == ["enabled", "true", "config.json"])
    #expect(try columns(report, "id", below: title) == ["id", "x", "config.json"])
  }

  @Test func intervalIsShownForOnDemandDevices() throws {
    let report = try report(#"{"devices":[{"match":{"name_prefix":"a"},"connect":"on_demand","every":900}]}"#)
    let title = #"every micro:bit whose name begins with "a""#
    #expect(try columns(report, "connect", below: title) == ["connect", "on_demand", "config.json"])
    #expect(try columns(report, "every", below: title) == ["every", "900", "config.json"])
  }

  @Test func propertiesAndTheirDesiredValuesAreShown() throws {
    let report = try report(
      #"{"devices":[{"match":{"name_prefix":"a"},"properties":["temperature","led_text"],"#
        + #""desired":{"accelerometer_period":100}}]}"#)
    let title = #"every micro:bit whose name begins with "a""#
    #expect(
      try columns(report, "properties", below: title) == [
        "properties", "temperature, led_text, accelerometer_period", "config.json",
      ])
    #expect(
      try columns(report, "accelerometer_period", below: title) == [
        "accelerometer_period", "100 ms", "config.json",
      ])
    #expect(!report.contains("  period"), "it is not used")
  }

  @Test func nestedKeysAreShown() throws {
    let report = try report(#"{"mqtt":{"tls":{"ca_file":"/ca.pem"}}}"#)
    #expect(try columns(report, "mqtt.tls.ca_file") == ["mqtt.tls.ca_file", "/ca.pem", "config.json"])
    #expect(try columns(report, "mqtt.tls.key_file") == ["mqtt.tls.key_file", "–", "default"])
  }

  @Test func patternsAndProfilesAreDescribed() throws {
    let heart =
      #"{"heart":{"requires":["180d"],"properties":{"rate":{"service":"180d","characteristic":"2a37","#
      + #""access":["notify"],"type":"uint8"},"battery":{"service":"180f","characteristic":"2a19","#
      + #""access":["read"],"type":"uint8"}}}}"#
    let report = try report(
      #"{"devices":[{"match":{"service":"180d"},"profile":"heart","id":"pulse"},"#
        + #"{"match":{"name_contains":"ount","manufacturer":76,"min_rssi":-80},"profile":"heart"}],"#
        + #""profiles":\#(heart)}"#)
    let title = "every device with the service 0000180d-0000-1000-8000-00805f9b34fb"
    #expect(try columns(report, "id", below: title) == ["id", "pulse", "config.json"])
    #expect(try columns(report, "profile", below: title) == ["profile", "heart", "config.json"])
    #expect(try columns(report, "properties", below: title) == ["properties", "rate, battery", "default"])
    #expect(
      report.contains(
        "\n"
          + #"every device whose name contains "ount" and of the manufacturer 76 and received with -80 dBm or more"#
          + "\n"))
  }

  @Test func passwordsAreNotShown() throws {
    let report = try report(
      #"{"mqtt":{"username":"u","password_file":"p"},"devices":[{"passkey":482913}]}"#)
    #expect(!report.contains("secret") && !report.contains("482913"))
    #expect(try columns(report, "mqtt.password_file") == ["mqtt.password_file", "p", "config.json"])
  }

  @Test func reportGivesTheStateOfEachDevice() throws {
    let configuration =
      #"{"gateway":{"id":"here"},"devices":[{"match":{"identifier":"00:00:00:00:00:01"}},"#
      + #"{"match":{"identifier":"00:00:00:00:00:02"},"gateway":"attic"},{"match":{"name_prefix":"BBC"}}]}"#
    func at(_ number: UInt64, _ change: (inout DeviceRecord) -> Void) -> DeviceRecord {
      record(BluetoothAddress(truncating: number), change)
    }
    let report = try report(
      configuration,
      [
        at(5) { $0.name = "other\u{1B}[2J" },
        at(4) { $0.requested.isAdded = true },
        at(3) { ($0.name, $0.requested.isDeleted) = ("BBC", true) },
        at(2) { $0.requested.isDeleted = true }, at(1) { $0.requested.isRemoved = true },
      ])
    let titles = Array(
      report.split(separator: "\n").filter { !$0.hasPrefix(" ") }.map(String.init).suffix(6))
    #expect(
      titles == [
        "00:00:00:00:00:01: removed by a request",
        "00:00:00:00:00:02: served by the gateway attic: deleted in Home Assistant",
        #"every micro:bit whose name begins with "BBC""#,
        #"00:00:00:00:00:03 "BBC": deleted in Home Assistant"#,
        "00:00:00:00:00:04: added by a request",
        #"00:00:00:00:00:05 "other·[2J": no entry of config.json matches it"#,
      ])
    #expect(
      try columns(report, "id", below: titles[3]) == ["id", "000000000003", "default"])
    #expect(
      try columns(report, "gateway", below: titles[1])
        == ["gateway", "attic", "config.json"])
  }

  /// Such as a button that announces itself, and was never pressed.
  @Test func deviceThatWasNeverOnlineIsNotSaidToMatchNothing() throws {
    let stored = Array(#"{"offered":["button"],"counter":3}"#.utf8)
    let record = try #require(DeviceRecord(address: address, bytes: stored))
    let report = try report(#"{"devices":[{"match":{"service":"fcd2"},"profile":"bthome"}]}"#, [record])
    #expect(report.hasSuffix("\nC5:A1:B2:C3:D4:E5: seen, but never online: what it advertises is not stored"))
  }

  @Test func controlCharactersAreNotPrinted() throws {
    let report = try report(
      "{\"gateway\":{\"area\":\"a\u{202E}b\"},\"devices\":[{\"match\":{\"name_prefix\":\"\u{202E}\"}}]}",
      [record(address) { $0.name = "\u{1B}\u{202E}" }])
    #expect(!report.unicodeScalars.contains { $0.value == 0x202E || $0.value == 0x1B })
    #expect(report.contains("a·b"))
  }
}

extension [DeviceRecord] {
  var byAddress: [BluetoothAddress: DeviceRecord] {
    Dictionary(uniqueKeysWithValues: map { ($0.address, $0) })
  }
}
