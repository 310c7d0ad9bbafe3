import Glibc

/// What a person or a script types.
enum StandardInput {
  private static let longestLine = 64 << 10

  /// Blocks until there is a line; nil at the end of the input.
  ///
  /// Uses read(2): exit(3) of glibc 2.41 waits for a thread that waits in a function of stdio.
  static func line() -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = read(STDIN_FILENO, &byte, 1)
      if count == 1, byte != UInt8(ascii: "\n") {
        if bytes.count < longestLine { bytes.append(byte) }
        continue
      }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        // Another program has made standard input non-blocking.
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        poll(&input, 1, -1)
        continue
      }
      if count < 1, bytes.isEmpty { return nil }
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
}
