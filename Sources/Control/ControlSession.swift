import Bridge
import Configuration
import Devices
import EventLoop
import JSON
import Sockets

/// One client of the socket. Each line is a request, answered by a line; after `watch`, a line for each
/// reading.
@LoopActor final class ControlSession {
  /// Maximum number of a client's requests in progress; further ones wait in its socket.
  private static let mostUnanswered = 8
  /// How many bytes a client may leave unread: beyond it, it gets no readings, and its requests wait.
  private static let mostUnsent = 256 << 10

  private let socket: LineSocket
  private let requests: RequestHandler
  private let engine: DeviceManager
  private var unanswered = 0
  private var watch: ReadingWatch?
  private let openSetup: () -> Result<JSONValue, RequestError>
  private let onEnd: (ControlSession) -> Void

  /// - Parameters:
  ///   - openSetup: answers the request `setup`.
  ///   - onEnd: called once.
  init(
    _ socket: LineSocket, _ host: any RequestHost,
    _ openSetup: @escaping () -> Result<JSONValue, RequestError>,
    onEnd: @escaping (ControlSession) -> Void
  ) {
    self.socket = socket
    requests = RequestHandler(host: host)
    engine = host.engine
    self.openSetup = openSetup
    self.onEnd = onEnd
    socket.onLine = { [weak self] in self?.receive($0) }
    socket.onDrained = { [weak self] in self?.drained() }
    socket.onEnd = { [weak self] in self?.ended() }
  }

  func close() {
    stopWatching()
    socket.close()
  }

  // MARK: Requests

  private func receive(_ line: [UInt8]) {
    let verb: String
    let payload: JSONObject
    do throws(RequestError) {
      (verb, payload) = try Self.parse(line)
    } catch {
      send(RequestResponse(result: .failure(error), transaction: nil).json)
      return updatePause()
    }
    unanswered += 1
    updatePause()
    let respond: @LoopActor (RequestResponse) -> Void = { [weak self] in self?.answered($0) }
    if verb == "setup" {
      requests.handleOwn(verb, payload, as: NoKeys.self, respond: respond) { [openSetup] _ in openSetup() }
    } else if verb == "watch" {
      requests.handleOwn(verb, payload, as: WatchKeys.self, respond: respond) { [weak self] keys in
        self?.startWatching(keys) ?? .failure(RequestError("the client is gone"))
      }
    } else {
      requests.handle(verb, payload, respond: respond)
    }
  }

  /// - Returns: the verb, and the other keys of the line.
  nonisolated static func parse(_ line: [UInt8]) throws(RequestError) -> (verb: String, payload: JSONObject) {
    let object = try RequestHandler.object(in: line, called: "line")
    guard case .string(let verb) = object["request"] else {
      throw RequestError(.invalid, #"the key request is missing: {"request":"devices"}"#)
    }
    return (verb, JSONObject(object.members.filter { $0.name != "request" }))
  }

  private func answered(_ response: RequestResponse) {
    unanswered -= 1
    send(response.json)
    watch?.begin()
    updatePause()
  }

  private func send(_ json: JSONValue) { socket.send(line: json.bytes) }

  private func updatePause() {
    socket.isPaused = unanswered >= Self.mostUnanswered || socket.unsent > Self.mostUnsent
  }

  private func drained() {
    watch?.drained()
    updatePause()
    // A client that has closed only its sending side still waits for its answers.
    if socket.isHalfClosed, unanswered == 0, watch == nil, socket.unsent == 0 {
      socket.close()
      ended()
    }
  }

  private func ended() {
    stopWatching()
    onEnd(self)
  }

  // MARK: Watching

  private func startWatching(_ keys: WatchKeys) -> Result<JSONValue, RequestError> {
    stopWatching()
    if let id = keys.id {
      do throws(RequestError) {
        _ = try engine.description(of: id)
        if let name = keys.property { _ = try engine.property(name, of: id) }
      } catch {
        return .failure(error)
      }
    }
    watch = ReadingWatch(keys, engine) { [socket] line in
      guard socket.unsent <= Self.mostUnsent else { return false }
      socket.send(line: line)
      return true
    }
    return .success([:])
  }

  private func stopWatching() {
    watch?.end()
    watch = nil
  }
}

/// The keys of `setup`.
private struct NoKeys: RequestKeys {}

/// The keys of `watch`.
struct WatchKeys: RequestKeys {
  /// The device; nil: all devices.
  var id: DeviceID?
  /// The property; nil: all properties.
  var property: String?

  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.id, .optional(.deviceID)),
    ConfigurationKey("property", \.property, .optional(.propertyName)),
  ]
}
