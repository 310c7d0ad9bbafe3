import Configuration
import Devices
import EventLoop
import JSON
import Log
import Sockets

/// What the page for set-up needs of the gateway.
@LoopActor package protocol SetupHost: AnyObject {
  /// What is found on this computer and in range.
  var situation: JSONValue { get }
  /// Tries the answers of the form, and keeps them.
  /// - Returns: nil: the gateway starts again with them; else why they cannot be used.
  func submit(_ answers: JSONValue) async -> JSONValue?
}

/// The page for set-up in a browser, on every address of this computer, while there is a code.
@LoopActor package final class SetupSite {
  private unowned let host: any SetupHost
  private let http: Configuration.HTTP
  private let log = Logger(component: "setup")
  /// Every address of this computer.
  private static let address = "::"
  private var session = SetupSession()
  private var random = SystemRandomNumberGenerator()
  private var rules: AccessRules
  private var guesses = PasswordGuesses()
  private var clients: HTTPClients?
  /// How long the page is served after ``open()``; another one in tests.
  var lifetime = Duration.seconds(30 * 60)
  private(set) var end: LoopTimer?

  /// - Parameters:
  ///   - http: the port, and the language of the page.
  ///   - host: must outlive the site.
  package init(_ http: Configuration.HTTP, host: any SetupHost) {
    self.host = host
    var everywhere = http
    everywhere.addresses = [Self.address]
    self.http = everywhere
    rules = AccessRules(
      Passwords(), port: http.port, names: { Configuration.HTTP.hostsOfThisComputer })
  }

  /// Makes a code, or gives the present one more time, and tells it in the log.
  /// - Returns: how somebody gets to the page: the code (`K7QD-3MPX`), the URLs, and for how many minutes.
  package func open() -> Result<JSONValue, RequestError> {
    if clients == nil {
      switch TCPSocket.listen(at: Self.address, port: http.port) {
      case .failure(let failure):
        let reason = "the page for set-up is not served: port \(http.port): \(failure)"
        log.warning("\(reason)")
        return .failure(RequestError(reason))
      case .success(let descriptor):
        clients = HTTPClients([descriptor]) { [weak self] in self?.handle($0, $1) }
      }
    }
    let invitation = tell(session.open(using: &random))
    end?.cancel()
    end = loop.timer(after: lifetime) { [weak self] in
      self?.log.notice("set-up in a browser has ended; to open it again: sudo microbit-gateway setup")
      self?.close()
    }
    return .success(invitation)
  }

  package func close() {
    end?.cancel()
    clients?.stop()
    clients = nil
    session.end()
  }

  private func tell(_ code: String) -> JSONValue {
    let (code, urls) = (SetupSession.shown(code), http.urls())
    log.notice(
      "open this address in a browser to set the gateway up",
      ["code": code, "url": urls.joined(separator: " ")])
    return [
      "code": .string(code), "urls": .array(urls.map(JSONValue.string)),
      "minutes": .integer(Int(lifetime.components.seconds) / 60),
    ]
  }

  // MARK: Requests

  private static let path = "/api/setup/"

  private func handle(_ request: HTTPRequest, _ connection: HTTPConnection) {
    if let refusal = rules.refusal(request, from: connection.peer, at: .now) {
      // Whoever asks may be at another computer.
      return connection.respond(
        refusal.status == .misdirectedRequest
          ? .error(.misdirectedRequest, "open \(http.urls().joined(separator: " or "))") : refusal)
    }
    guard clients?.isFull == false else { return connection.respond(.error(.unavailable)) }
    if [Self.path + "situation", Self.path + "submit"].contains(request.path) {
      guard request.method == "POST" else { return connection.respond(WebSite.wrongMethod("POST")) }
      return answer(request, connection)
    }
    guard let file = PageFiles.setup.response(request, http.language) else {
      return connection.respond(.error(.notFound))
    }
    guard ["GET", "HEAD"].contains(request.method) else {
      return connection.respond(WebSite.wrongMethod("GET, HEAD"))
    }
    connection.respond(file)
  }

  private func answer(_ request: HTTPRequest, _ connection: HTTPConnection) {
    let now = Moment.now
    if let seconds = guesses.wait(connection.peer, at: now) {
      return connection.respond(.json(["reason": "wait", "seconds": .integer(seconds)], .tooManyRequests))
    }
    guard let body = try? JSONParser.parse(request.body), let code = body["code"]?.text else {
      return connection.respond(.error(.badRequest))
    }
    let isSubmission = request.path.hasSuffix("submit")
    let answer = session.check(code, submits: isSubmission, using: &random)
    guesses.guessed(connection.peer, isRight: ![.wrong, .renewed].contains(answer), at: now)
    switch answer {
    case .right where !isSubmission: connection.respond(.json(host.situation))
    case .right: submit(body["answers"] ?? [:], connection)
    case .wrong: connection.respond(.json(["reason": "wrong"], .forbidden))
    case .renewed:
      if let code = session.code { _ = tell(code) }
      connection.respond(.json(["reason": "renewed"], .forbidden))
    case .busy: connection.respond(.json(["reason": "busy"], .unavailable))
    case .done(let time):
      connection.respond(.json(["reason": "done", "time": .string(time.description)], .conflict))
    }
  }

  private func submit(_ answers: JSONValue, _ connection: HTTPConnection) {
    loop.task { [self] in
      let problem = await host.submit(answers)
      session.endSubmission(doneAt: problem == nil ? .now : nil)
      connection.respond(.json(problem ?? [:], problem == nil ? .ok : .conflict))
    }
  }
}
