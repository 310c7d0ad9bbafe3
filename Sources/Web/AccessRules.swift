import EventLoop

/// Who may do what: the password, `Host`, the origin of a POST, and whether only a proxy may ask.
struct AccessRules: Sendable {
  /// Nil: none is asked for, and only this machine or the proxy can ask.
  private(set) var password: [UInt8]?
  /// The address of the only peer that may ask.
  private let proxy: [UInt8]?
  private var guesses = PasswordGuesses()

  init(password: [UInt8]?, proxy: [UInt8]? = nil) {
    self.password = password
    self.proxy = proxy
  }

  /// What was wrong before may be right now.
  mutating func setPassword(_ password: [UInt8]?) {
    self.password = password
    guesses = PasswordGuesses()
  }

  /// The answer to a request that is refused; nil: it is allowed.
  mutating func refusal(_ request: HTTPRequest, from peer: [UInt8], at now: Moment) -> HTTPResponse? {
    if let proxy {
      guard peer == proxy else { return .error(.forbidden, "only the proxy may ask") }
    } else if password == nil, !Self.isLocal(request.header("host") ?? "localhost") {
      return .error(.misdirectedRequest)
    }
    if let refusal = passwordRefusal(request, peer, now) { return refusal }
    guard request.method == "POST" else { return nil }
    let hosts = ["host"] + (proxy == nil ? [] : ["x-forwarded-host"])
    guard Self.isSameOrigin(request, hosts) else { return .error(.forbidden) }
    let type = request.header("content-type")?.lowercased().prefix { $0 != ";" && $0 != " " }
    return type == "application/json" ? nil : .error(.unsupportedMediaType)
  }

  private mutating func passwordRefusal(
    _ request: HTTPRequest, _ peer: [UInt8], _ now: Moment
  ) -> HTTPResponse? {
    guard let password else { return nil }
    if let seconds = guesses.wait(peer, at: now) {
      return .error(.tooManyRequests, nil, [("Retry-After", "\(seconds)")])
    }
    let challenge = [("WWW-Authenticate", #"Basic realm="micro:bits", charset="UTF-8""#)]
    guard let given = request.header("authorization").flatMap(Self.password) else {
      return .error(.unauthorized, nil, challenge)
    }
    let isRight = Self.isEqual(given, password)
    guesses.guessed(peer, isRight: isRight, at: now)
    return isRight ? nil : .error(.unauthorized, "the password is wrong", challenge)
  }

  /// Without a password: a name that a web site has made resolve to 127.0.0.1 is refused (DNS rebinding).
  static func isLocal(_ host: String) -> Bool {
    let parts = host.hasPrefix("[") ? host.split(separator: "]") : host.split(separator: ":")
    guard let name = parts.first, parts.count <= 2 else { return false }
    guard name.hasPrefix("[") else {
      let bytes = name.split(separator: ".", omittingEmptySubsequences: false)
      return name.lowercased() == "localhost"
        || bytes.count == 4 && bytes[0] == "127" && bytes.allSatisfy { UInt8($0) != nil }
    }
    return name == "[::1"
  }

  /// Whether a browser sends the POST for the page itself; other programs name no origin.
  /// - Parameter hosts: the headers that may name the page's host.
  private static func isSameOrigin(_ request: HTTPRequest, _ hosts: [String]) -> Bool {
    if let site = request.header("sec-fetch-site"), site != "same-origin" { return false }
    guard let origin = request.header("origin") else { return true }
    // Behind a proxy with TLS the scheme differs.
    for scheme in ["http://", "https://"] where origin.hasPrefix(scheme) {
      let host = origin.dropFirst(scheme.count).lowercased()
      return hosts.contains { request.header($0)?.lowercased() == host }
    }
    return false
  }

  /// The password in `Authorization: Basic …`; nil: there is none.
  static func password(_ header: String) -> [UInt8]? {
    guard header.prefix(6).lowercased() == "basic ", let text = Base64.bytes(header.dropFirst(6)),
      let colon = text.firstIndex(of: UInt8(ascii: ":"))
    else { return nil }
    return Array(text[(colon + 1)...])
  }

  /// In a time that does not depend on where they differ.
  static func isEqual(_ given: [UInt8], _ password: [UInt8]) -> Bool {
    var difference = given.count ^ password.count
    for index in given.indices { difference |= Int(given[index] ^ password[index % password.count]) }
    return difference == 0
  }
}

/// Counts wrong passwords by who has sent them, and says how long to wait.
struct PasswordGuesses: Sendable {
  private struct Peer: Sendable {
    var wrong = 0
    var next: Moment
  }

  /// So many are free.
  private static let free = 5
  /// Further ones take the place of the one that may try again first.
  static let mostPeers = 256
  private static let longestWait = 60

  private var peers: [[UInt8]: Peer] = [:]

  /// How many seconds the peer has to wait; nil: it may try.
  func wait(_ peer: [UInt8], at now: Moment) -> Int? {
    guard let known = peers[peer], known.wrong >= Self.free, now < known.next else { return nil }
    return Int(now.duration(to: known.next).components.seconds) + 1
  }

  mutating func guessed(_ peer: [UInt8], isRight: Bool, at now: Moment) {
    if isRight {
      peers[peer] = nil
      return
    }
    if peers[peer] == nil, peers.count >= Self.mostPeers {
      peers[peers.min { $0.value.next < $1.value.next }?.key ?? peer] = nil
    }
    var known = peers[peer] ?? Peer(next: now)
    known.wrong += 1
    let beyond = known.wrong - Self.free
    known.next = now + .seconds(beyond < 0 ? 0 : beyond > 5 ? Self.longestWait : 1 << beyond)
    peers[peer] = known
  }
}

enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Nil if the text is not in Base64 (RFC 4648, 4).
  static func bytes(_ text: Substring) -> [UInt8]? {
    guard text.utf8.count % 4 == 0 else { return nil }
    let digits = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed()
    guard text.utf8.count - digits.count <= 2 else { return nil }
    var bytes: [UInt8] = []
    var (bits, count) = (0, 0)
    for digit in digits {
      guard let value = alphabet.firstIndex(of: digit) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        bits &= 1 << count - 1
      }
    }
    return bytes
  }
}
