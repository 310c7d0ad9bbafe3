import Configuration
import Devices
import EventLoop
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Web

/// The page for set-up, over HTTP.
@Suite struct SetupSiteTests {
  /// A gateway whose situation and answers are the test's.
  private final class Host: SetupHost, Sendable {
    private let submitted = Mutex<[JSONValue]>([])
    let waiter = Waiter<Void>()
    nonisolated let isSlow: Bool
    nonisolated let problem: JSONValue?

    nonisolated init(isSlow: Bool = false, problem: JSONValue? = nil) {
      (self.isSlow, self.problem) = (isSlow, problem)
    }

    nonisolated var all: [JSONValue] { submitted.withLock { $0 } }
    nonisolated var count: Int { all.count }
    var situation: JSONValue { ["broker": .bool(true)] }

    func submit(_ answers: JSONValue) async -> JSONValue? {
      submitted.withLock { $0.append(answers) }
      if isSlow { try? await waiter.value() }
      return problem
    }
  }

  @LoopActor private final class Site: Sendable {
    nonisolated let port: ReservedPort
    nonisolated let host: Host
    private let site: SetupSite
    private(set) var code: String

    init(_ host: Host = Host(), lifetime: Duration? = nil) async throws {
      port = try ReservedPort()
      self.host = host
      var http = Configuration.HTTP()
      http.port = Int(port.number)
      site = SetupSite(http, host: host)
      if let lifetime { site.lifetime = lifetime }
      code = try #require(try site.open().get()["code"]?.text)
    }

    deinit {
      // The site's host lives as long as the site serves.
      let (site, host) = (site, host)
      loop.onLoop { withExtendedLifetime(host) { site.close() } }
    }

    /// Tells the code again, as the command does.
    func tell() throws -> String? { try site.open().get()["code"]?.text }
    func close() { site.close() }
    /// The timer that ends it.
    var end: LoopTimer? { site.end }

    /// Tells the code, and connects before its time can end.
    func connect() throws -> (code: String?, client: LineClient) {
      (try tell(), try LineClient(port: port.number))
    }

    nonisolated func post(_ verb: String, _ body: String, _ headers: [String] = []) async throws -> HTTPReply
    {
      try await HTTPReply("POST /api/setup/\(verb)", port: port.number, headers, body: body)
    }

    func submit() async throws -> HTTPReply {
      try await post("submit", #"{"code":"\#(code)","answers":{"page":"computer"}}"#)
    }
  }

  @Test func whoeverHasTheCodeSetsTheGatewayUp() async throws {
    let site = try await Site()
    let code = await site.code
    #expect(try await site.post("situation", #"{"code":"\#(code)"}"#).body == #"{"broker":true}"#)
    let reply = try await site.submit()
    #expect(reply.status == 200, "\(reply)")
    #expect(site.host.all == [["page": "computer"]])
    let late = try await site.submit()
    #expect(late.status == 409 && late.body.hasPrefix(#"{"reason":"done","time":"20"#), "\(late)")
    #expect(site.host.count == 1)
    await site.close()
    await #expect(throws: Failure.self) { try await site.submit() }
  }

  @Test func afterItsTimeNothingIsServedAndThenThereIsAnotherCode() async throws {
    let site = try await Site(lifetime: .milliseconds(50))
    let (code, client) = try await site.connect()
    #expect(try await client.rest() == "")
    #expect(throws: Failure.self) { try LineClient(port: site.port.number) }
    let told = try #require(try await site.tell())
    #expect(told != code)
  }

