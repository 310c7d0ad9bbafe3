import EventLoop
import Sockets

/// A client: its requests one after the other, and the answers.
@LoopActor final class HTTPConnection {
  /// The most time from the begin of a request to its end.
  static let requestLimit = Duration.seconds(10)
  /// The most time between two requests. A browser opens several connections for the page, and keeps them.
  static let idleLimit = Duration.seconds(10)
  /// The most time in which a client reads nothing of an answer, or waits for one after it has ended its sending.
  static let sendLimit = Duration.seconds(60)
  /// How long bytes are still read from a client that was refused: it would not get the reason otherwise.
  private static let lingerLimit = Duration.seconds(2)
  /// While more is unsent, no more of a body is made; in bytes.
  private static let mostUnsent = 32 << 10

  private enum State {
    case receiving
    /// The answer is awaited.
    case handling(HTTPRequest)
    /// The rest of a body is sent; nil: all of it is with the socket.
    case sending(HTTPRequest?, (any BodySource)?, closes: Bool)
    /// The last answer is sent, and nothing more is answered.
    case lingering
  }

  let peer: [UInt8]
  /// Whether the client may change something, by its last request.
  var mayChange = false
  /// Whether a request of the gateway runs for the client.
  var isRequestRunning = false
  /// Whether the connection ends after the answer.
  private var isLast = false
  private let socket: ByteSocket
  private var parser = HTTPParser()
  private var state = State.receiving
  /// When the connection ends, unless something happens before.
  private(set) var deadline: Moment?
  /// What the client had not read when the deadline was set.
  private var unread = 0
  private let handle: (HTTPRequest, HTTPConnection) -> Void
  private let onEnd: (HTTPConnection) -> Void

  /// - Parameters:
  ///   - descriptor: a connected socket, owned from now on.
  ///   - handle: called with each request; ``respond(_:)`` follows once.
  ///   - onEnd: called once.
  init(
    _ descriptor: Int32, peer: [UInt8],
    handle: @escaping (HTTPRequest, HTTPConnection) -> Void,
    onEnd: @escaping (HTTPConnection) -> Void
  ) {
    self.peer = peer
    self.handle = handle
    self.onEnd = onEnd
    socket = ByteSocket(descriptor)
    deadline = .now + Self.requestLimit
    socket.onBytes = { [weak self] in self?.received($0) }
    socket.onDrained = { [weak self] in self?.drained() }
    socket.onEnd = { [weak self] in self?.ended() }
  }

  /// Whether a request is being answered.
  var isHandling: Bool { if case .handling = state { true } else { false } }
  /// Whether the client gets events.
  var isStream: Bool { if case .sending(_, let source?, _) = state { source.isEndless } else { false } }

  func close() {
    guard !socket.isClosed else { return }
    socket.close()
    ended()
  }

  /// Closes the socket, after the answer if there is a request.
  func closeWhenAnswered() { if isHandling { isLast = true } else { close() } }

  private func ended() {
    if case .sending(_, let source, _) = state { source?.end() }
    state = .lingering
    onEnd(self)
  }

  /// The deadline is over.
  func expire() {
    deadline = nil
    switch state {
    case .receiving where parser.isInRequest: refuse(.requestTimeout)
    case .sending where unsent < unread: awaitReading()
    // The client has read all that there is.
    case .sending(_, let source?, _) where unsent == 0 && !source.isEndless: awaitReading()
    default: close()
    }
  }

  // MARK: Receiving

  private func received(_ bytes: UnsafeRawBufferPointer) {
    switch state {
    case .receiving:
      if !parser.isInRequest { deadline = .now + Self.requestLimit }
      parser.append(bytes)
      parse()
    case .handling, .sending:
      // Requests may follow at once, but what is beyond one of them waits in the kernel.
      parser.append(bytes)
      socket.isPaused = parser.isFull
    case .lingering: break
    }
  }

  private func parse() {
    guard case .receiving = state else { return }
    switch parser.next() {
    case nil: break
    case .expectsContinue: socket.send("HTTP/1.1 100 Continue\r\n\r\n".utf8)
    case .refused(let status): refuse(status)
    case .request(let request):
      deadline = nil
      state = .handling(request)
      // The end of a client is noticed while it is read from.
      socket.isPaused = parser.isFull
      handle(request, self)
    }
  }

  private func refuse(_ status: HTTPStatus) { send(.error(status), to: nil, closes: true) }

  // MARK: Answering

  func respond(_ response: HTTPResponse) {
    guard case .handling(let request) = state, !socket.isClosed else {
      if case .source(let source) = response.body { source.end() }
      return
    }
    let closes = isLast || !request.staysOpen || socket.isHalfClosed && !parser.isInRequest
    send(response, to: request, closes: closes)
  }

  private func send(_ response: HTTPResponse, to request: HTTPRequest?, closes: Bool) {
    socket.send(response.head(for: request, closes: closes))
    defer { awaitReading() }
    switch response.body {
    case .bytes(let bytes):
      if request?.method != "HEAD", response.status != .notModified { socket.send(bytes) }
      state = .sending(request, nil, closes: closes)
    case .source(let source) where request?.method == "HEAD":
      source.end()
      state = .sending(request, nil, closes: closes)
    case .source(let source):
      state = .sending(request, source, closes: closes)
      pump()
    }
  }

  /// Sends what there is of the body.
  func pump() {
    guard case .sending(let request, let source?, let closes) = state else { return }
    let isChunked = request?.isHTTP11 == true
    while socket.unsent < Self.mostUnsent {
      guard let bytes = source.next() else {
        source.end()
        if isChunked { socket.send("0\r\n\r\n".utf8) }
        state = .sending(request, nil, closes: closes)
        if socket.unsent == 0 { drained() }
        return
      }
      guard !bytes.isEmpty else { return }
      if isChunked { socket.send((String(bytes.count, radix: 16) + "\r\n").utf8) }
      socket.send(bytes)
      if isChunked { socket.send("\r\n".utf8) }
      if !source.isEndless { awaitReading() }
    }
  }

  private func awaitReading() { (deadline, unread) = (.now + Self.sendLimit, unsent) }

  /// Bytes that the client has not read yet.
  var unsent: Int { socket.unsent }

  private func drained() {
    switch state {
    case .receiving, .lingering: if socket.isHalfClosed { close() }
    case .handling:
      // A client that sends nothing more gets the answer that it waits for, if that comes soon: it may have gone.
      if socket.isHalfClosed, deadline == nil { deadline = .now + Self.sendLimit }
    case .sending(_, let source?, _):
      // The client may be waiting for the rest.
      if socket.isHalfClosed, source.isEndless { return close() }
      awaitReading()
      pump()
    case .sending(_, nil, closes: true):
      state = .lingering
      socket.isPaused = false
      socket.endSending()
      deadline = .now + Self.lingerLimit
      if socket.isHalfClosed { close() }
    case .sending(_, nil, closes: false):
      state = .receiving
      deadline = .now + (parser.isInRequest ? Self.requestLimit : Self.idleLimit)
      socket.isPaused = false
      if socket.isHalfClosed, !parser.isInRequest { return close() }
      parse()
    }
  }
}
