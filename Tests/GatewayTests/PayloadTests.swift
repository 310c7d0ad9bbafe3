import Configuration
import FoundationEssentials
import GATT
import TestSupport
import Testing

@testable import Gateway

@Suite struct PayloadTests {
  let time = Timestamp(milliseconds: 1_763_661_662_345)
  func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  @Test func wordsAndNumbers() {
    #expect(text(Payload.value(21)) == "21")
    #expect(text(Payload.value(-128)) == "-128")
    #expect(text(Payload.availability(true)) == "online")
    #expect(text(Payload.availability(false)) == "offline")
  }

  @Test func decimalsAreThoseOfStrings() {
    var random = SplitMix64(state: 2)
    let chance = (0..<200).map { _ in
      Int.random(in: .min ... .max, using: &random) >> Int.random(in: 0..<63, using: &random)
    }
    for number in [0, 9, 10, -9, -10, 99, 100, .min, .max] + chance {
      var bytes = Array("x".utf8)
      bytes.append(decimal: number)
      #expect(text(bytes) == "x\(number)")
    }
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
      .pending,
      #"{"status":"pending","requested":2000,"transaction":"a1","time":"2025-11-20T18:01:02.345Z"}"#
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
  func results(outcome: Outcome, expected: String) {
    #expect(text(Payload.result(outcome, requested: 2000, transaction: "a1", time: time)) == expected)
  }

  @Test func aResultLeavesOutWhatThereIsNot() {
    let payload = Payload.result(
      .rejected(reason: #"say "hi""#), requested: nil, transaction: nil, time: time)
    #expect(
      text(payload) == #"{"status":"rejected","reason":"say \"hi\"","time":"2025-11-20T18:01:02.345Z"}"#)
  }

  @Test func responses() {
    #expect(text(Payload.response(transaction: nil)) == #"{"status":"ok"}"#)
    #expect(
      text(Payload.response(["a": .integer(1)], transaction: "t"))
        == #"{"status":"ok","data":{"a":1},"transaction":"t"}"#)
    #expect(
      text(Payload.response(error: "no such verb", transaction: "t"))
        == #"{"status":"error","error":"no such verb","transaction":"t"}"#)
  }

  @Test func whatAnotherGatewayWantsCountsWhereItCanBeSet() {
    func wanted(_ period: Int) -> [String: Int]? {
      Holder.Notice(Array("{\"gateway\":\"attic\",\"wanted\":{\"period\":\(period)}}".utf8))?.wanted
    }
    #expect(wanted(20) == ["period": 20])
    #expect(wanted(19) == [:])
    #expect(wanted(0) == [:])
  }

  @Test func deviceInfoAndList() throws {
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    let id = try DeviceID("kitchen")
    var info = DeviceInfo(
      id: id, identifier: address, gateway: GatewayID(hostName: "attic"), profile: "microbit")
    #expect(
      text(info.payload) == #"{"identifier":"C5:A1:B2:C3:D4:E5","gateway":"attic","profile":"microbit"}"#)
    info.name = "BBC micro:bit [zugev]"
    info.label = "Kitchen"
    info.rssi = -61
    info.connectedSince = time
    info.model = "BBC micro:bit V2"
    #expect(
      text(info.payload)
        == #"{"name":"BBC micro:bit [zugev]","label":"Kitchen","identifier":"C5:A1:B2:C3:D4:E5","gateway":"attic","#
        + #""profile":"microbit","rssi":-61,"connected_since":"2025-11-20T18:01:02.345Z","model":"BBC micro:bit V2"}"#
    )
    let listed = text(DeviceListing(info: info, state: "live", heldBy: info.gateway).json.bytes)
    #expect(
      listed.hasPrefix(#"{"id":"kitchen","state":"live","held_by":"attic","name":"BBC micro:bit [zugev]","#))
    let unheld = text(DeviceListing(info: info, state: "absent", heldBy: nil).json.bytes)
    #expect(unheld.hasPrefix(#"{"id":"kitchen","state":"absent","name":"#))
  }

  /// Names from the air, as bad as they come, stay inside their strings.
  @Test(arguments: [
    "/+#", "\0", "\",\"rssi\":0,\"x\":\"", "\u{FFFD}\u{FFFD}", String(repeating: "é", count: 124), "\\",
  ])
  func hostileNamesStayInside(name: String) throws {
    struct Read: Decodable {
      let name: String
      let rssi: Int?
    }
    let address = BluetoothAddress(truncating: 1)
    var info = DeviceInfo(
      id: DeviceID(address), identifier: address, gateway: GatewayID(hostName: "attic"), profile: "microbit")
    info.name = name
    let read = try JSONDecoder().decode(Read.self, from: Data(info.payload))
    #expect(read.name == name && read.rssi == nil)
  }

  @Test func bridgeInfo() {
    let broker = BridgeInfo.Broker(host: "localhost", port: 1883, protocolVersion: "5")
    var random = SplitMix64(state: 1)
    let run = RunID(using: &random)
    var info = BridgeInfo(version: "0.1.0", started: time, run: run, broker: broker)
    info.adapters = [
      BridgeInfo.Adapter(name: "hci0", state: "on", address: BluetoothAddress(truncating: 1)),
      BridgeInfo.Adapter(name: "hci1", state: "absent"),
    ]
    info.devices = BridgeInfo.Devices(known: 3, online: 2)
    info.counters = [("readings", 17), ("readings_lost", 0)]
    info.broker.connectedSince = time
    info.broker.connects = 2
    #expect(
      text(info.payload)
        == #"{"version":"0.1.0","started":"2025-11-20T18:01:02.345Z","run":"\#(run)","adapters":[{"name":"hci0","#
        + #""state":"on","address":"00:00:00:00:00:01"},{"name":"hci1","state":"absent"}],"broker":{"host":"localhost","#
        + #""port":1883,"protocol":"5","connected":true,"connected_since":"2025-11-20T18:01:02.345Z","connects":2},"#
        + #""devices":{"known":3,"online":2},"counters":{"readings":17,"readings_lost":0}}"#)
  }
}

@Suite struct ReadingEncoderTests {
  struct Reading: Decodable, Equatable {
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

  @Test func writesAReading() throws {
    let bytes = encoder().encode(21, time: time, sequence: 17)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"property":"temperature","value":21,"unit":"°C","time":"2025-11-20T18:01:02.345Z","sequence":17,"#
        + #""run":"\#(run)","gateway":"attic"}"#)
    #expect(try JSONDecoder().decode(Reading.self, from: Data(bytes)) == Reading(run: run.description))
  }

  @Test func writesExtremes() throws {
    let bytes = encoder().encode(.min, time: time, sequence: .max)
    let read = try JSONDecoder().decode(Reading.self, from: Data(bytes))
    #expect(read.value == .min && read.sequence == .max)
  }

  @Test(arguments: ["\"", "\\", "a\",\"value\":0,\"b\":\"", "\n\0\u{1F}", "é🌡", ""])
  func anyNameGivesValidJSON(name: String) throws {
    let bytes = encoder(name, unit: name).encode(-5, time: time, sequence: 0)
    let read = try JSONDecoder().decode(Reading.self, from: Data(bytes))
    #expect(read.property == name && read.unit == name && read.value == -5)
  }

  @Test func marksWhatIsReplayed() throws {
    let bytes = ReadingEncoder.markReplayed(encoder().encode(21, time: time, sequence: 17))
    #expect(
      try JSONDecoder().decode(Reading.self, from: Data(bytes))
        == Reading(run: run.description, replayed: true))
  }
}

@Suite struct TimestampTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00.000Z"),
    (951_782_399_999, "2000-02-28T23:59:59.999Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (951_868_800_000, "2000-03-01T00:00:00.000Z"),
    (1_763_661_662_345, "2025-11-20T18:01:02.345Z"),
    (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    (.max, "9999-12-31T23:59:59.999Z"),
    (-1, "1970-01-01T00:00:00.000Z"),
    (.min, "1970-01-01T00:00:00.000Z"),
  ])
  func isRFC3339(milliseconds: Int64, text: String) {
    #expect(Timestamp(milliseconds: milliseconds).description == text)
  }

  /// Foundation's calendar agrees, every 31 hours or so over two centuries.
  @Test func agreesWithFoundation() {
    for seconds in stride(from: Int64(0), to: 6_400_000_000, by: 111_111 * 9) {
      let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
      #expect(Timestamp(milliseconds: seconds * 1000).description == text.dropLast() + ".000Z")
    }
  }

  @Test func nowIsNow() {
    let difference = Timestamp.now.milliseconds - Int64(Date().timeIntervalSince1970 * 1000)
    #expect(abs(difference) < 10_000)
  }
}
