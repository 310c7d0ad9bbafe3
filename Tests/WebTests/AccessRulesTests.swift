import EventLoop
import Testing

@testable import Web

@Suite struct AccessRulesTests {
  private static let secret = Passwords(control: Array("secret".utf8))

  private static func request(
    _ headers: [String: String], method: String = "GET", path: String = "/"
  ) -> HTTPRequest {
    HTTPRequest(
      method: method, path: path, query: nil, isHTTP11: true,
      headers: headers.map { (name: $0.key, value: $0.value) })
  }

  private static func status(
    _ rules: inout AccessRules, _ request: HTTPRequest, peer: [UInt8] = [1], at now: Moment = .now
  ) -> Int? {
    rules.refusal(request, from: peer, at: now)?.status.rawValue
  }

  @Test(
    "Without a password only names of this machine are answered",
    arguments: [
      ("localhost", true), ("LOCALHOST:8484", true), ("127.0.0.1:8484", true), ("127.1.2.3", true),
      ("[::1]:80", true),
      ("[::1]", true), ("evil.example", false), ("127.0.0.1.evil.example", false),
      ("localhost.evil.example", false),
      ("127.evil.0.1", false), ("", false), ("[::2]", false), ("127.0.0.+1", false), ("127.+1.0.1:80", false),
      ("[::1]x", false),
      ("[::1]x:80", false), ("127.0.1", false), ("192.168.1.5", false),
      ("localhost:1:2", false),
    ])
  func hosts(host: String, isAllowed: Bool) {
    var rules = AccessRules(Passwords())
    #expect(Self.status(&rules, Self.request(["host": host])) == (isAllowed ? nil : 421))
  }

  /// It could read nothing, but hold one of the few streams.
  @Test(
    arguments: [
      ([:], true), (["sec-fetch-site": "same-origin"], true), (["sec-fetch-site": "none"], true),
      (["sec-fetch-site": "same-site"], true), (["origin": "http://localhost:8484"], true),
      (["sec-fetch-site": "cross-site"], false), (["origin": "https://evil.example"], false),
    ] as [([String: String], Bool)])
  func anotherSiteOpensNoEventStream(headers: [String: String], isAllowed: Bool) {
    var rules = AccessRules(Passwords())
    let headers = headers.merging(["host": "localhost:8484"]) { $1 }
    let events = Self.status(&rules, Self.request(headers, path: "/api/events"))
    #expect(events == (isAllowed ? nil : 403))
    let devices = Self.status(&rules, Self.request(headers, path: "/api/devices"))
    #expect(devices == nil)
  }

  @Test(
    "Names of this machine that are given are answered too, at the port of the gateway",
    arguments: [
      ("pi.local:8484", true), ("PI.local:8484", true), ("[fd00::2]:8484", true), ("127.0.0.1:1", true),
      ("pi.local", false), ("pi.local:80", false), ("evil.example:8484", false), (":8484", false),
      ("pi.local:8484:8484", false),
    ])
  func namedHosts(host: String, isAllowed: Bool) {
    var rules = AccessRules(Passwords(), names: { ["pi.local", "[fd00::2]"] })
    #expect(Self.status(&rules, Self.request(["host": host])) == (isAllowed ? nil : 421))
  }

  private static let postHeaders: [([String: String], Int?)] = [
    (["content-type": "application/json"], nil),
    (["content-type": "application/json; charset=utf-8", "origin": "http://localhost"], nil),
    (["content-type": "application/json", "origin": "https://LOCALHOST"], nil),
    (["content-type": "application/json", "sec-fetch-site": "same-origin"], nil),
    (["content-type": "application/json", "sec-fetch-site": "cross-site"], 403),
    (["content-type": "application/json", "sec-fetch-site": "none"], 403),
    (["content-type": "application/json", "origin": "http://evil.example"], 403),
    (["content-type": "application/json", "origin": "http://localhost:80"], 403),
    (["content-type": "application/json", "origin": "null"], 403),
    (["content-type": "text/plain"], 415),
    (["content-type": "application/jsonp"], 415),
    ([:], 415),
  ]

  @Test("A POST needs JSON, and a browser's the same origin", arguments: postHeaders)
  func posts(headers: [String: String], status: Int?) {
    var rules = AccessRules(Passwords())
    let all = headers.merging(["host": "localhost"]) { first, _ in first }
    #expect(Self.status(&rules, Self.request(all, method: "POST")) == status)
  }

