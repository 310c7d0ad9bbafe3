import Devices
import EventLoop
import JSON

enum HTTPStatus: Int, Error, Sendable {
  case ok = 200
  case notModified = 304
  case badRequest = 400
  case unauthorized = 401
  case forbidden = 403
  case notFound = 404
  case methodNotAllowed = 405
  case requestTimeout = 408
  case conflict = 409
  case lengthRequired = 411
  case contentTooLarge = 413
  case unsupportedMediaType = 415
  case misdirectedRequest = 421
  case tooManyRequests = 429
  case headerTooLarge = 431
  case unavailable = 503
  case versionNotSupported = 505

  /// The text for people.
  var text: String {
    switch self {
    case .ok: "OK"
    case .notModified: "Not Modified"
    case .badRequest: "this is no valid HTTP request"
    case .unauthorized: "a password is needed"
    case .forbidden: "only the page itself may send requests; a proxy has to add X-Forwarded-Host"
    case .notFound: "there is nothing here"
    case .methodNotAllowed: "another method is needed"
    case .requestTimeout: "the request did not arrive in time"
    case .conflict: "the operation has failed"
    case .lengthRequired: "Content-Length is missing"
    case .contentTooLarge: "the body is longer than \(HTTPParser.longestBody) bytes"
    case .unsupportedMediaType: "the Content-Type must be application/json"
    case .misdirectedRequest: "ask by an address of this computer, such as 127.0.0.1"
    case .tooManyRequests: "there were too many wrong passwords: wait"
    case .headerTooLarge: "the header is longer than \(HTTPParser.longestHeader) bytes"
    case .unavailable: "this is not possible now"
    case .versionNotSupported: "HTTP/1.1 or 1.0 is needed"
    }
  }

  /// The HTTP status for the error of a request.
  init(_ code: RequestError.Code) {
    switch code {
    case .invalid: self = .badRequest
    case .notFound: self = .notFound
    case .unavailable: self = .unavailable
    case .failed: self = .conflict
    }
  }

  fileprivate var code: RequestError.Code {
    switch self {
    case .notFound: .notFound
    case .conflict: .failed
    case .unavailable, .requestTimeout, .tooManyRequests: .unavailable
    case _: .invalid
    }
  }
}

/// What is sent to a client.
struct HTTPResponse: Sendable {
  enum Body: Sendable {
    case bytes([UInt8])
    /// A body of unknown length, made as fast as the client reads it.
    case source(any BodySource)
  }

  var status = HTTPStatus.ok
  var type = "application/json"
  var cacheControl = "no-store"
  var headers: [(name: String, value: String)] = []
  var body: Body

  static func json(_ value: JSONValue, _ status: HTTPStatus = .ok) -> HTTPResponse {
    HTTPResponse(status: status, body: .bytes(value.bytes))
  }

  /// A response with an error in the form of a request's error.
  static func error(
    _ status: HTTPStatus, _ text: String? = nil, _ headers: [(String, String)] = []
  ) -> HTTPResponse {
    let json: JSONValue = [
      "status": "error", "code": .string(status.code.rawValue), "error": .string(text ?? status.text),
    ]
    return HTTPResponse(status: status, headers: headers, body: .bytes(json.bytes))
  }

  /// The status line and the header.
  func head(for request: HTTPRequest?, closes: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(status.rawValue) \(status.rawValue < 400 ? status.text : "Error")\r\n"
    var lines = [
      ("Content-Type", type), ("Cache-Control", cacheControl), ("X-Content-Type-Options", "nosniff"),
      ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
    switch body {
    case .bytes(let bytes): lines.append(("Content-Length", "\(bytes.count)"))
    case .source where request?.isHTTP11 == true: lines.append(("Transfer-Encoding", "chunked"))
    case .source: break
    }
    lines += headers
    if closes { lines.append(("Connection", "close")) }
    for (name, value) in lines { text += "\(name): \(value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}

/// Makes a body piece by piece.
@LoopActor protocol BodySource: AnyObject, Sendable {
  /// Whether it goes on until the client is gone.
  var isEndless: Bool { get }
  /// The next piece; nil: the body is complete; empty: nothing at the moment.
  func next() -> [UInt8]?
  /// The client is gone.
  func end()
}

extension BodySource {
  var isEndless: Bool { false }
}

/// A body of parts that are made when the client has read those before.
@LoopActor final class Parts: BodySource {
  private var remaining: [@LoopActor () -> [UInt8]]

  init(_ parts: [@LoopActor () -> [UInt8]]) { remaining = parts.reversed() }

  func next() -> [UInt8]? {
    while let part = remaining.popLast() {
      let bytes = part()
      if !bytes.isEmpty { return bytes }
    }
    return nil
  }

  func end() { remaining = [] }
}
