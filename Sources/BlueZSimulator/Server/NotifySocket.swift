import DBus
import EventLoop
import Glibc

/// bluetoothd's end of the socket pair of an AcquireNotify (BlueZ sources, `src/gatt-client.c`, `create_sock`): one
/// packet per value.
@LoopActor final class NotifySocket {
  private let descriptor: Int32
  private var watch: Watch?

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Creates a socket pair: the simulator's end and the client's.
  /// - Parameter onClose: called when the client has closed its end.
  static func pair(onClose: @escaping @LoopActor () -> Void) -> (NotifySocket, FileDescriptor) {
    var ends: [Int32] = [0, 0]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { fatalError("out of descriptors") }
    let socket = NotifySocket(ends[0])
    socket.watch = loop.watch(ends[0], for: []) { readiness in
      if !readiness.isDisjoint(with: .closed) { onClose() }
    }
    return (socket, FileDescriptor(owning: ends[1]))
  }

  /// Sends a value, which is lost if it does not fit.
  func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

  func close() {
    watch?.cancel()
    watch = nil
    Glibc.close(descriptor)
  }
}
