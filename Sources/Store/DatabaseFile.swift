import EventLoop
import Glibc
import Log

/// The file of a database: creation, permissions, and the handling of unusable files.
enum DatabaseFile {
  /// A database that was opened for writing.
  struct Opened<Content> {
    let database: Database
    let content: Content
    /// The file was damaged, or another program's: what became of it.
    var setAside: SetAside?
  }

  /// Opens the database at `path` for writing; creates what is missing.
  /// - Parameters:
  ///   - mayReplace: whether one that is damaged is set aside, and a new one made.
  ///   - read: what is read of it at once.
  static func open<Content>(
    _ path: String, _ schema: Schema, mayReplace: Bool = true,
    read: (Database) throws(StoreError) -> Content
  ) throws(StoreError) -> Opened<Content> {
    guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
      throw StoreError(.circumstances, "\(path.debugDescription) is not the absolute path of a file")
    }
    let parent = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    if !parent.isEmpty, let folder = Folder.make(parent) { throw .system("make the folder", folder) }
    // Checked before locking, which would create a lock file beside something that is not a database.
    _ = try exists(path)
    let lock = try FileLock(path)
    func open() throws(StoreError) -> Opened<Content> {
      // Created here, as SQLite would make it readable for all users; its journal gets the same permissions.
      if try !exists(path) { try make(path) }
      let database = try Database(path, schema, lock)
      // A full disk does not prevent the start: the first write tries again.
      try? database.makeTable()
      return Opened(database: database, content: try read(database))
    }
    do throws(StoreError) {
      return try open()
    } catch {
      guard error.cause == .content, mayReplace else { throw error }
    }
    // SQLite also calls it damage if the system could not read the file: it may be able to now, or still not.
    try readThrough(path)
    do throws(StoreError) {
      return try open()
    } catch {
      guard error.cause == .content else { throw error }
      let setAside = SetAside(path: try setAside(path), reason: error.description)
      var new = try open()
      new.setAside = setAside
      return new
    }
  }

  /// Creates an empty file, accessible to this user only.
  private static func make(_ path: String) throws(StoreError) {
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system("make", path) }
    close(descriptor)
  }

  /// Reads the whole file.
  /// - Throws: the system cannot read it.
  static func readThrough(_ path: String) throws(StoreError) {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open", path) }
    defer { close(descriptor) }
    var (buffer, count) = ([UInt8](repeating: 0, count: 65536), 0)
    repeat { count = read(descriptor, &buffer, buffer.count) } while count > 0
    guard count == 0 else { throw .system("read", path) }
  }

  /// Whether there is a regular file, or may be one where the system cannot look.
  static func mayExist(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0
      ? status.st_mode & S_IFMT == S_IFREG : ![ENOENT, ENOTDIR].contains(errno)
  }

  /// Whether there is a regular file: opening anything else could block.
  static func exists(_ path: String) throws(StoreError) -> Bool {
    var status = stat()
    if stat(path, &status) != 0 {
      guard errno == ENOENT else { throw .system("look at", path) }
      return false
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw StoreError(.circumstances, "cannot open \(path): it is not a regular file: move it away")
    }
    return true
  }

  /// Renames the database and its journal; returns the database's new path.
  static func setAside(_ path: String) throws(StoreError) -> String {
    let name = "\(path).corrupt-\(Timestamp.now.compact)"
    var aside = name
    var number = 1
    while access(aside, F_OK) == 0 {
      number += 1
      aside = "\(name)-\(number)"
    }
    guard rename(path, aside) == 0 else { throw .system("set aside", path) }
    // The names that SQLite expects; the last two exist if another program has enabled a write-ahead log.
    for suffix in ["-journal", "-wal", "-shm"] {
      // SQLite would apply a journal left behind to the new database.
      guard rename(path + suffix, aside + suffix) == 0 || errno == ENOENT else {
        throw .system("set aside", path + suffix)
      }
    }
    return aside
  }
}
