import Devices
import EventLoop
import JSON
import Sockets

/// A client of the gateway's socket.
@LoopActor package final class ControlClient {
  /// The most bytes of an answer: the list of 1000 devices has 300 KiB, more with many properties.
  private static let longestAnswer = 16 << 20

  private let socket: LineSocket
  private var waiter: Waiter<[UInt8]>?
  /// The gateway's process; nil: it is not visible from here, as from another container.
  package let process: UInt32?
  /// Whether the gateway has sent anything: it serves this client.
  package private(set) var isServed = false
  /// Called with each line that is not the answer to a request.
  package var onLine: (JSONValue) -> Void = { _ in }
  /// Called once, when the gateway has closed the connection.
  package var onEnd: () -> Void = {}

  /// - Parameter descriptor: a connected socket, owned from now on.
  package init(_ descriptor: Int32) {
    process = UnixSocket.peer(of: descriptor)?.process
    socket = LineSocket(descriptor, longestLine: Self.longestAnswer)
    socket.onLine = { [weak self] line in
      guard let self else { return }
      isServed = true
      if let waiter {
        self.waiter = nil
        waiter.resume(.success(line))
      } else if let json = try? JSONParser.parse(line) {
        onLine(json)
      }
    }
    socket.onEnd = { [weak self] in self?.ended() }
    socket.onDrained = { [weak self] in if self?.socket.isHalfClosed == true { self?.ended() } }
  }

  package func close() { socket.close() }

  /// Whether reading is paused: the gateway keeps what it sends meanwhile, and drops what it cannot keep.
  package var isPaused: Bool {
    get { socket.isPaused }
    set { socket.isPaused = newValue }
  }

  private func ended() {
    socket.close()
    waiter?.resume(.failure(RequestError("the gateway has ended")))
    waiter = nil
    onEnd()
  }

  /// Sends a request and waits for its answer; one at a time.
  /// - Returns: the data of the response.
  package func request(
    _ verb: String, _ keys: JSONValue = [:], within limit: Duration = .seconds(30)
  ) async throws(RequestError) -> JSONValue {
    guard !socket.isClosed else { throw RequestError("the gateway has ended") }
    let waiter = Waiter<[UInt8]>()
    self.waiter = waiter
    socket.send(line: (["request": .string(verb)] as JSONValue).merging(keys).bytes)
    let timer = loop.timer(after: limit) { [weak self] in
      let most = ControlServer.mostClients
      let reason =
        self?.isServed == false
        ? ": perhaps \(most) programs are connected to it, and one of them has to end first" : ""
      waiter.resume(.failure(RequestError("the gateway does not answer\(reason)")))
      // An answer that is late must not be taken for the next one.
      self?.ended()
    }
    defer { timer.cancel() }
    let line: [UInt8]
    do {
      line = try await waiter.value()
    } catch {
      throw error as? RequestError ?? RequestError("\(error)")
    }
    guard let json = try? JSONParser.parse(line) else {
      throw RequestError("the gateway's answer is no JSON")
    }
    if json["status"] == .string("ok") { return json["data"] ?? .null }
    guard let reason = json["error"]?.text else { throw RequestError("the answer has no reason") }
    throw RequestError(json["code"]?.text.flatMap(RequestError.Code.init) ?? .unavailable, reason)
  }
}
