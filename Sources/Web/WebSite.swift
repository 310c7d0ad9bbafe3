import Bridge
import Configuration
import Devices
import EventLoop
import JSON
import Recording

/// The server while it listens: which path is what.
@LoopActor final class WebSite {
  /// Requests of the gateway that run at a time for clients that wait for them, and with those whose client has gone.
  nonisolated static let mostRequests = 8
  private static let mostRunning = 64

  let state: WebState
  private let requests: RequestHandler
  private var rules: AccessRules
  private let language: Configuration.PageLanguage
  private var clients: HTTPClients?
  private var running = 0

  /// - Parameter descriptors: listening sockets, owned from now on.
  init(
    _ descriptors: [Int32], _ state: WebState, _ rules: AccessRules, _ language: Configuration.PageLanguage
  ) {
    self.state = state
    requests = RequestHandler(host: state.host)
    self.rules = rules
    self.language = language
    clients = HTTPClients(descriptors) { [state] in
      state.tick()
    } handle: { [weak self] in
      self?.handle($0, $1)
    }
  }

  func setPasswords(_ passwords: Passwords) {
    guard passwords != rules.passwords else { return }
    rules.passwords = passwords
    clients?.disconnect()
  }

  func stop() {
    clients?.stop()
    state.end()
  }

  // MARK: Paths

  private func handle(_ request: HTTPRequest, _ connection: HTTPConnection) {
    let refusal = rules.refusal(request, from: connection.peer, at: .now)
    connection.mayChange = refusal == nil && !rules.isReadOnly(request)
    if let refusal { return connection.respond(refusal) }
    guard clients?.isFull == false else {
      return connection.respond(.error(.unavailable, "other clients read too slowly: try again"))
    }
    if request.path.hasPrefix(Self.requestPath) {
      guard request.method == "POST" else { return connection.respond(Self.wrongMethod("POST")) }
      return carryOut(String(request.path.dropFirst(Self.requestPath.count)), request.body, connection)
    }
    let device = Self.nameOfTable(in: "/api/history/", request.path)
    let record = Self.nameOfTable(in: "/api/record/", request.path)
    let file = PageFiles.page.response(request, language)
    guard file != nil || device != nil || record != nil || Self.paths.contains(request.path) else {
      return connection.respond(.error(.notFound))
    }
    guard ["GET", "HEAD"].contains(request.method) else {
      return connection.respond(Self.wrongMethod("GET, HEAD"))
    }
    if let file { return connection.respond(file) }
    if let device { return connection.respond(history(device, request)) }
    if let record { return recording(record, request, connection) }
    switch request.path {
    case "/api/gateway": connection.respond(.json(state.gatewayJSON(isReadOnly: !connection.mayChange)))
    case "/api/devices": connection.respond(HTTPResponse(body: .source(devices)))
    case Self.eventsPath: events(request, connection)
    case "/metrics":
      let metrics = Metrics(state: state, connections: clients?.count ?? 0)
      connection.respond(HTTPResponse(type: Metrics.type, body: .source(metrics.body)))
    case _: connection.respond(health)
    }
  }

  private static let requestPath = "/api/request/"
  nonisolated static let eventsPath = "/api/events"
  private static let paths: Set = ["/api/gateway", "/api/devices", eventsPath, "/metrics", "/health"]

  /// The name in a path such as `/api/history/{name}.csv`; nil: it is another path.
  private static func nameOfTable(in folder: String, _ path: String) -> String? {
    guard path.hasPrefix(folder), path.hasSuffix(".csv") else { return nil }
    return PercentEncoding.decode(path.dropFirst(folder.count).dropLast(".csv".count))
  }

  static func wrongMethod(_ allowed: String) -> HTTPResponse {
    .error(.methodNotAllowed, nil, [("Allow", allowed)])
  }

  private func carryOut(_ verb: String, _ body: [UInt8], _ connection: HTTPConnection) {
    guard let clients, clients.runningRequests < Self.mostRequests, running < Self.mostRunning else {
      return connection.respond(.error(.unavailable, "\(Self.mostRequests) requests are running: try again"))
    }
    connection.isRequestRunning = true
    running += 1
    requests.handle(verb, body) { [weak self, weak connection] response in
      self?.running -= 1
      connection?.isRequestRunning = false
      var status = HTTPStatus.ok
      if case .failure(let error) = response.result { status = HTTPStatus(error.code) }
      connection?.respond(.json(response.json, status))
    }
  }

  private var devices: Parts {
    let devices = state.sorted
    let parts = devices.enumerated().map { index, device in
      { @LoopActor [state] in Array((index == 0 ? "[" : ",").utf8) + state.json(device).bytes }
    }
    return Parts(parts + [{ Array((devices.isEmpty ? "[]" : "]").utf8) }])
  }

  private var health: HTTPResponse {
    var health = state.host.health
    // Clients do not get the path of the configuration file.
    health.configuration = nil
    return .json(health.json, health.isHealthy ? .ok : .unavailable)
  }

  private func history(_ name: String, _ request: HTTPRequest) -> HTTPResponse {
    guard let device = state.device(name) else {
      return .error(.notFound, "no device is called \(Excerpt(name))")
    }
    guard let hours = Int(request.parameter("hours") ?? "24"), (1...24).contains(hours) else {
      return .error(.badRequest, "hours must be a number from 1 to 24")
    }
    return Self.download(name, HistoryTable.body(device, hours: hours, state))
  }

  private static func download(_ name: String, _ body: any BodySource) -> HTTPResponse {
    // Headers are in ASCII.
    let file = TopicWord.isPlain(name) ? #"="\#(name).csv""# : "*=UTF-8''\(PercentEncoding.encode(name)).csv"
    return HTTPResponse(
      type: "text/csv; charset=utf-8",
      headers: [("Content-Disposition", "attachment; filename\(file)")], body: .source(body))
  }

  private func recording(_ name: String, _ request: HTTPRequest, _ connection: HTTPConnection) {
    guard let layout = RecordingTable.Layout(rawValue: request.parameter("layout") ?? "rows") else {
      return connection.respond(.error(.badRequest, "layout must be rows or wide"))
    }
    guard let open = state.host.recorder.table(name, layout) else {
      return connection.respond(.error(.notFound, "there is no recording \(Excerpt(name))"))
    }
    let body = RecordingDownload(open)
    body.onReady = { [weak connection] in if connection?.unsent == 0 { connection?.pump() } }
    body.onFailure = { [weak connection] in connection?.close() }
    connection.respond(Self.download(name, body))
  }

  private func events(_ request: HTTPRequest, _ connection: HTTPConnection) {
    guard let stream = state.addStream(isReadOnly: !connection.mayChange) else {
      return connection.respond(.error(.unavailable, "too many pages are open"))
    }
    stream.onReady = { [weak connection] in if connection?.unsent == 0 { connection?.pump() } }
    stream.onClose = { [weak connection] in connection?.close() }
    // Home Assistant's ingress before 2026.3 compresses every text, and keeps the events until it has enough of them.
    let isIngress = request.header("x-ingress-path") != nil
    // nginx would collect the events, Traefik and Caddy compress them.
    connection.respond(
      HTTPResponse(
        type: isIngress ? "application/octet-stream" : "text/event-stream",
        cacheControl: "no-store, no-transform", headers: [("X-Accel-Buffering", "no")], body: .source(stream))
    )
  }
}
