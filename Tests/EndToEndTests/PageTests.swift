import Glibc
import TestSupport
import Testing

/// What the gateway serves over HTTP.
@Suite struct PageTests {
  private static func http(_ port: ReservedPort, _ more: String = "") -> String {
    #""http":{"enabled":true,"port":\#(port.number)\#(more)}"#
  }

  private static func plan(_ port: ReservedPort, _ more: String = "") -> Plan {
    Plan(
      devices: 2,
      entries: #"{"match":{"name_prefix":"BBC micro:bit"},"properties":["temperature","period"]}"#,
      more: http(port, more))
  }

  /// A client of the events that has got the complete state.
  private static func events(_ port: ReservedPort) async throws -> LineClient {
    let client = try LineClient(port: port.number)
    client.send("GET /api/events HTTP/1.0\r\n\r\n")
    try await line(client) { $0.contains(#"{"devices":2,"#) }
    return client
  }

  @discardableResult
  private static func line(_ client: LineClient, _ isIt: (String) -> Bool) async throws -> String {
    let deadline = ContinuousClock.now + Fixture.patience
    while ContinuousClock.now < deadline, let line = try await client.line() { if isIt(line) { return line } }
    throw Failure("the events have ended, or have not what is awaited")
  }

  @Test("Values arrive live; a period that is set is confirmed for the page as well as by MQTT")
  func valuesAndWrites() async throws {
    let port = try ReservedPort()
    try await withFixture(Self.plan(port)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let client = try await Self.events(port)
      try await Self.line(client) { $0.contains(#""\#(id)":{"temperature":["#) }
      let answer = try await HTTPReply(
        "POST /api/request/property/set", port: port.number,
        body: #"{"id":"\#(id)","property":"period","value":70}"#)
      #expect(answer.status == 200 && answer.body.contains(#""status":"applied""#), "\(answer)")
      // An event of its own, or part of the device's description if that is due.
      try await Self.line(client) {
        $0.contains(#""\#(id)""#) && $0.contains(#""status":"applied","requested":70,"actual":70"#)
      }
      try await fixture.message("\(id)/period", "70")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/\(id)/period/set", "80")
      try await Self.line(client) { $0.contains(#""status":"applied","requested":80,"actual":80"#) }
      try await fixture.message("\(id)/period", "80", after: mark)
      #expect(
        try await HTTPReply(
          "POST /api/request/property/set", port: port.number,
          body: #"{"id":"\#(id)","property":"period","value":1}"#
        ).status == 400)
      let metrics = try await HTTPReply("GET /metrics", port: port.number).body
      #expect(metrics.contains(#"microbit_gateway_device_connected{device="\#(id)"} 1"#))
      #expect(metrics.contains("microbit_gateway_mqtt_connected 1\n"))
      #expect(try await fixture.stopGateway() == 0)
      await #expect(throws: Failure.self) { try await Self.line(client) { _ in false } }
    }
  }

  @Test("The broker is away: the page goes on, and says so")
  func brokerOutage() async throws {
    let port = try ReservedPort()
    try await withFixture(Self.plan(port)) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let client = try await Self.events(port)
      try await Self.line(client) { $0.contains(#""connected":true,"connected_since""#) }
      try await fixture.killBroker()
      let gateway = try await Self.line(client) { $0.contains("no connection to the broker") }
      #expect(gateway.contains(#""connected":false"#) && gateway.contains(#""healthy":false"#))
      #expect(try await HTTPReply("GET /health", port: port.number).status == 503)
      try await Self.line(client) { $0.contains(#""\#(id)":{"temperature":["#) }
      try await fixture.restartBroker()
      try await Self.line(client) {
        $0.contains(#""connected":true,"connected_since""#) && $0.contains("no connection to the broker")
      }
      #expect(try await HTTPReply("GET /health", port: port.number).status == 200)
    }
  }

  @Test("A reload starts, moves and stops it, and changes the password; doctor and check say where it is")
  func reload() async throws {
    let (port, other) = (try ReservedPort(), try ReservedPort())
    var plan = Self.plan(port)
    plan.more = #""http":{"enabled":false,"port":\#(port.number)}"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let mark = try fixture.observer.mark
      await #expect(throws: Failure.self) { try await HTTPReply("GET /health", port: port.number) }
      func write(_ http: String) throws {
        let text = fixture.configuration(fixture.plan.entries).replacing(fixture.plan.more, with: http)
        try fixture.folder.write(text, to: "config.json")
      }
      func reload(_ http: String) async throws {
        try write(http)
        #expect(try await fixture.perform("reload")["restart_required"] == .array([]))
      }
      try await reload(Self.http(port))
      try await fixture.logged("the page is served")
      #expect(try await HTTPReply("GET /api/devices", port: port.number).body.contains(#""id":"\#(id)""#))
      #expect(try await fixture.command(["doctor"]).text.contains("http://127.0.0.1:\(port.number)/"))
      #expect(try await fixture.check().contains("http://127.0.0.1:\(port.number)/"))
      let client = try await Self.events(port)
      try fixture.folder.write("secret\n", to: "http-password")
      // The page that moves answers before.
      try write(Self.http(other, #","address":"127.0.0.1","password_file":"http-password""#))
      let answer = try await HTTPReply("POST /api/request/reload", port: port.number, body: "{}")
      #expect(answer.status == 200 && answer.body.contains(#""restart_required":[]"#), "\(answer.body)")
      await #expect(throws: Failure.self) { try await Self.line(client) { _ in false } }
      try await fixture.logged("url=http://127.0.0.1:\(other.number)/")
      #expect(try await HTTPReply("GET /health", port: other.number).status == 401)
      await #expect(throws: Failure.self) { try await HTTPReply("GET /health", port: port.number) }
      // A mistake, as `check` says: nothing changes.
      try fixture.folder.write("\n", to: "http-password")
      #expect(try await fixture.refusal("reload").contains("http.password_file: "))
      #expect(try await HTTPReply("GET /health", port: other.number).status == 401)
      try await reload(fixture.plan.more)
      await #expect(throws: Failure.self) { try await HTTPReply("GET /health", port: other.number) }
      #expect(try fixture.stayedOnline(id, after: mark))
    }
  }
}
