import EventLoop
import Glibc
import TestSupport

/// Receives the notifications for the service manager (sd_notify(3)), as datagrams on a socket of its own.
final class NotifySocket: Sendable {
  let path: String
  /// One element for each line of each datagram.
  let lines = Record<String>()
  private let descriptor: Int32

  init(in folder: TemporaryFolder) throws {
    path = folder.path + "/notify"
    let type = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = socket(AF_UNIX, type, 0)
    let descriptor = descriptor
    guard descriptor >= 0, withUnixAddress(path, { bind(descriptor, $0, $1) }) == 0 else {
      throw Failure("\(path): errno \(errno)")
    }
    let lines = lines
    detach {
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        for line in buffer[..<count].split(separator: 10) {
          lines.append(String(decoding: line, as: UTF8.self))
        }
      }
      close(descriptor)
    }
  }

  /// Ends the reading thread, which closes the socket.
  deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Waits for `line`, from index `start` on.
  func received(_ line: String, from start: Int = 0) async throws {
    _ = try await lines.first(from: start, within: Fixture.patience, "the notification \(line)") {
      $0 == line
    }
  }
}
