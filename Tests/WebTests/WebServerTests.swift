import Findings
import GATT
import Glibc
import JSON
import Sockets
import TestSupport
import Testing

@testable import Web

@Suite struct WebServerTests {
  private static func json(_ reply: HTTPReply) throws -> JSONValue {
    try JSONParser.parse(Array(reply.body.utf8))
  }

  private static let answers: [(String, String, Int)] = [
    ("GET /api/gateway", #""id":"here""#, 200),
    ("GET /api/devices", #""id":"hall""#, 200),
    ("HEAD /api/devices", "", 200),
    ("GET /metrics", "microbit_gateway_info{version=\"1.2.3\"} 1\n", 200),
    ("GET /health", #""healthy":true"#, 200),
    ("GET /api/history/kitchen.csv", "time\r\n", 200),
    ("GET /api/history/%6bitchen.csv", "time\r\n", 200),
    ("GET /api/history/%EC%98%A8%.csv", "no device is called", 404),
    ("GET /api/history/kitchen.csv?hours=1", "time\r\n", 200),
    ("GET /api/history/kitchen.csv?hours=0", "hours must be", 400),
    ("GET /api/history/kitchen.csv?hours=x", "hours must be", 400),
    ("GET /api/history/attic.csv", "no device is called", 404),
    ("GET /api/history/../kitchen.csv", "no device is called", 404),
    ("GET /api/history/.csv", "no device is called", 404),
    ("GET /api/record/lesson.csv", "there is no recording", 404),
    ("GET /api/record/..%2flesson.csv", "there is no recording", 404),
    ("GET /api/record/lesson.csv?layout=x", "layout must be", 400),
    ("POST /api/record/lesson.csv", "Content-Length", 411),
    ("GET /", "<!doctype html>", 200),
    ("GET /page.html", "not_found", 404),
    ("GET /../../etc/passwd", "not_found", 404),
    ("GET /%2e%2e/etc/passwd", "not_found", 404),
    ("GET //", "not_found", 404),
    ("DELETE /api/devices", "another method", 405),
    ("POST /api/devices", "Content-Length", 411),
    ("GET /api/request/health", "another method", 405),
    ("TRACE /", "another method", 405),
    ("OPTIONS /api/request/health", "another method", 405),
  ]

  @Test("Paths, methods and queries", arguments: answers)
  func answer(request: String, part: String, status: Int) async throws {
    let site = try await SiteUnderTest()
    let reply = try await HTTPReply(request, port: site.port.number)
    #expect(reply.status == status && reply.body.contains(part), "\(reply)")
    #expect(part.isEmpty == reply.body.isEmpty)
    // Only the files of the page are kept.
    #expect(reply.headers.contains("Cache-Control: \(request == "GET /" ? "no-cache" : "no-store")"))
    #expect(!reply.headers.contains { $0.hasPrefix("Server") } && !reply.body.contains("secret-path"))
  }

  /// A client may still be reading a list of devices when one of them goes.
  @Test func aDeviceThatHasGoneHasNoValues() async throws {
    let site = try await SiteUnderTest()
    await site.receive([.integer(21)])
    #expect(try await site.get("/api/devices").body.contains(#""value":21"#))
    let json = try await site.onLoop { [site] in
      let device = try #require(site.state?.device("kitchen"))
      _ = try site.engine.remove(device.device.id)
      return site.state?.json(device)
    }
    #expect(json?["id"] == "kitchen")
    #expect(json?["properties"]?.elements.isEmpty == false)
    #expect(json?["properties"]?.elements.allSatisfy { $0["value"] == nil } == true)
  }

  @Test("A recording is sent while the loop goes on, to whoever has a password")
  func recording() async throws {
    let site = try await SiteUnderTest(http: #","password_file":"FOLDER/password""#)
    let login = "Authorization: Basic YTpzZWNyZXQ="
    #expect(try await site.post("record/start", #"{"name":"lesson"}"#, [login]).status == 200)
    #expect(try await site.post("record/start", "{}", [login]).status == 409)
    let count = 20_000
    await site.receive((0..<count).map { .integer($0 % 100) })
    #expect(try await site.get("/api/gateway", [login]).body.contains(#""recording":{"name":"lesson","#))
    let ended = try Self.json(try await site.post("record/stop", "{}", [login]))
    #expect(ended["data"]?["readings"] == .integer(count))
    #expect(try await site.get("/api/record/lesson.csv").status == 401)
    for layout in ["", "?layout=wide"] {
      let reply = try await site.get("/api/record/lesson.csv\(layout)", [login])
      #expect(reply.body.split(separator: "\r\n").count == count + 1)
    }
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/record/lesson.csv HTTP/1.0\r\n\(login)\r\n\r\n")
    // As some programs do after their last request.
    client.endSending()
    #expect(try await client.rest().split(separator: "\r\n").count > count)
    #expect(try await HTTPReply("HEAD /api/record/lesson.csv", port: site.port.number, [login]).body.isEmpty)
    #expect(await site.observers() == 1)
  }

  @Test func theGatewayIsUnhealthy() async throws {
    let site = try await SiteUnderTest()
    site.breakAdapter()
    #expect(try await site.get("/health").status == 503)
    #expect(try await site.get("/metrics").body.contains("microbit_gateway_adapter_on{adapter=\"hci0\"} 0\n"))
  }

  @Test func theAddressIsReportedAndAPortThatIsTakenToo() async throws {
    let site = try await SiteUnderTest()
    #expect(site.url == "http://127.0.0.1:\(site.port.number)/" && site.problem == nil)
    let other = try await SiteUnderTest(port: site.port)
    #expect(
      other.url == nil && other.problem?.contains("Address already in use (choose another port") == true)
    #expect(await other.observers() == 0)
  }

  // MARK: Requests

  private static let requests: [(String, String, Int, String)] = [
    ("health", "", 200, #""healthy":true"#),
    ("health", "{}", 200, #""healthy":true"#),
    ("devices", #"{"transaction":"a"}"#, 200, #""transaction":"a""#),
    ("devices", #"{"transaction":23}"#, 200, #""transaction":23"#),
    ("devices", #"{"transaction":[23]}"#, 400, "the transaction is not a text"),
    ("fly", "{}", 400, "unknown request"),
    ("health", "[", 400, "not valid JSON"),
    ("property/get", #"{"id":"attic","property":"temperature"}"#, 404, "no device is called attic"),
    ("property/set", #"{"id":"kitchen","property":"period","value":1}"#, 400, "below the smallest period"),
    ("property/set", #"{"id":"kitchen","property":"period","value":2000}"#, 200, #""status":"pending""#),
    ("property/get", #"{"id":"kitchen","property":"temperature"}"#, 503, "unavailable"),
    ("device/remove", #"{"id":"hall"}"#, 200, #""id":"hall""#),
  ]

  @Test func thePageIsServedAtEachOfSeveralAddresses() async throws {
    let site = try await SiteUnderTest(http: #","address":["127.0.0.1","127.0.0.2"]"#)
    for server: UInt8 in [1, 2] {
      let client = try LineClient(port: site.port.number, to: server)
      client.send("GET /health HTTP/1.0\r\n\r\n")
      #expect(try await HTTPReply(client.rest()).status == 200)
    }
  }

  @Test("Requests are answered as everywhere, and have a status", arguments: requests)
  func request(verb: String, body: String, status: Int, part: String) async throws {
    let reply = try await SiteUnderTest().post(verb, body)
    #expect(reply.status == status && reply.body.contains(part), "\(reply)")
  }

  /// A command for a device that is offline waits for an hour.
  @Test func requestsOfClientsThatHaveGoneAreNotCounted() async throws {
    let site = try await SiteUnderTest()
    let body = #"{"id":"kitchen","property":"uart_tx","value":"x","ttl":3600}"#
    var clients = try (0..<WebSite.mostRequests).map { _ in try LineClient(port: site.port.number) }
    for client in clients {
      client.resetAtEnd()
      client.send(
        "POST /api/request/property/set HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    try await eventually("all run") { try await site.post("devices", "{}").status == 503 }
    clients = []
    try await eventually("none is counted") { try await site.post("devices", "{}").status == 200 }
  }

  @Test func aPageOfAnotherOriginMayNotPost() async throws {
    let site = try await SiteUnderTest()
    #expect(
      try await site.post("health", "", ["Host: localhost", "Origin: http://evil.example"]).status == 403)
    #expect(try await site.get("/api/devices", ["Host: evil.example"]).status == 421)
  }

  @Test func aPasswordIsAskedForOnEveryPath() async throws {
    let site = try await SiteUnderTest(http: #","password_file":"FOLDER/password""#)
    for path in ["/", "/api/devices", "/api/events", "/metrics", "/health", "/nothing"] {
      let reply = try await site.get(path)
      #expect(reply.status == 401 && reply.headers.contains { $0.hasPrefix("WWW-Authenticate: Basic") })
    }
    #expect(try await site.get("/health", ["Authorization: Basic YTpzZWNyZXQ="]).status == 200)
    #expect(try await site.get("/health", ["Authorization: Basic YTp3cm9uZw=="]).status == 401)
  }

  @Test("With the password for reading everything is seen, and nothing changed")
  func readPassword() async throws {
    let site = try await SiteUnderTest(
      http: #","password_file":"FOLDER/password","read_password_file":"FOLDER/look""#)
    let (all, look) = (["Authorization: Basic YTpzZWNyZXQ="], ["Authorization: Basic YTpsb29r"])
    for path in ["/api/devices", "/metrics", "/health", "/api/history/kitchen.csv"] {
      #expect(try await site.get(path, look).status == 200)
    }
    #expect(try await site.post("device/remove", #"{"id":"hall"}"#, look).status == 403)
    #expect(try await site.get("/api/gateway", look).body.contains(#""read_only":true"#))
    #expect(try await !site.get("/api/gateway", all).body.contains("read_only"))
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/events HTTP/1.0\r\n\(look[0])\r\n\r\n")
    while try await client.line() != "event: gateway" {}
    #expect(try await client.line()?.contains(#""read_only":true"#) == true)
    #expect(try await site.post("device/remove", #"{"id":"hall"}"#, all).status == 200)
  }

  @Test func withoutItsPasswordNothingIsServed() async throws {
    let site = try await SiteUnderTest(http: #","password_file":"FOLDER/absent""#)
    #expect(site.url == nil && site.problem?.contains("http.password_file") == true, "\(site.problem ?? "")")
    await #expect(throws: Failure.self) { try await site.get("/health") }
  }

  // MARK: Proxies

  /// Passes one request on as Home Assistant's ingress did before 2026.3, and what is answered too: a text compressed, so
  /// that nothing arrives before there is enough of it.
  private static func throughIngress(_ site: SiteUnderTest, _ path: String) async throws -> [String] {
    let client = try LineClient(port: site.port.number, from: 3)
    let headers = [
      "Host: localhost:8123", "X-Ingress-Path: /api/hassio_ingress/token",
      "X-Forwarded-Host: localhost:8123", "X-Forwarded-Proto: http", "Accept: */*",
      "Accept-Encoding: gzip, deflate",
    ]
    client.send("GET \(path) HTTP/1.1\r\n\(headers.joined(separator: "\r\n"))\r\n\r\n")
    var type = ""
    while let line = try await client.line(), line != "\r" {
      if line.hasPrefix("Content-Type: ") {
        type = line.dropFirst(14).split { $0 == ";" || $0 == "\r" }.map(String.init)[0]
      }
    }
    let compressed = ["json", "xml", "javascript"].contains(where: type.contains)
    let isCompressed =
      type.hasPrefix("application/")
      ? compressed : !["image/", "video/", "audio/", "font/"].contains(where: type.hasPrefix)
    guard !isCompressed else { return [] }
    var lines: [String] = []
    while let line = try await client.line(), line != "event: ready" { lines.append(line) }
    return lines
  }

  @Test("Events arrive through an ingress that compresses texts")
  func ingress() async throws {
    let site = try await SiteUnderTest(http: #","proxy":"127.0.0.3""#)
    let lines = try await Self.throughIngress(site, "/api/events")
    #expect(lines.contains("event: device"), "\(lines)")
  }

  @Test func eventsAreKeptFromProxiesThatCollectOrCompress() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    var headers: Set<String> = []
    while let line = try await client.line(), line != "\r" { headers.insert(line) }
    #expect(
      headers.isSuperset(of: [
        "Content-Type: text/event-stream\r", "X-Accel-Buffering: no\r",
        "Cache-Control: no-store, no-transform\r",
      ]))
  }

  // MARK: Connections

  @Test func requestsFollowOneAnotherOnAConnection() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    let request = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client.send(request + request + request.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n"))
    let text = try await client.rest()
    #expect(text.split(separator: "HTTP/1.1 404").count == 3, "\(text)")
  }

  @Test func aListIsSentInChunks() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/devices HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let reply = try HTTPReply(try await client.rest())
    #expect(reply.headers.contains("Transfer-Encoding: chunked") && reply.body.hasSuffix("\r\n0\r\n\r\n"))
  }

  @Test(
    "A client that sends what is no request, or too much, gets the reason, also while it goes on sending",
    arguments: [
      ("\u{16}\u{3}\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n", 413),
      ("GET /" + String(repeating: "a", count: 70_000), 431),
    ])
  func nonsense(text: String, status: Int) async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send(text + String(repeating: "x", count: 100_000))
    let reply = try HTTPReply(try await client.rest())
    #expect(reply.status == status)
    #expect(try await site.get("/health").status == 200)
  }

  @Test("What a client sends while it is answered waits in the kernel, and the answer goes on")
  func floodDuringAnswer() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while try await client.line() != "event: ready" {}
    // The kernel keeps some MiB for both ends.
    #expect(await client.flood(most: 300 << 20) < 32 << 20)
    await site.receive([.integer(21)])
    while try await client.line()?.contains(#""temperature":[21,1]"#) == false {}
  }

  @Test("A client that asks without reading is refused before its answers fill the memory")
  func answersThatNobodyReads() async throws {
    let site = try await SiteUnderTest()
    // More than the kernel keeps for both ends.
    site.report([.ok(.gateway, String(repeating: "x", count: 3_000_000))])
    var clients = try (0..<16).map { _ in try LineClient(port: site.port.number) }
    for client in clients { client.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    for _ in 0..<100 where try await site.get("/nothing").status == 404 {}
    #expect(try await site.get("/nothing").status == 503)
    clients = []
    while try await site.get("/nothing").status != 404 {}
  }

  @Test("Of 1,000 connections few are served; further ones of an address are closed, those of others wait")
  func flood() async throws {
    let site = try await SiteUnderTest()
    let request = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    func served(_ host: UInt8) async throws -> [LineClient] {
      var clients: [LineClient] = []
      for _ in 0..<HTTPClients.mostOfPeer {
        let client = try LineClient(port: site.port.number, from: host)
        client.send(request)
        #expect(try await client.line() == "HTTP/1.1 404 Error\r")
        clients.append(client)
      }
      return clients
    }
    let clients = try await served(1)
    for number in 0..<(1000 - HTTPClients.most) {
      // The served clients are not idle for long.
      clients[number % clients.count].send(request)
      let further = try LineClient(port: site.port.number)
      try #require(try await further.line() == nil)
    }
    let others = try await served(2)
    let waiting = try LineClient(port: site.port.number, from: 3)
    waiting.send(request)
    clients[1].send(request)
    #expect(try await clients[1].line() != nil)
    for client in clients + others {
      client.endSending()
      _ = try await client.rest()
    }
    #expect(try await waiting.line() == "HTTP/1.1 404 Error\r")
    #expect(try await site.get("/health").status == 200)
  }

  @Test("Clients without the password, or with that for reading, do not take all connections")
  func whoMayChangeSomethingComesFirst() async throws {
    let site = try await SiteUnderTest(
      http: #","password_file":"FOLDER/password","read_password_file":"FOLDER/look""#)
    for authorization in ["", "Authorization: Basic YTpsb29r\r\n"] {
      let status = authorization.isEmpty ? 401 : 404
      var clients: [LineClient] = []
      for host in [2, 3] as [UInt8] {
        for _ in 0..<HTTPClients.mostOfPeer {
          let client = try LineClient(port: site.port.number, from: host)
          client.send("GET /nothing HTTP/1.1\r\nHost: a\r\n\(authorization)\r\n")
          #expect(try await client.line() == "HTTP/1.1 \(status) Error\r")
          clients.append(client)
        }
      }
      #expect(try await site.get("/health", ["Authorization: Basic YTpzZWNyZXQ="]).status == 200)
      // The oldest one was ended, the newest not.
      while try await clients[0].line() != nil {}
      clients[63].send("GET / HTTP/1.1\r\n\r\n")
      while try await clients[63].line()?.hasPrefix("HTTP/1.1") == false {}
      for client in clients { client.endSending() }
      for client in clients { _ = try await client.rest() }
    }
  }

  @Test func theKernelEndsConnectionsThatAcknowledgeNothingForAMinute() {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    _ = TCPSocket.peer(of: descriptor)
    var (timeout, size) = (UInt32(0), socklen_t(MemoryLayout<UInt32>.size))
    getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &timeout, &size)
    #expect(timeout == 60_000)
  }

  @Test func nothingRemainsWhenItStops() async throws {
    let site = try await SiteUnderTest()
    #expect(await site.observers() == 1)
    let events = try await EventClient(site)
    _ = try await events.next("ready")
    try await site.stop()
    #expect(await site.observers() == 0 && site.url == nil)
    await #expect(throws: Failure.self) { try await events.next("nothing") }
    await #expect(throws: Failure.self) { try await site.get("/health") }
  }
}
