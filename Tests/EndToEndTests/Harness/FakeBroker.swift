import EventLoop
import Glibc
import TestSupport

/// A server on the loopback interface that does not speak MQTT.
final class FakeBroker: Sendable {
  enum Behaviour: Sendable {
    /// Accepts connections, and sends nothing.
    case silent
    /// Sends bytes that are not valid MQTT, and keeps the connection open.
    case nonsense([UInt8])
  }

  /// The connections so far.
  let connections = Record<Void>()
  private let listener: Int32

  init(port: UInt16, _ behaviour: Behaviour) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let listener = listener
    var on: Int32 = 1
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    let bound = withLoopbackAddress(port) { bind(listener, $0, $1) }
    guard bound == 0, listen(listener, 16) == 0 else { throw Failure("port \(port): errno \(errno)") }
    let connections = connections
    detach {
      var open: [Int32] = []
      while true {
        let descriptor = accept(listener, nil, nil)
        if descriptor < 0, errno == EINTR || errno == ECONNABORTED { continue }
        guard descriptor >= 0 else { break }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        open.append(descriptor)
        if case .nonsense(let bytes) = behaviour { send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        connections.append(())
      }
      for descriptor in open + [listener] { close(descriptor) }
    }
  }

  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  /// Waits for connection number `count`, counted from 1.
  func connected(times count: Int) async throws {
    guard count > 0 else { return }
    _ = try await connections.first(from: count - 1, within: Fixture.patience, "connection \(count)") { _ in
      true
    }
  }
}
