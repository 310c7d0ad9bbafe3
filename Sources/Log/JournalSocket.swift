import Glibc

/// The journal's socket for entries with fields (systemd's "native journal protocol"). `sd_journal_sendv` waits when
/// the journal is busy; this does not.
final class JournalSocket: Sendable {
  enum Result {
    case sent
    /// The journal does not read fast enough.
    case full
    /// There is no journal, or it refuses the entry.
    case absent
  }

  private let descriptor: Int32
  private let path: String

  init(path: String = "/run/systemd/journal/socket") {
    self.path = path
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  }

  deinit { close(descriptor) }

  /// Sends an entry, unless that would block. The address is given each time, as the journal may have been restarted.
  func send(_ entry: [UInt8]) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < capacity else { return .absent }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let sent = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(
          descriptor, entry, entry.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), $0,
          socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    if sent >= 0 { return .sent }
    return errno == EAGAIN || errno == ENOBUFS ? .full : .absent
  }
}