  @Test(
    "A proxy alone may ask, by any name of the host, and a POST for the host that it names",
    arguments: [
      (nil, [172, 30, 32, 2], "GET", nil), (nil, [172, 30, 32, 3], "GET", 403), (nil, [], "GET", 403),
      ("http://ha.local:8123", [172, 30, 32, 2], "POST", nil),
      ("http://evil.example", [172, 30, 32, 2], "POST", 403),
    ] as [(String?, [UInt8], String, Int?)])
  func proxy(origin: String?, peer: [UInt8], method: String, status: Int?) {
    var rules = AccessRules(Passwords(), proxy: [172, 30, 32, 2])
    var headers = [
      "host": "app:8099", "x-forwarded-host": "ha.local:8123", "content-type": "application/json",
    ]
    headers["origin"] = origin
    #expect(Self.status(&rules, Self.request(headers, method: method), peer: peer) == status)
    // Also after a change of the password.
    rules.passwords = Self.secret
    rules.passwords = Passwords()
    #expect(Self.status(&rules, Self.request(headers, method: method), peer: peer) == status)
  }

  private static let ingress: [UInt8] = [172, 30, 32, 2]
  private static let here: [UInt8] = [127, 0, 0, 1]

  @Test(
    "A name that somebody else can make resolve to this machine is refused also where a proxy may ask",
    arguments: [
      (here, "evil.example", 421), (here, "evil.example:8484", 421), (here, "evil.example:9000", 421),
      (here, "homeassistant.local:8123", 421), (here, "", 421), (here, "localhost:8484", nil),
      (here, "127.0.0.1:8484", nil), (here, "[::1]:8484", nil),
      // A browser on the proxy's machine names this port; through the proxy it names the proxy's.
      (ingress, "evil.example:8484", 421), (ingress, "127.0.0.1.evil.example:8484", 421),
      (ingress, "homeassistant.local:8123", nil), (ingress, "abc.ui.nabu.casa", nil),
      (ingress, "192.168.1.20:8484", nil), (ingress, "[fd00::1]:8484", nil), (ingress, "gateway:8484", nil),
      (ingress, "localhost:8484", nil),
    ] as [([UInt8], String, Int?)])
  func rebinding(proxy: [UInt8], host: String, status: Int?) {
    var rules = AccessRules(Passwords(), proxy: proxy)
    #expect(Self.status(&rules, Self.request(["host": host]), peer: proxy) == status)
    // A page that was rebound may add such headers.
    let more = ["host": host, "x-forwarded-host": "localhost", "x-ingress-path": "/"]
    #expect(Self.status(&rules, Self.request(more), peer: proxy) == status)
    var standard = AccessRules(Passwords(), proxy: Self.ingress, port: 80)
    #expect(Self.status(&standard, Self.request(["host": "evil.example"]), peer: Self.ingress) == 421)
  }

  /// What proxies send of a POST of the page, as their documents and reports show it.
  private static let proxied: [(name: String, proxy: [UInt8]?, headers: [String: String], status: Int?)] = [
    (
      "nginx as it is, with TLS", here,
      ["host": "127.0.0.1:8484", "origin": "https://pi.example", "sec-fetch-site": "same-origin"], nil
    ),
    ("nginx as it is, without TLS", here, ["host": "127.0.0.1:8484", "origin": "http://pi.lan"], 403),
    (
      "nginx with X-Forwarded-Host $http_host", here,
      ["host": "localhost", "x-forwarded-host": "pi.lan:8080", "origin": "http://pi.lan:8080"], nil
    ),
    (
      "nginx with X-Forwarded-Host $host, which has no port", here,
      ["host": "localhost", "x-forwarded-host": "pi.lan", "origin": "http://pi.lan:8080"], nil
    ),
    (
      "nginx with Host $host on another machine", [192, 168, 1, 5],
      ["host": "pi.lan", "origin": "http://pi.lan:8080"], nil
    ),
    (
      "Caddy on another machine", [192, 168, 1, 5],
      ["host": "pi.example", "x-forwarded-host": "pi.example", "origin": "https://pi.example"], nil
    ),
    (
      "Caddy with header_up Host {upstream_hostport}", here,
      ["host": "127.0.0.1:8484", "x-forwarded-host": "pi.example", "origin": "https://pi.example"], nil
    ),
    (
      "Traefik, which names the port", [172, 18, 0, 2],
      ["host": "pi.example", "x-forwarded-host": "pi.example:443", "origin": "https://pi.example"], nil
    ),
    (
      "Apache behind nginx: a list", here,
      [
        "host": "127.0.0.1:8484", "x-forwarded-host": "pi.example, inner.lan:8080",
        "origin": "https://pi.example",
      ], nil
    ),
    (
      "Home Assistant's ingress", ingress,
      [
        "host": "homeassistant.local:8123", "x-forwarded-host": "homeassistant.local:8123",
        "x-ingress-path": "/api/hassio_ingress/x", "origin": "http://homeassistant.local:8123",
      ], nil
    ),
    (
      "the ingress behind nginx, from far away", ingress,
      [
        "host": "ha.example", "x-forwarded-host": "ha.example", "x-ingress-path": "/api/hassio_ingress/x",
        "origin": "https://ha.example", "sec-fetch-site": "same-origin",
      ], nil
    ),
    (
      "a page elsewhere, through nginx", here,
      ["host": "127.0.0.1:8484", "x-forwarded-host": "pi.lan", "origin": "http://evil.example"], 403
    ),
    (
      "a page of another port, through nginx with TLS", here,
      [
        "host": "localhost", "x-forwarded-host": "pi.lan", "origin": "https://pi.lan:9000",
        "sec-fetch-site": "same-site",
      ], 403
    ),
    ("a page of this machine", nil, ["host": "localhost:8484", "origin": "http://localhost:3000"], 403),
  ]

