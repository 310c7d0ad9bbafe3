import EventLoop
import Glibc

/// Why a file cannot be used.
package struct RecordingFailure: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }

  /// Makes an error from the current `errno`.
  static func system(_ action: String, _ path: String) -> RecordingFailure {
    let number = errno
    return RecordingFailure("cannot \(action) \(path): \(String(cString: strerror(number)))")
  }
}

/// An open file. All of it blocks.
final class RecordingFile: Sendable {
  let path: String
  private let descriptor: Int32

  init(_ path: String, _ flags: Int32) throws(RecordingFailure) {
    self.path = path
    descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw .system("open", path) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      // `deinit` closes the descriptor.
      throw RecordingFailure("cannot open \(path): it is not a regular file")
    }
  }

  deinit { close(descriptor) }

  var status: (bytes: Int, changed: Int64) {
    var status = stat()
    fstat(descriptor, &status)
    // Some file systems keep a date of any year.
    let seconds = min(max(0, status.st_mtim.tv_sec), RecordingLine.times.upperBound / 1000)
    return (Int(status.st_size), Int64(seconds) * 1000)
  }

  /// Adds bytes durably at the end, which is at `size`; if that fails, the file is as before.
  /// - Parameter reserve: how many bytes of the disk stay free.
  func append(_ bytes: [UInt8], at size: Int, reserve: Int) throws(RecordingFailure) {
    var disk = statvfs()
    if fstatvfs(descriptor, &disk) == 0, Folder.free(on: disk) < reserve + bytes.count {
      throw RecordingFailure("cannot write \(path): the disk is full")
    }
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        pwrite(descriptor, $0.baseAddress! + written, bytes.count - written, off_t(size + written))
      }
      guard count > 0 else { throw undo(size) }
      written += count
    }
    guard fdatasync(descriptor) == 0 else { throw undo(size) }
  }

  private func undo(_ size: Int) -> RecordingFailure {
    let failure = RecordingFailure.system("write", path)
    ftruncate(descriptor, off_t(size))
    return failure
  }

  func cut(to size: Int) throws(RecordingFailure) {
    guard ftruncate(descriptor, off_t(size)) == 0 else { throw .system("write", path) }
  }

  /// The bytes from `offset` on, `count` at most; none: the end of the file.
  func read(_ count: Int, at offset: Int) throws(RecordingFailure) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(0, count))
    let length = pread(descriptor, &bytes, bytes.count, off_t(offset))
    guard length >= 0 else { throw .system("read", path) }
    return Array(bytes.prefix(length))
  }
}

/// The lines of a file, in pieces.
struct RecordingReader: Sendable {
  /// The most bytes that are read at a time.
  private static let piece = 16 << 10
  /// The most bytes of a line; what is longer is no line.
  private static let longestLine = 256 << 10

  private let file: RecordingFile
  private var offset = 0
  private let size: Int
  /// The beginning of a line, unless that is too long.
  private var rest: [UInt8] = []
  /// Where the next line begins in the file.
  private(set) var lineStart = 0

  /// - Parameter size: what follows is not read.
  init(_ file: RecordingFile, size: Int) {
    self.file = file
    self.size = size
  }

  /// The lines that are complete; nil: there are no more.
  mutating func next() throws(RecordingFailure) -> [ArraySlice<UInt8>]? {
    let bytes = try file.read(min(Self.piece, size - offset), at: offset)
    guard !bytes.isEmpty else { return nil }
    offset += bytes.count
    guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
      rest = rest.count > Self.longestLine ? [] : rest + bytes
      return []
    }
    let whole = rest + bytes[..<end]
    rest = Array(bytes[(end + 1)...])
    lineStart = offset - rest.count
    return whole.split(separator: UInt8(ascii: "\n"))
  }
}