  @Test func itsTimeBeginsAnewWhenTheCodeIsToldAgainAndNotByWrongCodes() async throws {
    let site = try await Site()
    let first = try #require(await site.end)
    _ = try await site.tell()
    let second = try #require(await site.end)
    #expect(await !first.isPending)
    for _ in 1...SetupSession.tries { _ = try await site.post("situation", #"{"code":"ABCD"}"#) }
    #expect(await site.end === second)
    #expect(await second.isPending)
  }

  @Test func oneSubmissionAtATime() async throws {
    let site = try await Site(Host(isSlow: true))
    async let first = site.submit()
    try await eventually("the first is being tried") { site.host.count == 1 }
    let second = try await site.submit()
    #expect(second.status == 503 && second.body == #"{"reason":"busy"}"#)
    site.host.waiter.resume(.success(()))
    #expect(try await first.status == 200)
  }

  @Test func theBrowserWhoseAnswersAreTriedKeepsItsConnection() async throws {
    let site = try await Site(Host(isSlow: true))
    async let reply = site.submit()
    try await eventually("they are being tried") { site.host.count == 1 }
    var clients: [LineClient] = []
    for number in 1..<HTTPClients.most {
      clients.append(try LineClient(port: site.port.number, from: number % 2 == 0 ? 2 : 3))
      clients[number - 1].send("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
      #expect(try await clients[number - 1].line() == "HTTP/1.1 404 Error\r")
    }
    // There is room again: the oldest of the others was ended.
    while try await clients[0].line() != nil {}
    site.host.waiter.resume(.success(()))
    #expect(try await reply.status == 200)
  }

  @Test func aProblemIsToldAndTheNextTryMayWin() async throws {
    let site = try await Site(Host(problem: ["reason": "broker"]))
    for _ in 0..<2 {
      let reply = try await site.submit()
      #expect(reply.status == 409 && reply.body == #"{"reason":"broker"}"#)
    }
  }

  private static let refused: [(String, String, [String], Int)] = [
    ("situation", "{}", [], 400), ("situation", "[", [], 400), ("situation", #"{"code":1}"#, [], 400),
    ("situation", #"{"code":"CODE"}"#, ["Host: evil.example"], 421),
    ("situation", #"{"code":"CODE"}"#, ["Host: evil.example:PORT"], 421),
    ("situation", #"{"code":"CODE"}"#, ["Host: 127.0.0.1:PORT", "Origin: http://evil.example"], 403),
    ("situation", #"{"code":"CODE"}"#, ["Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:1"], 403),
    ("situation", #"{"code":"CODE"}"#, ["Host: 127.0.0.1:PORT", "Origin: null"], 403),
    ("situation", #"{"code":"CODE"}"#, ["Content-Type: text/plain"], 415),
    ("submit", #"{"code":"CODE"}"#, ["Content-Type: application/x-www-form-urlencoded"], 415),
    ("reset", #"{"code":"CODE"}"#, [], 404),
    ("situation", #"{"code":"CODE"}"#, ["Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:PORT"], 200),
  ]

  @Test("Who may not ask gets nothing, even with the code", arguments: refused)
  func refusals(verb: String, body: String, headers: [String], status: Int) async throws {
    let site = try await Site()
    let code = await site.code
    let port = "\(site.port.number)"
    // The first of two types counts.
    let reply = try await site.post(
      verb, body.replacing("CODE", with: code), headers.map { $0.replacing("PORT", with: port) })
    #expect(reply.status == status, "\(reply)")
    #expect(site.host.count == 0)
    #expect(status != 421 || reply.body.contains(#""error":"open http://"#), "\(reply)")
  }

  @Test func nothingElseIsServed() async throws {
    let site = try await Site()
    for path in [
      "/api/gateway", "/api/devices", "/api/events", "/metrics", "/health", "/setup.js", "/../etc/passwd",
    ] {
      #expect(try await HTTPReply("GET \(path)", port: site.port.number).status == 404)
    }
    for path in ["/", "/page.css", "/page.js", "/language.js", "/texts/de.json"] {
      let reply = try await HTTPReply("GET \(path)", port: site.port.number)
      #expect(reply.status == 200 && reply.headers.contains { $0.hasPrefix("Content-Security-Policy: ") })
    }
    #expect(try await HTTPReply("GET /api/setup/situation", port: site.port.number).status == 405)
    #expect(try await site.post("", "{}").status == 404)
  }

  @Test func wrongCodesMakeAnotherOneAndHaveToWait() async throws {
    let site = try await Site()
    let wait = #"{"reason":"wait","seconds":"#
    var answers: [String] = []
    // The first wait is a second, which a busy machine lets pass before the next code; each is twice as long as the last.
    while answers.count < 13, answers.last?.hasPrefix(wait) != true {
      answers.append(try await site.post("situation", #"{"code":"ABCD"}"#).body)
    }
    #expect(answers.prefix(4).allSatisfy { $0 == #"{"reason":"wrong"}"# }, "\(answers)")
    #expect(answers.dropFirst(4).first == #"{"reason":"renewed"}"#, "\(answers)")
    #expect(answers.last?.hasPrefix(wait) == true, "\(answers)")
    let code = await site.code
    let told = try #require(try await site.tell())
    #expect(told != code)
  }

  /// In all ways to ask, a few hundred on each connection.
  @Test func aHostileClientGetsNothingInTenThousandTries() async throws {
    let site = try await Site()
    let port = site.port.number
    var random = SystemRandomNumberGenerator()
    var statuses: [Substring: Int] = [:]
    for round in 0..<20 {
      let client = try LineClient(port: port)
      var requests = ""
      for index in 0..<500 {
        let code = String(random.next() as UInt64, radix: 32, uppercase: true).prefix(8)
        let body = #"{"code":"\#(code)","answers":{"page":"computer"},"password_file":"/etc/shadow"}"#
        let host = (round + index) % 3 == 0 ? "evil.example" : "127.0.0.1:\(port)"
        let verb = index % 2 == 0 ? "submit" : "situation"
        let last = index == 499 ? "Connection: close\r\n" : ""
        requests +=
          "POST /api/setup/\(verb) HTTP/1.1\r\nHost: \(host)\r\n\(last)Content-Type: application/json\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        if index % 50 == 49 {
          client.send(requests)
          requests = ""
        }
      }
      for line in try await client.rest().split(separator: "\r\n") where line.contains("HTTP/1.1 ") {
        statuses[line.suffix(9), default: 0] += 1
      }
    }
    #expect(statuses.values.reduce(0, +) == 10_000, "\(statuses)")
    #expect(Set(statuses.keys).isSubset(of: ["403 Error", "421 Error", "429 Error"]), "\(statuses)")
    #expect(site.host.count == 0)
  }

  // MARK: Texts

  private static func members(_ json: JSONValue?) -> [String: JSONValue] {
    guard case .object(let object) = json else { return [:] }
    return Dictionary(object.members.map { ($0.name, $0.value) }) { $1 }
  }

  @Test("Each language has every text of set-up, beside those of the page")
  func texts() async throws {
    let site = try await Site()
    let script = String(decoding: try shipped("Sources/Web/SetupPage/setup.js"), as: UTF8.self)
    var texts: [String: JSONValue] = [:]
    for language in ["en", "de", "fr", "es", "it", "nl", "pt", "ja", "zh"] {
      let reply = try await HTTPReply("GET /texts/\(language).json", port: site.port.number)
      let all = try JSONParser.parse(Array(reply.body.utf8))
      #expect(all["makecode"]?.text?.isEmpty == false)
      let own = Self.members(all["setup"])
      if language == "en" { texts = own }
      #expect(Set(own.keys) == Set(texts.keys), "\(language)")
      for (key, text) in own {
        #expect(key == "wait" ? text["other"]?.text?.contains("{n}") == true : text.text?.isEmpty == false)
      }
      #expect(own["done"]?.text?.contains("{time}") == true)
    }
    for match in script.matches(of: /\bS\.(\w+)/) { #expect(texts[String(match.1)] != nil, "\(match.1)") }
    for key in texts.keys {
      #expect(script.contains("S.\(key)") || ["wrong", "renewed", "busy"].contains(key), "\(key)")
    }
  }
}
