import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Devices
@testable import Web

/// The table of a device's history, and what Prometheus gets.
@Suite struct HistoryAndMetricsTests {
  @Test("A number that is too large for a point is shown, and has no point")
  func tooLargeForAPoint() async throws {
    let site = try await SiteUnderTest()
    await site.receive(lines: ["big:1e308", "big:1e308", "big:-1e308"])
    #expect(try await site.get("/api/devices").body.contains(#""name":"values/big""#))
    let rows = try await site.get("/api/history/kitchen.csv").body
    #expect(!rows.contains("inf") && !rows.contains("nan"), "\(rows)")
  }

  @Test("Names of any script are as they were sent: in devices, metrics, the table, and requests")
  func namesOfAnyScript() async throws {
    let site = try await SiteUnderTest()
    let names = ["온도", "температура", "حرارة", "ueberdruck"]
    // Known from the second line on; the third is a point of the history in any case.
    for _ in 0..<3 { await site.receive(lines: names.map { "\($0):24" }) }
    let devices = try await site.get("/api/devices").body
    let metrics = try await site.get("/metrics").body
    let header = try await site.get("/api/history/kitchen.csv").body.split(separator: "\r\n")[0]
    for name in names {
      #expect(devices.contains(#""name":"values/\#(name)""#), "\(name): \(devices)")
      #expect(metrics.contains(#"property="values/\#(name)""#), "\(name): \(metrics)")
      #expect(header.contains("values/\(name)"), "\(name): \(header)")
      let body = #"{"id":"kitchen","property":"values/\#(name)","value":25}"#
      let reply = try await site.post("property/set", body)
      #expect(!reply.body.contains("not_found"), "\(name): \(reply)")
    }
  }

  @Test func theHistoryOfADeviceIsATable() async throws {
    let site = try await SiteUnderTest()
    await site.receive([.integer(20), .integer(21)])
    await site.receive([.record([.integer(1), nil, .integer(-3)])], of: "accelerometer")
    await site.receive([.text("=1+1")], of: "uart_rx")
    let lines = try await site.get("/api/history/kitchen.csv").body.split(separator: "\r\n")
    #expect(
      lines.first
        == "time,temperature (°C),accelerometer.x (mg),accelerometer.z (mg)")
    // Two, if a minute has just begun.
    #expect(lines.count > 1 && lines.last?.hasSuffix("1,-3") == true, "\(lines)")
  }

  @Test("A value that is removed while its history is downloaded leaves its column empty from then on")
  func valueIsRemovedDuringADownload() async throws {
    let site = try await SiteUnderTest()
    for _ in 0..<3 { await site.receive(lines: ["soil:40", "air:21"]) }
    let table = try await site.onLoop { () -> String in
      let state = try #require(site.state)
      let body = HistoryTable.body(try #require(state.device("kitchen")), hours: 24, state)
      let header = body.next() ?? []
      try site.engine.removeValue(try #require(ValueKey("soil")), of: try DeviceID("kitchen"))
      var bytes = header
      while let part = body.next() { bytes += part }
      return String(decoding: bytes, as: UTF8.self)
    }
    let lines = table.split(separator: "\r\n")
    #expect(lines.first == "time,values/air,values/soil" || lines.first == "time,values/soil,values/air")
    #expect(lines.count > 1 && lines.dropFirst().allSatisfy { $0.contains("21") && !$0.contains("40,") })
  }

  @Test func prometheusGetsWhatItKnows() async throws {
    let site = try await SiteUnderTest()
    await site.receive([.integer(20), .integer(-21)])
    await site.receive([.record([.integer(1), nil, .integer(-3)])], of: "accelerometer")
    let text = try await site.get("/metrics").body
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for line in [
      #"microbit_gateway_readings_total{device="kitchen",property="temperature"} 2"#,
      #"microbit_gateway_value{device="kitchen",property="temperature",field="",unit="°C"} -21"#,
      #"microbit_gateway_value{device="kitchen",property="accelerometer",field="z",unit="mg"} -3"#,
      #"microbit_gateway_device_connected{device="hall"} 0"#,
      #"microbit_gateway_device_info{device="kitchen",name="<b>Kitchen</b>",area="",identifier="C5:A1:B2:C3:D4:E5"} 1"#,
      "# TYPE microbit_gateway_readings_total counter", "microbit_gateway_spool_messages 3", "",
    ] {
      #expect(lines.contains(line[...]), "\(line) in \(text)")
    }
    // A gateway that only knows the device would raise an alert for it.
    site.give(try DeviceID("hall"), to: GatewayID(hostName: "attic"))
    #expect(try await !site.get("/metrics").body.contains(#"device_connected{device="hall"}"#))
    // A family is in one piece.
    let names = lines.filter { !$0.isEmpty && !$0.hasPrefix("#") }.map {
      $0.prefix { $0 != "{" && $0 != " " }
    }
    let changes = zip(names, names.dropFirst()).count { $0 != $1 }
    #expect(changes + 1 == Set(names).count)
    #expect(Metrics.escaped("a\"b\\c\nd") == #"a\"b\\c·d"#)
  }

  @Test("Metrics have no property that the program of the device no longer has")
  func metricsOfAPropertyThatIsGone() async throws {
    let site = try await SiteUnderTest()
    try await site.reload(#"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"}"#)
    await site.receive([.integer(21)])
    #expect(try await site.get("/metrics").body.contains(#"value{device="kitchen",property="temperature""#))
    try await site.onLoop {
      let kitchen = try #require(site.state?.device("kitchen"))
      var description = kitchen.device
      description.learn(offered: ["period"], usable: ["period"], isNewLink: true)
      kitchen.changed(.description, description)
    }
    #expect(try await !site.get("/metrics").body.contains(#"property="temperature""#))
  }
}
