/// A request of HTTP/1.0 or 1.1.
struct HTTPRequest: Sendable, Equatable {
  let method: String
  /// The path as it was sent: nothing is decoded.
  let path: String
  /// What follows `?`.
  let query: String?
  /// HTTP/1.1: the connection stays open, and an answer may be chunked.
  let isHTTP11: Bool
  /// Names in lower case.
  let headers: [(name: String, value: String)]
  var body: [UInt8] = []

  /// The value of the first header of this name.
  func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// What headers of this name list, in lower case: proxies in a row add to a list, or a header of their own.
  func list(_ name: String) -> [String] {
    headers.filter { $0.name == name }.flatMap { $0.value.lowercased().split { $0 == "," || $0 == " " } }
      .map(String.init)
  }

  /// Whether more requests may follow on the connection.
  var staysOpen: Bool {
    isHTTP11 && !list("connection").contains("close")
  }

  /// The value of a key of the query; nil: it has no such key.
  func parameter(_ name: String) -> String? {
    for part in query?.split(separator: "&") ?? [] {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if pair[0] == name { return pair.count > 1 ? String(pair[1]) : "" }
    }
    return nil
  }

  static func == (a: HTTPRequest, b: HTTPRequest) -> Bool {
    a.method == b.method && a.path == b.path && a.query == b.query && a.isHTTP11 == b.isHTTP11
      && a.body == b.body && a.headers.elementsEqual(b.headers) { $0 == $1 }
  }
}

/// Parses requests from the bytes of a connection (RFC 9112), strictly: what two programs might read in two ways is
/// refused.
struct HTTPParser: Sendable {
  /// The most bytes of the header, with the request line.
  static let longestHeader = 8 << 10
  static let longestBody = 64 << 10

  enum Output: Sendable, Equatable {
    case request(HTTPRequest)
    /// The client waits for `100 Continue` before it sends the body.
    case expectsContinue
    /// What follows cannot be read: the connection ends with this error.
    case refused(HTTPStatus)
  }

  private var bytes: [UInt8] = []
  /// Where to go on searching for the end of the header.
  private var searched = 0
  /// Empty lines before the request.
  private var emptyLines = 0
  private static let mostEmptyLines = 4
  /// A request whose body is still missing.
  private var open: (request: HTTPRequest, length: Int)?
  private var isRefused = false

  /// Whether a part of a request has arrived.
  var isInRequest: Bool { open != nil || !bytes.isEmpty }

  /// Whether the longest header would already have arrived.
  var isFull: Bool { bytes.count >= Self.longestHeader }

  mutating func append(_ received: some Collection<UInt8>) { if !isRefused { bytes += received } }

  /// The next complete request; nil: more bytes are needed.
  mutating func next() -> Output? {
    guard !isRefused else { return nil }
    do throws(HTTPStatus) {
      return try step()
    } catch {
      isRefused = true
      bytes = []
      return .refused(error)
    }
  }

  private mutating func step() throws(HTTPStatus) -> Output? {
    if let (request, length) = open { return body(of: request, length) }
    // RFC 9112, 2.2: an empty line before a request is ignored. Not more of them: the time that a request may take would not end.
    while bytes.starts(with: [0x0D, 0x0A]) {
      bytes.removeFirst(2)
      emptyLines += 1
      guard emptyLines <= Self.mostEmptyLines else { throw .badRequest }
    }
    guard let end = headerEnd() else {
      if bytes.count > Self.longestHeader { throw .headerTooLarge }
      return nil
    }
    guard end <= Self.longestHeader else { throw .headerTooLarge }
    let request = try Self.header(bytes[..<end])
    let length = try Self.bodyLength(request)
    bytes.removeFirst(end + 4)
    (searched, emptyLines) = (0, 0)
    open = (request, length)
    if length > 0, bytes.isEmpty, request.header("expect")?.lowercased() == "100-continue" {
      return .expectsContinue
    }
    return body(of: request, length)
  }

  private mutating func body(of request: HTTPRequest, _ length: Int) -> Output? {
    guard bytes.count >= length else { return nil }
    var request = request
    request.body = Array(bytes[..<length])
    bytes.removeFirst(length)
    open = nil
    return .request(request)
  }

  private mutating func headerEnd() -> Int? {
    let places = searched..<max(searched, bytes.count - 3)
    searched = places.upperBound
    return places.first { bytes[$0...].starts(with: [0x0D, 0x0A, 0x0D, 0x0A]) }
  }

  private static func header(_ bytes: ArraySlice<UInt8>) throws(HTTPStatus) -> HTTPRequest {
    // A line ends with CR LF; each alone, and every other control character but a tab, is refused.
    var lines: [ArraySlice<UInt8>] = []
    var start = bytes.startIndex
    for index in bytes.indices where bytes[index] < 0x20 && bytes[index] != 0x09 || bytes[index] == 0x7F {
      switch bytes[index] {
      case 0x0D where index + 1 < bytes.endIndex && bytes[index + 1] == 0x0A: continue
      case 0x0A where index > start && bytes[index - 1] == 0x0D:
        lines.append(bytes[start..<index - 1])
        start = index + 1
      case _: throw .badRequest
      }
    }
    lines.append(bytes[start...])
    let words = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
    guard words.count == 3, words[0].count <= 16, words[0].allSatisfy({ $0.isToken }),
      words[1].first == UInt8(ascii: "/"), words[1].allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw .badRequest }
    let version = String(decoding: words[2], as: UTF8.self)
    guard version.hasPrefix("HTTP/") else { throw .badRequest }
    guard ["HTTP/1.1", "HTTP/1.0"].contains(version) else { throw .versionNotSupported }
    var headers: [(name: String, value: String)] = []
    for line in lines.dropFirst() { headers.append(try field(line)) }
    let target = words[1].split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    let request = HTTPRequest(
      method: String(decoding: words[0], as: UTF8.self), path: String(decoding: target[0], as: UTF8.self),
      query: target.count > 1 ? String(decoding: target[1], as: UTF8.self) : nil,
      isHTTP11: version == "HTTP/1.1", headers: headers)
    let hosts = headers.count { $0.name == "host" }
    guard hosts == 1 || hosts == 0 && !request.isHTTP11 else { throw .badRequest }
    return request
  }

  private static func field(_ line: ArraySlice<UInt8>) throws(HTTPStatus) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
      line[..<colon].allSatisfy({ $0.isToken })
    else { throw .badRequest }
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    let value = line[(colon + 1)...].drop(while: isSpace)
    let length = value.count - value.reversed().prefix(while: isSpace).count
    return (
      String(decoding: line[..<colon], as: UTF8.self).lowercased(),
      String(decoding: value.prefix(length), as: UTF8.self)
    )
  }

  private static func bodyLength(_ request: HTTPRequest) throws(HTTPStatus) -> Int {
    guard request.header("transfer-encoding") == nil else { throw .lengthRequired }
    let lengths = request.headers.filter { $0.name == "content-length" }.map(\.value)
    guard let first = lengths.first else {
      if request.method == "POST" { throw .lengthRequired }
      return 0
    }
    guard lengths.count == 1, !first.isEmpty, first.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .badRequest
    }
    // A number with too many digits for an integer is too large as well.
    guard let length = Int(first), length <= longestBody else { throw .contentTooLarge }
    return length
  }
}

extension UInt8 {
  /// Whether the byte may be in a method or the name of a header (RFC 9110, 5.6.2).
  fileprivate var isToken: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case _: "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }
}
