import EventLoop
import Glibc
import Synchronization

/// A TCP proxy between a client and its broker, whose connections can be cut.
public final class BrokerProxy: Sendable {
  private struct State {
    var isCut = false
    /// Both ends of each connection.
    var open: Set<Int32> = []
  }

  /// Where it listens, on 127.0.0.1.
  public let port: UInt16
  private let listener: Int32
  private let dropsAcknowledgements: Bool
  private let state = Mutex(State())

  /// - Parameters:
  ///   - broker: the port of the broker on 127.0.0.1.
  ///   - dropsAcknowledgements: whether no PUBACK of the broker is passed on.
  public init(to broker: UInt16, dropsAcknowledgements: Bool = false) throws {
    self.dropsAcknowledgements = dropsAcknowledgements
    (port, listener) = try boundPort()
    guard listen(listener, 16) == 0 else { throw Failure("port \(port): errno \(errno)") }
    let listener = listener
    detach { [weak self] in
      while true {
        let near = accept(listener, nil, nil)
        if near < 0, errno == EINTR || errno == ECONNABORTED { continue }
        guard near >= 0 else { break }
        _ = fcntl(near, F_SETFD, FD_CLOEXEC)
        guard let self, let far = self.connect(near, to: broker) else {
          close(near)
          continue
        }
        self.pass(from: near, to: far)
      }
      close(listener)
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    for descriptor in state.withLock({ $0.open }) { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  /// Ends all connections, and refuses new ones until ``restore()``.
  public func cut() {
    state.withLock { state in
      state.isCut = true
      for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Accepts connections again.
  public func restore() { state.withLock { $0.isCut = false } }

  private func connect(_ near: Int32, to broker: UInt16) -> Int32? {
    let far = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isConnected = withLoopbackAddress(broker) { Glibc.connect(far, $0, $1) == 0 }
    let isOpen = state.withLock { state in
      guard isConnected, !state.isCut else { return false }
      state.open.formUnion([near, far])
      return true
    }
    if !isOpen { close(far) }
    return isOpen ? far : nil
  }

  /// Copies in both directions, each on its own thread, until either end closes.
  private func pass(from near: Int32, to far: Int32) {
    detach { [weak self, dropsAcknowledgements] in
      let back = Mutex(false)
      detach {
        Self.copy(from: far, to: near, PubackFilter(isOn: dropsAcknowledgements))
        back.withLock { $0 = true }
      }
      Self.copy(from: near, to: far)
      while !back.withLock({ $0 }) { usleep(1000) }
      // Before they are closed, as the descriptor numbers may be reused at once.
      self?.state.withLock { $0.open.subtract([near, far]) }
      close(near)
      close(far)
    }
  }

  private static func copy(
    from source: Int32, to target: Int32, _ filter: PubackFilter = PubackFilter(isOn: false)
  ) {
    var filter = filter
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = recv(source, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      let bytes = filter.pass(buffer[..<max(0, count)])
      var sent = 0
      while sent < bytes.count {
        let written = bytes.withUnsafeBytes {
          send(target, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
        }
        if written < 0, errno == EINTR { continue }
        guard written > 0 else { break }
        sent += written
      }
      guard count > 0, sent == bytes.count else { break }
    }
    for descriptor in [source, target] { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }
}

/// Leaves PUBACKs out of what a broker sends.
private struct PubackFilter {
  let isOn: Bool
  /// The beginning of a packet.
  private var rest: [UInt8] = []

  init(isOn: Bool) { self.isOn = isOn }

  mutating func pass(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    guard isOn else { return Array(bytes) }
    rest += bytes
    var passed: [UInt8] = []
    while let count = Self.packetSize(rest), rest.count >= count {
      if rest[0] >> 4 != 4 { passed += rest[..<count] }
      rest.removeFirst(count)
    }
    return passed
  }

  /// The size of the packet that begins with `bytes` (MQTT 5, 2.1.4); nil: not known yet.
  private static func packetSize(_ bytes: [UInt8]) -> Int? {
    var length = 0
    for (index, byte) in bytes.dropFirst().prefix(4).enumerated() {
      length |= Int(byte & 0x7F) << (7 * index)
      if byte & 0x80 == 0 { return 2 + index + length }
    }
    return nil
  }
}
