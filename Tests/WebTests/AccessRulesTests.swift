import EventLoop
import Testing

@testable import Web

@Suite struct AccessRulesTests {
  private static func request(_ headers: [String: String], method: String = "GET") -> HTTPRequest {
    HTTPRequest(
      method: method, path: "/", query: nil, isHTTP11: true,
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
      ("127.evil.0.1", false), ("", false), ("[::2]", false), ("192.168.1.5", false),
      ("localhost:1:2", false),
    ])
  func hosts(host: String, isAllowed: Bool) {
    var rules = AccessRules(password: nil)
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
    var rules = AccessRules(password: nil)
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
    var rules = AccessRules(password: nil, proxy: [172, 30, 32, 2])
    var headers = [
      "host": "app:8099", "x-forwarded-host": "ha.local:8123", "content-type": "application/json",
    ]
    headers["origin"] = origin
    #expect(Self.status(&rules, Self.request(headers, method: method), peer: peer) == status)
    // Also after a change of the password.
    rules.setPassword(Array("secret".utf8))
    rules.setPassword(nil)
    #expect(Self.status(&rules, Self.request(headers, method: method), peer: peer) == status)
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
    var rules = AccessRules(password: Array("secret".utf8))
    // With a password any name will do.
    #expect(
      Self.status(&rules, Self.request(["host": "pi.example", "authorization": header])) == status)
  }

  @Test(
    "10,000 wrong passwords: after five, more and more seconds pass between two; others are not concerned")
  func guesses() {
    var rules = AccessRules(password: Array("secret".utf8))
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
