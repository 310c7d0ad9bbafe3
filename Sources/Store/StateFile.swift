import Glibc

/// The file of a state database and its surroundings: folders, rights, and what is done with one that is no good.
enum StateFile {
  /// Opens the database at `path` for writing, and reads all of it; makes what is missing.
  static func open(
    _ path: String, maximumPages: Int? = nil
  ) throws(StoreError) -> (database: Database, records: [String: [UInt8]], opening: Opening) {
    guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
      throw StoreError(.circumstances, "\(path.debugDescription) is not the absolute path of a file")
    }
    try makeFolders(of: path)
    // Before the lock, which would leave a file behind beside something that is none.
    _ = try exists(path)
    let lock = try FileLock(path)
    do throws(StoreError) {
      let (database, records) = try read(path, lock, maximumPages)
      return (database, records, .opened)
    } catch {
      guard error.cause == .content else { throw error }
      let aside = try setAside(path)
      let (database, records) = try read(path, lock, maximumPages)
      return (database, records, .setAside(path: aside, reason: error.description))
    }
  }

  private static func read(
    _ path: String, _ lock: FileLock, _ maximumPages: Int?
  ) throws(StoreError) -> (Database, [String: [UInt8]]) {
    // By us, not by SQLite, which would make it readable for everybody; its journal takes the rights from it.
    if try !exists(path) {
      let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw .system("make", path) }
      close(descriptor)
    }
    let database = try Database(path, .readWrite(lock, maximumPages: maximumPages))
    return (database, try database.records())
  }

  /// What the database at `path` holds, while a gateway uses it or not; nothing if there is none.
  static func records(_ path: String) throws(StoreError) -> [String: [UInt8]] {
    guard try exists(path) else { return [:] }
    return try Database(path, .readOnly).records()
  }

  /// Whether there is a regular file: opening anything else could block, or worse.
  private static func exists(_ path: String) throws(StoreError) -> Bool {
    var status = stat()
    if stat(path, &status) != 0 {
      guard errno == ENOENT else { throw .system("look at", path) }
      return false
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw StoreError(.circumstances, "cannot open \(path): it is not a regular file")
    }
    return true
  }

  private static func makeFolders(of path: String) throws(StoreError) {
    for end in path.indices.dropFirst() where path[end] == "/" {
      let folder = String(path[..<end])
      // 0700, as the XDG Base Directory Specification has it.
      guard mkdir(folder, 0o700) != 0 else { continue }
      // What is there need not be ours to make: a read-only system says so before it says that it is there.
      let reason = errno
      guard access(folder, F_OK) != 0 else { continue }
      errno = reason
      throw .system("make the folder", folder)
    }
  }

  /// Renames the database and the journal that belongs to it; returns the database's new path.
  private static func setAside(_ path: String) throws(StoreError) -> String {
    let wanted = "\(path).corrupt-\(stamp(time(nil)))"
    var aside = wanted
    var number = 1
    while access(aside, F_OK) == 0 {
      number += 1
      aside = "\(wanted)-\(number)"
    }
    guard rename(path, aside) == 0 else { throw .system("set aside", path) }
    // By these names SQLite finds them again; the last two are of one that somebody has given a write-ahead log.
    for suffix in ["-journal", "-wal", "-shm"] {
      // A journal that stays would be taken for the new database's, and played back into it.
      guard rename(path + suffix, aside + suffix) == 0 || errno == ENOENT else {
        throw .system("set aside", path + suffix)
      }
    }
    return aside
  }

  /// A point of time for names of files, in UTC: 20260102T030405Z.
  static func stamp(_ time: time_t) -> String {
    var time = time
    var parts = tm()
    gmtime_r(&time, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let date = "\(1900 + parts.tm_year)\(two(parts.tm_mon + 1))\(two(parts.tm_mday))"
    return "\(date)T\(two(parts.tm_hour))\(two(parts.tm_min))\(two(parts.tm_sec))Z"
  }
}
