import EventLoop
import Glibc
import JSON
import Sockets

/// The control channel: a Unix stream socket with one JSON object per line, answered by one per line.
@LoopActor public final class ControlServer {
  private let simulator: Simulator
  private let path: String
  private var listener: SocketListener?
  private var clients: [ObjectIdentifier: LineSocket] = [:]

  private static let mostClients = 64

  /// Listens on a socket at `path`; replaces the socket of an earlier run.
  public init(_ simulator: Simulator, at path: String) throws {
    self.simulator = simulator
    self.path = path
    let descriptor = try UnixSocket.listen(at: path, mode: 0o755)
    listener = SocketListener([descriptor], mostConnections: Self.mostClients) { [weak self] client in
      self?.serve(client)
    }
  }

  /// Closes and removes the socket.
  public func stop() {
    listener = nil
    unlink(path)
    for client in clients.values { client.close() }
    clients = [:]
  }

  private func serve(_ descriptor: Int32) {
    let client = LineSocket(descriptor)
    let id = ObjectIdentifier(client)
    clients[id] = client
    client.onLine = { [weak self] line in self?.receive(line, from: id) }
    client.onEnd = { [weak self] in self?.drop(id) }
    client.onDrained = { [weak self] in
      if self?.clients[id]?.isHalfClosed == true { self?.drop(id) }
    }
  }

  private func drop(_ id: ObjectIdentifier) {
    guard let client = clients.removeValue(forKey: id) else { return }
    client.close()
    listener?.connectionEnded()
  }

  /// Lines are answered in order, one at a time.
  private func receive(_ line: [UInt8], from id: ObjectIdentifier) {
    clients[id]?.isPaused = true
    loop.task {
      let answer: JSONValue
      switch ControlRequest.parse(line) {
      case .success(let request): answer = await self.simulator.control(request)
      case .failure(let failure):
        answer = .error(failure.errors.map(\.description).joined(separator: "; "))
      }
      guard let client = self.clients[id] else { return }
      client.send(line: answer.bytes)
      client.isPaused = false
    }
  }
}
