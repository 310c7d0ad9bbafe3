import Configuration
import EventLoop
import FoundationEssentials
import GATT
import JSON
import Log
import MQTT
import Testing

@testable import BlueZ
@testable import Bridge
@testable import Devices

@Suite struct PayloadTests {
  let time = Timestamp(milliseconds: 1_763_661_662_345)
  func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// The clock may be set while it is online.
  @Test func advertisementsAreCountedWhateverTheClockSays() throws {
    var device = DeviceDescription(try DeviceID("beacon"), BluetoothAddress(truncating: 1))
    (device.isOnline, device.lastConnected) = (true, Timestamp(milliseconds: 0))
    (device.timesHeard, device.heardSince) = (6, .now + .seconds(-60))
    #expect(device.listing(owner: nil)["heard_per_minute"]?.integer == 6)
  }

  @Test func valuesAndAvailabilityAreEncoded() {
    #expect(text(Payload.value(21, .int8)) == "21")
    #expect(text(Payload.value(-128, .int8)) == "-128")
    #expect(text(Payload.availability(true)) == "online")
    #expect(text(Payload.availability(false)) == "offline")
  }

  /// An empty payload would delete the retained message; in a command, a payload in quotes is JSON.
  @Test(arguments: [("", #""""#), ("hi", "hi"), ("\"hi\"", #""\"hi\"""#), (" ", " ")])
  func textCanBeSentBack(value: String, payload: String) throws {
    #expect(text(Payload.value(.text(value), .utf8)) == payload)
    let property = Property(
      name: "note", service: .microbitUARTService, characteristic: .microbitUARTService,
      access: [.read, .write],
      codec: .utf8)
    #expect(try ParsedCommand.parse(Array(payload.utf8), for: property).get().value == .text(value))
  }

  @Test func emptyBytesCanBeSentBack() throws {
    #expect(text(Payload.value(.bytes([]), .bytes)) == #""""#)
    let property = Property(
      name: "note", service: .microbitUARTService, characteristic: .microbitUARTService,
      access: [.read, .write],
      codec: .bytes)
    #expect(try ParsedCommand.parse(Array(#""""#.utf8), for: property).get().value == .bytes([]))
  }

  @Test(arguments: [
    (
      Outcome.applied(actual: 2000),
      #"{"status":"applied","requested":2000,"actual":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .adjusted(actual: 2048),
      #"{"status":"adjusted","requested":2000,"actual":2048,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .read(actual: 2048),
      #"{"status":"read","requested":2000,"actual":2048,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .accepted,
      #"{"status":"accepted","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (.sent, #"{"status":"sent","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#),
    (
      .pending,
      #"{"status":"pending","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .deferred,
      #"{"status":"deferred","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .superseded,
      #"{"status":"superseded","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .failed(reason: "x"),
      #"{"status":"failed","requested":2000,"reason":"x","transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
    (
      .timeout(reason: "x"),
      #"{"status":"timeout","requested":2000,"reason":"x","transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
    ),
  ])
  func resultsAreEncoded(outcome: Outcome, expected: String) {
    let result = CommandResult("period", .uint16, requested: 2000, outcome)
    #expect(text(result.payload(transaction: "a1", time: time)) == expected)
  }

  @Test func resultOmitsAbsentMembers() {
    let result = CommandResult("period", nil, .rejected(reason: #"say "hi""#))
    let payload = result.payload(transaction: nil, time: time)
    #expect(
      text(payload) == #"{"status":"rejected","reason":"say \"hi\"","time":"2025-11-20T18:01:02.345Z"}"#)
  }

  @Test(
    arguments: [
      [:], ["transaction": "t", "response_topic": "replies", "correlation_data": "00ff"],
      ["transaction": .integer(23)], ["transaction": .number(0.5)], ["transaction": .bool(false)],
    ] as [JSONValue])
  func aStoredSenderIsReadBack(json: JSONValue) { #expect(Sender(json).json == json) }

  @Test func responsesAreEncoded() {
    func response(_ result: Result<JSONValue, RequestError>, _ transaction: JSONValue?) -> String {
      text(RequestResponse(result: result, transaction: transaction).json.bytes)
    }
    #expect(response(.success([:]), nil) == #"{"status":"ok","data":{}}"#)
    #expect(
      response(.success(["a": .integer(1)]), "t") == #"{"status":"ok","data":{"a":1},"transaction":"t"}"#)
    #expect(
      response(.failure(RequestError("no such verb")), "t")
        == #"{"status":"error","code":"unavailable","error":"no such verb","transaction":"t"}"#)
    #expect(response(.success([:]), .integer(23)) == #"{"status":"ok","data":{},"transaction":23}"#)
  }

  @Test func publishedDesiredValuesAreReadForSettableProperties() {
    func published(_ members: String) -> [String: EncodedValue?]? {
      OwnershipMachine.Notice(
        Array("{\"owner\":\"attic\",\(members)}".utf8), of: DeviceID(BluetoothAddress(truncating: 1)),
        isRetained: true
      ) { _ in .microbit }?.handover.desired
    }
    func desired(_ values: String) -> [String: Value]? {
      published("\"desired\":\(values)")?.compactMapValues { $0?.value }
    }
    #expect(desired(#"{"period":20,"accelerometer_period":3}"#) == ["period": 20, "accelerometer_period": 3])
    let both = #""desired":{"period":20,"accelerometer_period":3},"configured":["period",7]"#
    #expect(published(both)?["period"] == .some(nil))
    #expect(published(both)?["accelerometer_period"]??.value == 3)
    for value in ["19", "0", "65536", "20.5", "\"20\"", "null", "{}"] {
      #expect(desired("{\"period\":\(value)}") == [:])
    }
    let used = #""properties":["period","accelerometer_period",7],"desired":{"period":"x"}"#
    #expect(published(used) == ["accelerometer_period": nil])
    #expect(desired(#"{"another":20}"#) == [:])
    #expect(desired("[]") == [:])
  }

  @Test func deviceInfoIsEncoded() throws {
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    let attic = GatewayID(hostName: "attic")
    var device = DeviceDescription(try DeviceID("kitchen"), address)
    #expect(
      text(device.infoJSON(owner: attic, moved: nil).bytes)
        == #"{"identifier":"C5:A1:B2:C3:D4:E5","owner":"attic","profile":"microbit","#
        + #""properties":["temperature","period"],"enabled":true}"#)
    device.bluetoothName = "BBC micro:bit [zugev]"
    device.configure { $0.name = "Kitchen" }
    device.rssi = -61
    device.lastConnected = time
    device.record.model = "BBC micro:bit V2"
    device.record.requested.desired["period"] = DeviceRecord.Desired(value: .integer(5000), source: .command)
    let moved = Move(from: GatewayID(hostName: "cellar"), area: "Cellar", time: time)
    #expect(
      text(device.infoJSON(owner: attic, moved: moved).bytes)
        == #"{"name":"Kitchen","bluetooth_name":"BBC micro:bit [zugev]","identifier":"C5:A1:B2:C3:D4:E5","owner":"attic","#
        + #""profile":"microbit","properties":["temperature","period"],"enabled":true,"rssi":-61,"last_connected":"2025-11-20T18:01:02.345Z","desired":{"period":5000},"#
        + #""moved":{"from":"cellar","area":"Cellar","time":"2025-11-20T18:01:02.345Z"},"model":"BBC micro:bit V2"}"#
    )
    let override = device.record.requested.desired
    device.record.requested.desired = [:]
    device.configure { $0.period = 5000 }
    #expect(
      text(device.infoJSON(owner: attic, moved: nil).bytes)
        .contains(#""desired":{"period":5000},"configured":["period"],"model""#))
    // Desired values of properties that the device does not offer are left out.
    device.record.offered = ["temperature"]
    #expect(!text(device.infoJSON(owner: attic, moved: nil).bytes).contains("desired"))
    #expect(!text(device.infoJSON(owner: attic, moved: nil).bytes).contains("configured"))
    // Except overrides: another gateway would take a missing one for withdrawn.
    device.record.requested.desired = override
    #expect(text(device.infoJSON(owner: attic, moved: nil).bytes).contains(#""desired":{"period":5000}"#))
  }

  /// Advertised names can contain anything, and must not break the JSON.
  @Test(arguments: [
    "/+#", "\0", "\",\"rssi\":0,\"x\":\"", "\u{FFFD}\u{FFFD}", String(repeating: "é", count: 124), "\\",
  ])
  func hostileNamesStayInsideTheirStrings(name: String) throws {
    struct Read: Decodable {
      let name: String
      let rssi: Int?
    }
    let address = BluetoothAddress(truncating: 1)
    var device = DeviceDescription(DeviceID(address), address)
    device.bluetoothName = name
    let payload = device.infoJSON(owner: GatewayID(hostName: "attic"), moved: nil).bytes
    let read = try JSONDecoder().decode(Read.self, from: Data(payload))
    #expect(read.name == name && read.rssi == nil)
  }

  @Test func bridgeInfoIsEncoded() {
    let broker = BridgeInfo.Broker(address: MQTTBroker(host: "localhost"), protocolVersion: "5")
    let run = RunID()
    var info = BridgeInfo(
      version: "0.1.0", started: time, run: run, broker: broker,
      spool: SpoolStatus(messages: 2, bytes: 300, oldest: time, lost: 1))
    info.adapters = [
      AdapterStatus(
        name: "hci0", state: .on(adapter: "hci0", address: "00:00:00:00:00:01"),
        recovery: Recovery(step: .resetAdapter, reason: "InProgress", since: time, count: 4),
        isMonitoring: true),
      AdapterStatus(name: "hci1", state: .adapterAbsent),
    ]
    (info.known, info.online) = (3, 2)
    info.counters.commands = 17
    info.counters.mqtt.rejected = 1
    info.broker.connectedSince = time
    info.broker.connects = 2
    #expect(
      text(info.json.bytes)
        == #"{"version":"0.1.0","started":"2025-11-20T18:01:02.345Z","run":"\#(run)","adapters":[{"name":"hci0","#
        + #""state":"on","address":"00:00:00:00:00:01","recovery":{"step":"reset_adapter","#
        + #""reason":"InProgress","since":"2025-11-20T18:01:02.345Z","count":4},"monitors":true},{"name":"hci1","state":"absent"}],"broker":{"host":"localhost","#
        + #""port":1883,"protocol":"5","connected":true,"connected_since":"2025-11-20T18:01:02.345Z","connects":2},"#
        + #""devices":{"known":3,"online":2},"permit_join":false,"counters":{"readings":0,"malformed":0,"commands":17,"over_limit":0,"#
        + #""sent":0,"queued":0,"lost":0,"rejected_by_broker":1},"spool":{"messages":2,"bytes":300,"#
        + #""oldest":"2025-11-20T18:01:02.345Z","lost":1}}"#)
  }
}

@Suite struct ReadingEncoderTests {
  struct Written: Decodable, Equatable {
    var property = "temperature"
    var value = 21
    var unit = "°C"
    var time = "2025-11-20T18:01:02.345Z"
    var sequence: UInt64 = 17
    let run: String
    var gateway = "attic"
    var replayed: Bool?
  }
  let run = RunID()
  let time = Timestamp(milliseconds: 1_763_661_662_345)

  func encoder(_ name: String = "temperature", unit: String = "°C") -> ReadingEncoder {
    let property = Property(
      name: name, service: .microbitTemperatureService, characteristic: .microbit(0x9250),
      access: [.read, .notify], codec: .int8, unit: unit)
    return ReadingEncoder(property: property, gateway: GatewayID(hostName: "attic"), run: run)
  }

  func reading(_ value: Value) -> Reading { Reading(property: 0, value: value, time: time, sequence: nil) }

  @Test func readingIsEncoded() throws {
    let bytes = encoder().encode(reading(21), sequence: 17)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"property":"temperature","value":21,"unit":"°C","time":"2025-11-20T18:01:02.345Z","sequence":17,"#
        + #""run":"\#(run)","gateway":"attic"}"#)
    #expect(try JSONDecoder().decode(Written.self, from: Data(bytes)) == Written(run: run.description))
  }

  @Test func extremeNumbersAreEncoded() throws {
    let bytes = encoder().encode(reading(.integer(.min)), sequence: .max)
    let read = try JSONDecoder().decode(Written.self, from: Data(bytes))
    #expect(read.value == .min && read.sequence == .max)
  }

  @Test(arguments: ["\"", "\\", "a\",\"value\":0,\"b\":\"", "\n\0\u{1F}", "é🌡", ""])
  func anyNameGivesValidJSON(name: String) throws {
    let bytes = encoder(name, unit: name).encode(reading(-5), sequence: 0)
    let read = try JSONDecoder().decode(Written.self, from: Data(bytes))
    #expect(read.property == name && read.unit == name && read.value == -5)
  }

  @Test func replayedReadingIsMarked() throws {
    let bytes = ReadingEncoder.markReplayed(encoder().encode(reading(21), sequence: 17))
    #expect(
      try JSONDecoder().decode(Written.self, from: Data(bytes))
        == Written(run: run.description, replayed: true))
  }
}