  @Test("The page may send through the usual proxies, others may not", arguments: proxied)
  func proxies(name: String, proxy: [UInt8]?, headers: [String: String], status: Int?) {
    var rules = AccessRules(Passwords(), proxy: proxy)
    let all = headers.merging(["content-type": "application/json"]) { first, _ in first }
    #expect(Self.status(&rules, Self.request(all, method: "POST"), peer: proxy ?? [1]) == status, "\(name)")
  }

  @Test("Proxies in a row may each add a header of their own")
  func severalHeaders() {
    var rules = AccessRules(Passwords(), proxy: Self.here)
    let headers = [
      ("host", "localhost"), ("x-forwarded-host", "pi.example"), ("x-forwarded-host", "inner:8080"),
      ("origin", "http://inner:8080"), ("content-type", "application/json"),
    ]
    let request = HTTPRequest(
      method: "POST", path: "/", query: nil, isHTTP11: true,
      headers: headers.map { (name: $0.0, value: $0.1) })
    #expect(Self.status(&rules, request, peer: Self.here) == nil)
  }

  // a:secret, a:look, a:wrong
  @Test(
    "The password for reading permits to look; wrong ones count for both",
    arguments: [
      ("GET", "YTpzZWNyZXQ=", nil, false), ("POST", "YTpzZWNyZXQ=", nil, false),
      ("GET", "YTpsb29r", nil, true), ("HEAD", "YTpsb29r", nil, true), ("POST", "YTpsb29r", 403, true),
      ("GET", "YTp3cm9uZw==", 401, true), ("POST", "YTp3cm9uZw==", 401, true),
    ] as [(String, String, Int?, Bool)])
  func reading(method: String, password: String, status: Int?, isReadOnly: Bool) {
    var rules = AccessRules(Passwords(control: Array("secret".utf8), reading: Array("look".utf8)))
    let request = Self.request(
      ["authorization": "Basic \(password)", "content-type": "application/json"], method: method)
    for _ in 0..<4 { #expect(Self.status(&rules, request) == status) }
    #expect(rules.isReadOnly(request) == isReadOnly)
    if status == 401 {
      _ = Self.status(&rules, request)
      #expect(Self.status(&rules, request) == 429)
    }
    var open = AccessRules(Passwords())
    #expect(!open.isReadOnly(request) && open.refusal(Self.request([:]), from: [1], at: .now) == nil)
  }

  @Test(
    "Base64",
    arguments: [
      ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("OsOk", ":ä"),
      ("Zg=", nil),
      ("Z===", nil), ("Zm9v ", nil), ("Z=9v", nil), ("Zm9-", nil), ("====", nil),
    ] as [(String, String?)])
  func base64(text: String, decoded: String?) {
    #expect(Base64.bytes(text[...]) == decoded.map { Array($0.utf8) })
  }

  // a:secret, :secret, a:wrong, a, a:secretsecret
  @Test(
    arguments: [
      ("Basic YTpzZWNyZXQ=", nil), ("basic OnNlY3JldA==", nil), ("Basic YTp3cm9uZw==", 401),
      ("Basic YQ==", 401),
      ("Basic YTpzZWNyZXRzZWNyZXQ=", 401), ("Bearer YTpzZWNyZXQ=", 401), ("", 401),
    ] as [(String, Int?)])
  func passwords(header: String, status: Int?) {
    var rules = AccessRules(Self.secret)
    // With a password any name will do.
    #expect(
      Self.status(&rules, Self.request(["host": "pi.example", "authorization": header])) == status)
  }

