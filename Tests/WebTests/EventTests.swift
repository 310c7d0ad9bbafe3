import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices
@testable import Web

@Suite struct EventTests {
  private static func properties(_ device: JSONValue) throws -> [String: JSONValue] {
    guard case .array(let list) = device["properties"] else { throw Failure("no properties") }
    return Dictionary(uniqueKeysWithValues: list.map { ($0["name"]?.text ?? "", $0) })
  }

  @Test("First comes the complete state; then values, in one event whatever their number")
  func values() async throws {
    let site = try await SiteUnderTest()
    await site.receive([.integer(1), .integer(2)])
    let events = try await EventClient(site)
    #expect(try await events.names(upTo: "ready") == ["gateway", "device", "device", "ready"])
    await site.receive((3...1000).map { .integer($0) })
    #expect(
      try await events.next("values")["values"] == [
        "kitchen": ["temperature": [.integer(1000), .integer(1000)]]
      ])
    await site.receive([.record([.integer(1), nil, .integer(-3)])], of: "accelerometer")
    #expect(
      try await events.next("values")["values"]
        == ["kitchen": ["accelerometer": [["x": .integer(1), "z": .integer(-3)], .integer(1)]]])
  }

  @Test func eachValueOfAnEventIsTold() async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    await site.receive([.text("press_start"), .text("press_end")], of: "button_a")
    #expect(try await events.next("happened")["value"] == "press_start")
    let second = try await events.next("happened")
    #expect(
      second["value"] == "press_end" && second["device"] == "kitchen" && second["property"] == "button_a")
  }

  @Test("A device is told as a whole when it changes, and its id when it is gone")
  func devices() async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    #expect(
      try await site.post("device/options", #"{"id":"kitchen","options":{"name":"A & <i>"}}"#).status == 200)
    #expect(try await events.next("device")["name"] == "A & <i>")
    try await site.rename()
    #expect(try await events.next("removed") == ["id": "kitchen"])
    #expect(try await events.next("device")["id"] == "attic")
    #expect(try await site.post("device/remove", #"{"id":"attic"}"#).status == 200)
    // The gateway's list may come before or after.
    var (isGone, list) = (false, [JSONValue]())
    while !isGone || list.count < 2 {
      let (name, data) = try await events.next()
      if name == "removed" { isGone = data == ["id": "attic"] }
      if name == "gateway", case .array(let events)? = data["events"] { list = events }
    }
    #expect(list.compactMap { $0["text"]?.text } == ["was called kitchen before", "removed"])
    #expect(list.compactMap { $0["code"]?.text } == ["renamed", "removed"])
    #expect(list.first?["before"] == "kitchen")
  }

  @Test(
    "A reload that changes ids and properties leaves no device behind, and loses none",
    arguments: [("attic", "cellar"), ("hall", "kitchen")])
  func idsAndProperties(first: String, second: String) async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    try await site.reload(
      #"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"\#(first)","properties":["button_a"]},"#
        + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"\#(second)","properties":["temperature"]}"#)
    await site.receive([.text("press_start")], of: "button_a")
    var known = ["kitchen": "C5:A1:B2:C3:D4:E5", "hall": "C5:A1:B2:C3:D4:E6"]
    while case let (name, data) = try await events.next(), name != "happened" {
      guard name != "gateway", let id = data["id"]?.text else { continue }
      known[id] = name == "removed" ? nil : data["identifier"]?.text
    }
    #expect(known == [first: "C5:A1:B2:C3:D4:E5", second: "C5:A1:B2:C3:D4:E6"])
  }

  @Test("A device that is replaced and does not come back is gone, also while nobody looks")
  func replacedForGood() async throws {
    let site = try await SiteUnderTest()
    try await site.onLoop {
      let state = try #require(site.state)
      let device = try #require(state.device("kitchen"))
      state.detached(device, .replaced)
    }
    try await eventually("the device is gone") {
      try await site.onLoop { site.state?.gatewayJSON()["events"]?.elements.last?["text"] == "removed" }
    }
  }

  @Test("What went wrong with a device has a code and the words for a page in another language")
  func troubles() async throws {
    let site = try await SiteUnderTest()
    let events = try await site.onLoop { () -> [JSONValue] in
      let state = try #require(site.state)
      let kitchen = try #require(state.device("kitchen"))
      kitchen.commandChanged(.integer(5), for: "period", .failed(reason: "no answer"))
      var description = kitchen.device
      description.trouble = .connectFailed("le-connection-abort-by-local")
      kitchen.changed(.session, description)
      return state.gatewayJSON()["events"]?.elements.map { $0.setting("time", to: nil) } ?? []
    }
    #expect(
      events == [
        [
          "device": "kitchen", "text": "period: failed: no answer", "code": "not_set", "property": "period",
          "value": .integer(5), "reason": "no answer",
        ],
        [
          "device": "kitchen", "text": "cannot connect yet: le-connection-abort-by-local",
          "code": "connect_failed", "reason": "le-connection-abort-by-local",
        ],
      ])
  }

  @Test("A command is told, from wherever it comes, until its end")
  func writes() async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    #expect(
      try await site.post("property/set", #"{"id":"kitchen","property":"period","value":2000}"#).status == 200
    )
    let write = try await events.next("write")
    #expect(write["device"] == "kitchen" && write["property"] == "period")
    #expect(write["write"]?["status"] == "pending" && write["write"]?["requested"] == .integer(2000))
    #expect(write["desired"] == .integer(2000) && write["configured"] == nil)
    #expect(
      try await site.post("property/set", #"{"id":"kitchen","property":"period","value":3000}"#).status == 200
    )
    #expect(try await events.next("write")["write"]?["requested"] == .integer(3000))
    let restored = try await site.onLoop {
      let state = try #require(site.state)
      let device = WebDevice(try #require(state.device("kitchen")).device, state)
      return device.properties.compactMap(\.write).map { ($0.requested, $0.outcome) }
    }
    #expect(restored.count == 1 && restored[0] == (.integer(3000), .pending), "after a restart")
    let metrics = try await site.get("/metrics").body
    #expect(
      metrics.contains(#"microbit_gateway_writes_total{device="kitchen",result="superseded"} 1"# + "\n"))
  }

  @Test("A write is told with the desired value, and whether config.json has it")
  func configuredValues() async throws {
    let site = try await SiteUnderTest()
    try await site.reload(#"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen","period":1000}"#)
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    try await site.onLoop {
      let kitchen = try #require(site.state?.device("kitchen"))
      kitchen.commandChanged(.integer(5), for: "period", .failed(reason: "no answer"))
    }
    let write = try await events.next("write")
    #expect(write["desired"] == .integer(1000) && write["configured"] == .bool(true))
    let body = #"{"id":"kitchen","property":"period","value":2000}"#
    #expect(try await site.post("property/set", body).status == 200)
    let next = try await events.next("write")
    #expect(next["desired"] == .integer(2000) && next["configured"] == nil)
  }

  @Test("The gateway is told again when something else than its counters has changed")
  func counters() async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    func isToldAgain() async throws -> Bool? {
      try await site.onLoop {
        for stream in site.state?.streams ?? [] { stream.needsGateway = false }
        site.state?.tick()
        return site.state?.streams.contains(where: \.needsGateway)
      }
    }
    _ = try await isToldAgain()
    #expect(try await isToldAgain() == false)
    site.breakAdapter()
    while try await events.next("gateway")["healthy"] != .bool(false) {}
  }

  @Test("A device is told again when another gateway gets it, and gives it up")
  func owners() async throws {
    let site = try await SiteUnderTest()
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    let hall = try DeviceID("hall")
    site.give(hall, to: GatewayID(hostName: "attic"))
    let taken = try await events.next("device")
    #expect(taken["id"] == "hall" && taken["state"] == "used by the gateway attic")
    site.give(hall, to: nil)
    let back = try await events.next("device")
    #expect(back["id"] == "hall" && back["state"] == "not in range")
  }

  @Test("A value that its program has sent is set, corrected and described as other values are")
  func valuesOfAProgram() async throws {
    let site = try await SiteUnderTest()
    await site.receive(lines: ["soil:40"])
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    for value in ["soil", "unknown"] {
      let body = #"{"id":"kitchen","property":"values/\#(value)","value":50}"#
      _ = try await site.post("property/set", body)
    }
    var write = try await events.next("write")
    while write["property"] != "values/soil" { write = try await events.next("write") }
    #expect(write["write"]?["requested"] == .integer(50) && write["write"]?["status"] == "failed")
    let offset = #"{"id":"kitchen","options":{"values":{"soil":{"offset":2}}}}"#
    #expect(try await site.post("device/options", offset).status == 200)
    await site.receive(lines: ["soil:41"])
    let body = try await site.get("/api/devices").body
    guard case .array(let devices) = try JSONParser.parse(Array(body.utf8)) else { throw Failure(body) }
    let properties = try Self.properties(devices[1])
    let soil = try #require(properties["values/soil"])
    #expect(soil["value"] == .integer(43) && soil["offset"] == .integer(2), "\(soil)")
    #expect(soil["offset_configured"] == nil && soil["write"] == write["write"])
    #expect(properties["values/unknown"] == nil)
  }

  @Test(arguments: [("on", "true", "boolean"), ("soil", "40", "number"), ("mood", #""happy""#, "text")])
  func typesOfAProgramsValues(name: String, value: String, type: String) async throws {
    let site = try await SiteUnderTest()
    for _ in 0..<2 { await site.receive(lines: [#"{"\#(name)":\#(value)}"#]) }
    let body = try await site.get("/api/devices").body
    guard case .array(let devices) = try JSONParser.parse(Array(body.utf8)) else { throw Failure(body) }
    #expect(try Self.properties(devices[1])["values/\(name)"]?["type"] == .string(type))
  }

  @Test("A device is described with what the page needs of each property")
  func description() async throws {
    let site = try await SiteUnderTest()
    await site.receive([.integer(21)])
    let body = try await site.get("/api/devices").body
    guard case .array(let devices) = try JSONParser.parse(Array(body.utf8)) else { throw Failure(body) }
    #expect(devices.map { $0["id"] } == ["hall", "kitchen"])
    let kitchen = devices[1]
    #expect(
      kitchen["state"] == "not in range" && kitchen["session"] == "absent"
        && kitchen["online"] == .bool(false))
    #expect(kitchen["name"] == "<b>Kitchen</b>")
    let properties = try Self.properties(kitchen)
    #expect(
      properties["temperature"]?["type"] == "integer" && properties["temperature"]?["value"] == .integer(21))
    #expect(properties["temperature"]?["count"] == .integer(1) && properties["temperature"]?["unit"] == "°C")
    #expect(properties["period"]?["range"] == [.integer(20), .integer(65535)])
    #expect(
      properties["period"]?["writable"] == .bool(true)
        && properties["period"]?["title"] == "Measuring interval")
    #expect(properties["button_a"]?["kind"] == "event")
    #expect(properties["button_a"]?["values"] == ["press_end", "press_start", "long_press_start"])
    #expect(properties["accelerometer"]?["fields"] == ["x", "y", "z"])
    #expect(properties["led"]?["type"] == "picture" && properties["led"]?["rows"] == .integer(5))
  }

  @Test("A client that does not read gets the newest values later, and is told how many events it has missed")
  func slowReader() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/events HTTP/1.0\r\n\r\n")
    while try await client.line() != "event: ready" {}
    // More than the kernel and the server keep for a client.
    let texts = (0..<200).map { "\($0)" + String(repeating: "x", count: 500) }
    for round in 0..<200 {
      await site.receive(texts.map { .text($0) }, of: "uart_rx")
      await site.receive([.integer(round)])
      #expect(try await site.get("/health").status == 200)
    }
    await site.receive([.text("press_end")], of: "button_a")
    var (hasNewest, missed, happened) = (false, 0, 0)
    while let line = try await client.line() {
      if line.hasPrefix(#"data: {"happened":"#) { missed += Int(line.filter(\.isNumber)) ?? 0 }
      if line == "event: happened" { happened += 1 }
      if line.contains(#""temperature":[199,200]"#) { hasNewest = true }
      if line.contains(#""property":"button_a","value":"press_end""#) { break }
    }
    #expect(hasNewest && missed + happened == 40_001 && happened < 40_000, "\(missed), \(happened)")
  }

  @Test func thereAreAtMost32Streams() async throws {
    let site = try await SiteUnderTest()
    let streams = try await site.onLoop { [site] in
      (0..<33).map { _ in site.state?.addStream() != nil }
    }
    #expect(streams.filter { $0 }.count == 32)
    #expect(try await site.get("/api/events").status == 503)
  }

  @Test func aStreamForLookingEndsForOneThatIsForMore() async throws {
    let site = try await SiteUnderTest()
    let added = try await site.onLoop { [site] in
      [true, false, true, false].map { isReadOnly in
        var count = 0
        while count < 32, let stream = site.state?.addStream(isReadOnly: isReadOnly) {
          stream.onClose = { [weak stream] in stream?.end() }
          count += 1
        }
        return count
      }
    }
    #expect(added == [32, 32, 0, 0])
  }
}
