import Glibc

/// The right to be the one process that writes a state database, as long as the object lives.
///
/// By a file of its own, `{path}.lock`, with flock(2): SQLite's locks on the database itself are there for the length of
/// a transaction, so that others can read it. The file stays behind; the kernel takes the lock away with the process.
final class FileLock: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws(StoreError) {
    let file = path + ".lock"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("open", file) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let isTaken = errno == EWOULDBLOCK
      let failure = StoreError.system("lock", file)
      close(descriptor)
      throw isTaken ? StoreError(.circumstances, "\(path) is in use by another process") : failure
    }
    self.descriptor = descriptor
  }

  deinit {
    // Said, not left to close(2): a child that is being forked holds the descriptor as well, until it is another program.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}
