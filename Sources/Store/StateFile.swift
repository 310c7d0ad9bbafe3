import Glibc

/// The file of a state database and its surroundings: folders, rights, and what is done with one that is no good.
enum StateFile {
  /// A database that was opened for writing.
  struct Opened {
    /// Nil where it cannot be written: then there is memory only.
    let database: Database?
    let records: [String: [UInt8]]
    let opening: Opening
  }

  /// Opens the database at `path` for writing, and reads all of it; makes what is missing, and migrates what is older.
  static func open(_ path: String, _ schema: Schema, maximumPages: Int? = nil) throws(StoreError) -> Opened {
    guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
      throw StoreError(.circumstances, "\(path.debugDescription) is not the absolute path of a file")
    }
    try makeFolders(of: path)
    // Before the lock, which would leave a file behind beside something that is none.
    _ = try exists(path)
    let lock = try FileLock(path)
    do throws(StoreError) {
      return try read(path, schema, lock, maximumPages)
    } catch {
      guard error.cause == .content else { throw error }
      let aside = try setAside(path)
      let new = try read(path, schema, lock, maximumPages)
      return Opened(
        database: new.database, records: new.records,
        opening: .setAside(path: aside, reason: error.description))
    }
  }

  private static func read(
    _ path: String, _ schema: Schema, _ lock: FileLock, _ maximumPages: Int?
  ) throws(StoreError) -> Opened {
    // By us, not by SQLite, which would make it readable for everybody; its journal takes the rights from it.
    if try !exists(path) { try make(path) }
    let database = try Database(path, .readWrite(lock, maximumPages: maximumPages), schema)
    guard let version = database.version else {
      // A full disk does not prevent the start: the first write tries it again.
      try? database.makeTable()
      return Opened(database: database, records: [:], opening: .opened)
    }
    let records = try database.records()
    guard version < schema.version else {
      return Opened(database: database, records: records, opening: .opened)
    }
    let migrated = schema.migrated(records, from: version)
    let copy = "\(path).schema-\(version)"
    do throws(StoreError) {
      try database.replaceAll(records, by: migrated) { () throws(StoreError) in
        try keepCopy(of: database, at: copy)
      }
    } catch {
      // The old file is whole, and migrated at the next start.
      return Opened(
        database: nil, records: migrated, opening: .inMemoryOnly(reason: error.description))
    }
    return Opened(database: database, records: migrated, opening: .migrated(from: version, copy: copy))
  }

  /// What the database at `path` holds, as records of `schema`, while a gateway uses it or not; nothing if there is none.
  static func records(_ path: String, _ schema: Schema) throws(StoreError) -> [String: [UInt8]] {
    guard try exists(path) else { return [:] }
    let database = try Database(path, .readOnly, schema)
    guard let version = database.version else { return [:] }
    return schema.migrated(try database.records(), from: version)
  }

  /// Copies what the file of `database` holds to `copy`, in place of what is there; it is on the disk when it returns.
  private static func keepCopy(of database: Database, at copy: String) throws(StoreError) {
    // What is at `copy` may be the only one that is whole: it is replaced at once, by the new one as a whole.
    let unfinished = copy + ".new"
    guard unlink(unfinished) == 0 || errno == ENOENT else { throw .system("replace", unfinished) }
    do throws(StoreError) {
      try make(unfinished)
      try database.copy(to: unfinished)
      guard rename(unfinished, copy) == 0 else { throw .system("make", copy) }
    } catch {
      unlink(unfinished)
      throw error
    }
    try synchronizeFolder(of: copy)
  }

  /// Puts the names in the folder of `path` on the disk.
  private static func synchronizeFolder(of path: String) throws(StoreError) {
    guard let end = path.lastIndex(of: "/") else { return }
    let descriptor = Glibc.open(String(path[...end]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open the folder of", path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .system("write the folder of", path) }
  }

  /// Makes an empty file, for this user alone.
  private static func make(_ path: String) throws(StoreError) {
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system("make", path) }
    close(descriptor)
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
