import TestSupport
import Testing

@testable import Web

@Suite struct HTTPParserTests {
  private static func outputs(_ text: String, pieces: Int = .max) -> [HTTPParser.Output] {
    var parser = HTTPParser()
    var outputs: [HTTPParser.Output] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      parser.append(rest.prefix(pieces))
      rest = rest.dropFirst(pieces)
      while let output = parser.next() { outputs.append(output) }
    }
    return outputs
  }

  private static func request(
    _ method: String, _ path: String, query: String? = nil, _ headers: [(String, String)], body: String = "",
    isHTTP11: Bool = true
  ) -> HTTPParser.Output {
    .request(
      HTTPRequest(
        method: method, path: path, query: query, isHTTP11: isHTTP11,
        headers: headers.map { ($0.0, $0.1) }, body: Array(body.utf8)))
  }

  @Test("Requests are parsed, one after the other, in pieces of any size", arguments: [1, 2, 3, 7, .max])
  func requests(pieces: Int) {
    let text =
      "GET /api/x?hours=3&b HTTP/1.1\r\nHost: a\r\nX-Y:  two words\t\r\n\r\n"
      + "\r\n\r\n\r\nPOST /p HTTP/1.1\r\nhost:a\r\nContent-Length: 2\r\n\r\n{}"
      + "GET / HTTP/1.0\r\n\r\n"
    #expect(
      Self.outputs(text, pieces: pieces) == [
        Self.request("GET", "/api/x", query: "hours=3&b", [("host", "a"), ("x-y", "two words")]),
        Self.request("POST", "/p", [("host", "a"), ("content-length", "2")], body: "{}"),
        Self.request("GET", "/", [], isHTTP11: false),
      ])
  }

  private static let refused: [(String, HTTPStatus)] = [
    ("GET / HTTP/1.1\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", .badRequest),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .badRequest),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .badRequest),
    ("GET /\u{7f} HTTP/1.1\r\nHost: a\r\n\r\n", .badRequest),
    ("GET /ä HTTP/1.1\r\nHost: a\r\n\r\n", .badRequest),
    ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", .badRequest),
    ("GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", .badRequest),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", .versionNotSupported),
    ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", .badRequest),
    ("\u{16}\u{3}\u{1}\r\n\r\n", .badRequest),
    ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", .lengthRequired),
    ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", .lengthRequired),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .badRequest),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", .badRequest),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", .badRequest),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n", .contentTooLarge),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", .contentTooLarge),
    ("GET /\(String(repeating: "a", count: 9000))", .headerTooLarge),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 9000))\r\n\r\n", .headerTooLarge),
  ]

  @Test("What cannot be read in one way alone is refused, and ends the connection", arguments: refused)
  func refusals(text: String, status: HTTPStatus) {
    #expect(Self.outputs(text + "GET / HTTP/1.1\r\nHost: a\r\n\r\n") == [.refused(status)])
  }

  @Test func aClientThatWaitsForContinueIsTold() throws {
    var parser = HTTPParser()
    parser.append(
      Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n".utf8))
    #expect(parser.next() == .expectsContinue)
    #expect(parser.next() == nil && parser.isInRequest)
    parser.append(Array("{}".utf8))
    guard case .request(let request) = parser.next() else { throw Failure("no request") }
    #expect(request.body == Array("{}".utf8) && request.staysOpen && !parser.isInRequest)
  }
}
