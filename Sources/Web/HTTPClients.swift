import EventLoop
import Glibc
import Sockets

/// The clients of listening sockets: how many are served, for how long, and how much they may leave unread.
@LoopActor final class HTTPClients {
  /// Further clients wait.
  nonisolated static let most = 64
  /// The most connections of one address; further ones are closed.
  nonisolated static let mostOfPeer = 32
  /// The most bytes that all clients together have not read; beyond that, nothing is answered.
  static let mostUnsent = 4 << 20

  private var listener: SocketListener?
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var timer: LoopTimer?
  private let onTick: () -> Void
  private let handle: (HTTPRequest, HTTPConnection) -> Void

  /// - Parameters:
  ///   - descriptors: listening sockets, owned from now on.
  ///   - onTick: called once a second while there are clients.
  ///   - handle: called with each request.
  init(
    _ descriptors: [Int32], onTick: @escaping () -> Void = {},
    handle: @escaping (HTTPRequest, HTTPConnection) -> Void
  ) {
    self.onTick = onTick
    self.handle = handle
    listener = SocketListener(descriptors, mostConnections: Self.most) { [weak self] in
      if let self { serve($0) } else { close($0) }
    }
  }

  var count: Int { connections.count }
  var runningRequests: Int { connections.values.count(where: \.isRequestRunning) }

  /// Whether clients read so slowly that nothing more can be answered.
  var isFull: Bool { connections.values.reduce(0) { $0 + $1.unsent } >= Self.mostUnsent }

  /// Ends the connections, those with a request after its answer; new ones are served.
  func disconnect() { for connection in connections.values { connection.closeWhenAnswered() } }

  func stop() {
    listener = nil
    disconnect()
  }

  private func serve(_ descriptor: Int32) {
    let peer = TCPSocket.peer(of: descriptor)
    guard connections.values.count(where: { $0.peer == peer }) < Self.mostOfPeer else {
      close(descriptor)
      listener?.connectionEnded()
      return
    }
    let connection = HTTPConnection(descriptor, peer: peer) { [weak self] in
      self?.handle($0, $1)
    } onEnd: { [self] ended in
      // Until then it keeps this object, which may be stopped.
      connections[ObjectIdentifier(ended)] = nil
      listener?.connectionEnded()
    }
    if connections.count == Self.most - 1 { makeRoom() }
    connections[ObjectIdentifier(connection)] = connection
    if timer?.isPending != true { tick() }
  }

  /// Ends a connection, so that who may change something always gets one; the idle ones first, as their deadlines are nearer.
  private func makeRoom() {
    let others = connections.values.filter { !$0.mayChange && !$0.isStream && !$0.isHandling }
    others.min { ($0.deadline ?? .now) < ($1.deadline ?? .now) }?.close()
  }

  private func tick() {
    let now = Moment.now
    for connection in connections.values {
      if let deadline = connection.deadline, deadline < now { connection.expire() }
    }
    if listener != nil { onTick() }
    guard !connections.isEmpty else { return }
    timer = loop.timer(after: .seconds(1)) { [weak self] in self?.tick() }
  }
}
