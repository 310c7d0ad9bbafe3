import EventLoop
import Sockets

/// The passwords that clients are asked for.
struct Passwords: Sendable, Equatable {
  /// Permits everything. Nil: no password is asked for, and only this machine or the proxy can ask.
  var control: [UInt8]?
  /// Permits to look.
  var reading: [UInt8]?
}

/// Who may do what: the passwords, `Host`, the origin of a POST, and whether only a proxy may ask.
struct AccessRules: Sendable {
  /// After a change, wrong guesses of before no longer count.
  var passwords: Passwords { didSet { guesses = PasswordGuesses() } }
  /// The address of the only peer that may ask.
  private let proxy: [UInt8]?
  /// The port on which the gateway listens.
  private let port: Int
  /// What this machine may be called beside `localhost`, unless there is a password.
  private let names: @Sendable () -> Set<String>
  private var guesses = PasswordGuesses()

  init(
    _ passwords: Passwords, proxy: [UInt8]? = nil, port: Int = 8484,
    names: @escaping @Sendable () -> Set<String> = { [] }
  ) {
    self.passwords = passwords
    self.proxy = proxy
    self.port = port
    self.names = names
  }

  /// The answer to a request that is refused; nil: it is allowed.
  mutating func refusal(_ request: HTTPRequest, from peer: [UInt8], at now: Moment) -> HTTPResponse? {
    if let proxy, peer != proxy { return .error(.forbidden, "only the proxy may ask") }
    if passwords.control == nil, !isKnown(request.header("host") ?? "localhost") {
      let remedy = "let the proxy send Host: localhost, or set http.password_file"
      return .error(.misdirectedRequest, proxy.map { _ in "this Host is not known: \(remedy)" })
    }
    if let refusal = passwordRefusal(request, peer, now) { return refusal }
    guard request.method == "POST" else { return isForeignStream(request) ? .error(.forbidden) : nil }
    guard isSameOrigin(request) else { return .error(.forbidden) }
    if isReadOnly(request) { return .error(.forbidden, "this password is for reading only") }
    let type = request.header("content-type")?.lowercased().prefix { $0 != ";" && $0 != " " }
    return type == "application/json" ? nil : .error(.unsupportedMediaType)
  }

  /// Whether the client of an allowed request may change nothing.
  func isReadOnly(_ request: HTTPRequest) -> Bool {
    guard let password = passwords.control, let given = Self.password(of: request) else { return false }
    return !Self.isEqual(given, password)
  }

