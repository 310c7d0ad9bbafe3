import Glibc

/// The exclusive right to write a state database, held for the lifetime of the object.
///
/// The lock is one (flock(2)) of the file `{path}.lock`: SQLite locks the database itself for a transaction only, so that
/// others can read it. The file remains; the kernel releases the lock when the process ends.
final class FileLock: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws(StoreError) {
    let file = path + ".lock"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("open", file) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      defer { close(descriptor) }
      guard errno == EWOULDBLOCK else { throw .system("lock", file) }
      throw StoreError(.inUse, "\(path) is in use by another process")
    }
    self.descriptor = descriptor
  }

  /// Whether another process has the lock, as far as this user may know; no file is created.
  static func isHeld(_ path: String) -> Bool {
    let descriptor = open(path + ".lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }

  deinit {
    // Explicitly, as a forked child holds the descriptor too until it calls exec.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}