  @Test(
    "10,000 wrong passwords: after five, more and more seconds pass between two; others are not concerned")
  func guesses() {
    var rules = AccessRules(Self.secret)
    let wrong = Self.request(["authorization": "Basic YTp3cm9uZw=="])
    let right = Self.request(["authorization": "Basic YTpzZWNyZXQ="])
    let start = Moment.now
    #expect((0..<5).map { _ in Self.status(&rules, wrong, at: start) } == [401, 401, 401, 401, 401])
    #expect((0..<10_000).allSatisfy { _ in Self.status(&rules, wrong, at: start) == 429 })
    #expect(Self.status(&rules, right, at: start) == 429)
    #expect(Self.status(&rules, right, peer: [2], at: start) == nil)
    #expect(
      rules.refusal(wrong, from: [1], at: start)?.headers.first { $0.name == "Retry-After" }?.value == "2")
    var (now, tried) = (start, 0)
    while now < start + .seconds(3600) {
      now = now + .seconds(1)
      if Self.status(&rules, wrong, at: now) == 401 { tried += 1 }
    }
    #expect((55...70).contains(tried), "\(tried)")
    #expect(Self.status(&rules, right, at: now + .seconds(60)) == nil)
    #expect(Self.status(&rules, wrong, at: now + .seconds(60)) == 401)
  }

  @Test("By IPv6 one address holds up only itself; many of a network hold it up, except who has the password")
  func guessesByIPv6() {
    var rules = AccessRules(Self.secret)
    let wrong = Self.request(["authorization": "Basic YTp3cm9uZw=="])
    let right = Self.request(["authorization": "Basic YTpzZWNyZXQ="])
    func host(_ number: UInt8, network: UInt8 = 1) -> [UInt8] {
      [0xFD, 0, 0, 0, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, number]
    }
    let now = Moment.now
    func status(_ request: HTTPRequest, _ host: [UInt8]) -> Int? {
      Self.status(&rules, request, peer: host, at: now)
    }
    for _ in 0..<5 { #expect(status(wrong, host(1)) == 401) }
    #expect(status(right, host(1)) == 429)
    #expect(status(right, host(2)) == nil)
    for number in 10..<55 { #expect(status(wrong, host(UInt8(number))) == 401) }
    #expect(status(right, host(2)) == nil)
    #expect(status(right, host(3)) == 429)
    #expect(status(right, host(3, network: 2)) == nil)
    for _ in 0..<5 { #expect(status(wrong, host(2)) == 401) }
    #expect(status(right, host(2)) == 429)
  }

  @Test func whoMayLookGuessesTheOtherPasswordNoFaster() {
    var rules = AccessRules(Passwords(control: Array("secret".utf8), reading: Array("look".utf8)))
    let wrong = Self.request(["authorization": "Basic YTp3cm9uZw=="])
    let look = Self.request(["authorization": "Basic YTpsb29r"])
    let now = Moment.now
    for _ in 0..<4 {
      #expect(Self.status(&rules, wrong, at: now) == 401)
      #expect(Self.status(&rules, look, at: now) == nil)
    }
    #expect(Self.status(&rules, wrong, at: now) == 401)
    #expect(Self.status(&rules, wrong, at: now) == 429)
    #expect((0..<10).allSatisfy { _ in Self.status(&rules, look, peer: [2], at: now) == nil })
  }

  @Test func thePeersThatAreRememberedAreBounded() {
    var guesses = PasswordGuesses()
    let now = Moment.now
    for peer in 0..<10_000 {
      for _ in 0..<6 { guesses.guessed([UInt8(peer & 0xFF), UInt8(peer >> 8)], isRight: false, at: now) }
    }
    let waiting = (0..<10_000).count { guesses.wait([UInt8($0 & 0xFF), UInt8($0 >> 8)], at: now) != nil }
    #expect(waiting <= PasswordGuesses.mostPeers)
  }

  @Test func aPasswordIsComparedAsAWhole() {
    #expect(AccessRules.isEqual(Array("ab".utf8), Array("ab".utf8)))
    for other in ["", "a", "ac", "abab", "abc"] {
      #expect(!AccessRules.isEqual(Array(other.utf8), Array("ab".utf8)), "\(other)")
    }
  }
}