  private mutating func passwordRefusal(
    _ request: HTTPRequest, _ peer: [UInt8], _ now: Moment
  ) -> HTTPResponse? {
    guard let password = passwords.control else { return nil }
    if let seconds = guesses.wait(peer, at: now) {
      return .error(.tooManyRequests, nil, [("Retry-After", "\(seconds)")])
    }
    let challenge = [("WWW-Authenticate", #"Basic realm="micro:bits", charset="UTF-8""#)]
    guard let given = Self.password(of: request) else { return .error(.unauthorized, nil, challenge) }
    let isRight = Self.isEqual(given, password)
    if !isRight, let reading = passwords.reading, Self.isEqual(given, reading) {
      // Not a guess. And who has this password may guess the other no faster.
      return nil
    }
    guesses.guessed(peer, isRight: isRight, at: now)
    return isRight ? nil : .error(.unauthorized, "the password is wrong", challenge)
  }

  // MARK: Host

  /// Whether no web page elsewhere, whose name was made to resolve to this machine, can be behind the request (DNS
  /// rebinding): such a page determines neither `Host` nor the peer's address.
  private func isKnown(_ host: String) -> Bool {
    if Self.isLocal(host) { return true }
    let suffix = ":\(port)"
    if host.hasSuffix(suffix)
      ? names().contains(host.dropLast(suffix.count).lowercased())
      : port == 80 && names().contains(host.lowercased())
    {
      return true
    }
    // Programs of this machine, and tunnels to it, have the address of a proxy of this machine.
    guard let proxy, proxy.first != 127 else { return false }
    // A browser that connects here names this port; what the proxy passes on has the port of the proxy.
    let colon = host.lastIndex(of: ":") ?? host.endIndex
    guard host[colon...] == ":\(port)" || colon == host.endIndex && port == 80 else { return true }
    return !host[..<colon].contains(".") || TCPSocket.bytes(String(host[..<colon])) != nil
  }

  /// Whether `host` is `localhost` or a loopback address, with or without a port.
  static func isLocal(_ host: String) -> Bool {
    let colon = host.lastIndex(of: ":").flatMap { Int(host[host.index(after: $0)...]) == nil ? nil : $0 }
    let name = host.hasSuffix("]") ? host : String(host[..<(colon ?? host.endIndex)])
    return name.lowercased() == "localhost" || name == "[::1]" || TCPSocket.bytes(name)?.first == 127
  }

  // MARK: Origin

  /// Whether a browser sends the POST for the page itself; other programs name no origin.
  private func isSameOrigin(_ request: HTTPRequest) -> Bool {
    // A browser knows it best, but over HTTP it sends this to its own machine alone.
    if let site = request.header("sec-fetch-site") { return site == "same-origin" }
    guard let origin = request.header("origin")?.lowercased() else { return true }
    // Behind a proxy with TLS the scheme differs.
    for (scheme, port) in [("http://", ":80"), ("https://", ":443")] where origin.hasPrefix(scheme) {
      let host = String(origin.dropFirst(scheme.count))
      let name = host.lastIndex(of: ":").map { String(host[..<$0]) } ?? host
      // A proxy may leave out the port; a browser does so only if it is that of the scheme.
      let names = [host, host + port]
      return request.list("host").contains { names.contains($0) || $0 == name && proxy != nil }
        || request.list("x-forwarded-host").contains { names.contains($0) || $0 == name }
    }
    return false
  }

  /// Whether the page of another site opens an event stream: it could read nothing, but hold one of the few.
  private func isForeignStream(_ request: HTTPRequest) -> Bool {
    guard request.path == WebSite.eventsPath else { return false }
    return request.header("sec-fetch-site").map { $0 == "cross-site" } ?? !isSameOrigin(request)
  }

  // MARK: Passwords

  private static func password(of request: HTTPRequest) -> [UInt8]? {
    request.header("authorization").flatMap(password)
  }

  /// The password in `Authorization: Basic …`; nil: there is none.
  static func password(_ header: String) -> [UInt8]? {
    guard header.prefix(6).lowercased() == "basic ", let text = Base64.bytes(header.dropFirst(6)),
      let colon = text.firstIndex(of: UInt8(ascii: ":"))
    else { return nil }
    return Array(text[(colon + 1)...])
  }

  /// Compares two passwords in a time that does not depend on where they differ.
  static func isEqual(_ given: [UInt8], _ password: [UInt8]) -> Bool {
    var difference = given.count ^ password.count
    for index in given.indices { difference |= Int(given[index] ^ password[index % password.count]) }
    return difference == 0
  }
}

/// Counts wrong passwords by the address that has sent them, and says how long it has to wait.
struct PasswordGuesses: Sendable {
  private struct Peer: Sendable {
    var wrong = 0
    var next: Moment
  }

  /// How many wrong guesses an address has before it must wait.
  private static let free = 5
  /// The same for all addresses of an IPv6 network (/64), as each host may take as many of them as it likes.
  private static let freeOfNetwork = 50
  /// Further ones take the place of the one that may try again first.
  static let mostPeers = 256
  private static let mostTrusted = 64
  private static let longestWait = 60
  /// After so long without a guess, earlier ones do not count.
  private static let forgotten = Duration.seconds(3600)

  private var peers: [[UInt8]: Peer] = [:]
  /// IPv6 addresses that have sent the right password: guesses of their network do not concern them.
  private var trusted: [[UInt8]] = []

  /// How many seconds the address has to wait; nil: it may try.
  func wait(_ address: [UInt8], at now: Moment) -> Int? {
    if let seconds = seconds(address, at: now, Self.free) { return seconds }
    guard let network = Self.network(of: address), !trusted.contains(address) else { return nil }
    return seconds(network, at: now, Self.freeOfNetwork)
  }

  mutating func guessed(_ address: [UInt8], isRight: Bool, at now: Moment) {
    let network = Self.network(of: address)
    guard isRight else {
      count(address, at: now, Self.free)
      // An old page with a wrong password, which guesses again and again, counts as one client.
      if let network, peers[address]?.wrong ?? 0 <= Self.free { count(network, at: now, Self.freeOfNetwork) }
      return
    }
    peers[address] = nil
    guard network != nil, !trusted.contains(address) else { return }
    trusted = trusted.suffix(Self.mostTrusted - 1) + [address]
  }

  private static func network(of address: [UInt8]) -> [UInt8]? {
    address.count == 16 ? Array(address.prefix(8)) : nil
  }

  private func seconds(_ peer: [UInt8], at now: Moment, _ free: Int) -> Int? {
    guard let known = peers[peer], known.wrong >= free, now < known.next else { return nil }
    return Int(now.duration(to: known.next).components.seconds) + 1
  }

  private mutating func count(_ peer: [UInt8], at now: Moment, _ free: Int) {
    if peers[peer] == nil, peers.count >= Self.mostPeers {
      peers[peers.min { $0.value.next < $1.value.next }?.key ?? peer] = nil
    }
    var known = peers[peer] ?? Peer(next: now)
    if known.next + Self.forgotten < now { known.wrong = 0 }
    known.wrong += 1
    let beyond = known.wrong - free
    known.next = now + .seconds(beyond < 0 ? 0 : beyond > 5 ? Self.longestWait : 1 << beyond)
    peers[peer] = known
  }
}

enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The bytes of a text in Base64 (RFC 4648, 4); nil: it is none.
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
