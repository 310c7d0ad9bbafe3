import EventLoop
import Log

/// The state database of a gateway: a persistent map of keys to values, with a section for each part of the program.
///
/// A key of a section is stored as `{section}/{key}`. The records are read once, when the file is opened; changes are
/// gathered, and written without blocking the event loop.
@LoopActor package final class StateDatabase {
  private static let log = Logger(component: "state")
  private nonisolated static let separator: Character = "/"

  /// The file; nil: nothing is persisted.
  private var path: String?
  /// Nil until the file can be written.
  private var database: Database?
  /// The hash of the records as read when the file was opened.
  private let read: Int
  /// The records as read when the file was opened, without those of the sections that were taken.
  package private(set) var records: [String: [UInt8]]
  package let opening: Opening
  /// Why changes are not persisted; nil if they are.
  package private(set) var trouble: String?
  private var backlog: Backlog<@LoopActor () -> [UInt8]?>
  private var timer = DeadlineTimer()
  private var writing: Task<Void, Never>?

  // MARK: Opening

  /// Opens the database at `path`; creates it with its folders if there is none, accessible to this user only (0600, 0700).
  ///
  /// Does not fail: see ``opening``. While the file cannot be written, changes are kept in memory, which is logged and reported
  /// by ``trouble``.
  /// - Parameter path: nil if there is no folder for it.
  package static func open(path: String?) async -> StateDatabase {
    StateDatabase(path: path, await EventLoop.blocking { Self.open(path) }, Pacing())
  }

  /// ``open(path:)`` for tests: blocks for some milliseconds, at most a few seconds.
  package convenience init(path: String?) { self.init(path: path, pacing: Pacing()) }

  convenience init(path: String?, pacing: Pacing) { self.init(path: path, Self.open(path), pacing) }

  private init(path: String?, _ opened: (Database?, [String: [UInt8]], Opening), _ pacing: Pacing) {
    backlog = Backlog(pacing, at: .now)
    (database, records, opening) = opened
    read = records.hashValue
    self.path = path
    switch opening {
    case .opened:
      Self.log.debug("state database", ["path": path ?? "", "records": records.count])
    case .setAside(let aside):
      Self.log.warning(
        "the state database was damaged: it was renamed, and a new one created",
        ["moved_to": aside.path, "reason": aside.reason])
    case .newer(let reason):
      (self.path, trouble) = (nil, reason)
      Self.log.warning(
        "cannot use the state database: changes will be lost on restart", ["reason": reason])
    case .inUse(let reason), .unreadable(let reason): (self.path, trouble) = (nil, reason)
    case .inMemoryOnly(let reason):
      trouble = reason
      Self.log.warning(
        "cannot write the state folder: changes will be lost on restart", ["reason": reason])
    }
  }

  private nonisolated static func open(_ path: String?) -> (Database?, [String: [UInt8]], Opening) {
    guard let path else {
      let reason = "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path"
      return (nil, [:], .inMemoryOnly(reason: reason))
    }
    do throws(StoreError) {
      let opened = try DatabaseFile.open(path, .records) {
        database throws(StoreError) in try database.records()
      }
      return (opened.database, opened.content, opened.setAside.map(Opening.setAside) ?? .opened)
    } catch {
      switch error.cause {
      case .newer: return (nil, [:], .newer(reason: error.description))
      case .inUse: return (nil, [:], .inUse(reason: error.description))
      case .content, .circumstances:
        // The file may still be readable, as on a card that has become read-only.
        guard DatabaseFile.mayExist(path) else { return (nil, [:], .inMemoryOnly(reason: error.description)) }
        do throws(StoreError) {
          return (nil, try records(path: path), .inMemoryOnly(reason: error.description))
        } catch {
          // One that is damaged, and cannot be renamed, will not become readable.
          let reason = error.description
          return (
            nil, [:],
            error.cause == .circumstances ? .unreadable(reason: reason) : .inMemoryOnly(reason: reason)
          )
        }
      }
    }
  }

  /// Opens the file that could not be written at the start, if it has what was read of it then.
  private nonisolated static func reopen(_ path: String, _ read: Int) throws(StoreError) -> Database {
    let opened = try DatabaseFile.open(path, .records, mayReplace: false) {
      database throws(StoreError) in try database.records()
    }
    guard opened.content.hashValue == read else {
      throw StoreError(
        .circumstances,
        "\(path) was changed since the gateway has started: restart it, so that the file is read")
    }
    return opened.database
  }

  // MARK: Records

  /// The section of this name, which must not contain a slash.
  package func section(_ name: String) -> StateSection {
    precondition(!name.contains(Self.separator), "the name of a section contains a slash")
    return StateSection(database: self, prefix: name + String(Self.separator))
  }

  /// Removes the records whose keys begin with `prefix`, and returns them by the rest of their keys.
  fileprivate func take(_ prefix: String) -> [String: [UInt8]] {
    var taken: [String: [UInt8]] = [:]
    for (key, value) in records where key.utf8.starts(with: prefix.utf8) {
      taken[String(Substring(key.utf8.dropFirst(prefix.utf8.count)))] = value
    }
    records = records.filter { !$0.key.utf8.starts(with: prefix.utf8) }
    return taken
  }

  /// The records of the database at `path`, without changing the file, whether a gateway uses it or not; empty if there
  /// is none. Blocks for at most a few seconds.
  package nonisolated static func records(path: String) throws(StoreError) -> [String: [UInt8]] {
    try DatabaseFile.exists(path) ? Database(path, .records).records() : [:]
  }

  /// ``records(path:)`` by section and key; keys without a section are omitted.
  package nonisolated static func sections(path: String) throws(StoreError) -> [String: [String: [UInt8]]] {
    var sections: [String: [String: [UInt8]]] = [:]
    for (key, value) in try records(path: path) {
      guard let end = key.firstIndex(of: separator) else { continue }
      sections[String(key[..<end]), default: [:]][String(key[key.index(after: end)...])] = value
    }
    return sections
  }

  /// Whether another process uses the database at `path`: a gateway that runs, or is still stopping.
  package nonisolated static func isInUse(path: String) -> Bool { FileLock.isHeld(path) }

  // MARK: Writing

  /// Sets the value of `key`, in UTF-8; nil deletes it. The change is written within about a second, an urgent one with
  /// all others within a tenth of it, unless there are many. Has no effect after ``close(within:)``.
  /// - Parameters:
  ///   - patience: how long the change may wait for others.
  ///   - value: asked for when it is written.
  package func put(
    _ key: String, isUrgent: Bool = false, patience: Duration = .zero,
    _ value: @escaping @LoopActor () -> [UInt8]?
  ) {
    guard path != nil else { return }
    backlog.add(key, value, isUrgent: isUrgent, patience: patience, at: .now)
    setTimer()
  }

  package func put(_ key: String, _ value: [UInt8]?) { put(key) { value } }

  /// Writes pending changes and closes the file; waits for at most `limit`.
  /// - Returns: the number of keys whose last change is not known to be written.
  @discardableResult
  package func close(within limit: Duration = .seconds(1)) async -> Int {
    if path != nil, !backlog.isClosed {
      backlog.close()
      setTimer()
      _ = await loop.result(within: limit) { [self] in
        await writing?.value
        write()
        await writing?.value
        if let database { await EventLoop.blocking { database.close() } }
      }
    }
    let lost = backlog.count
    if lost > 0 {
      Self.log.error("some changes were not written to the state database", ["records": lost])
    }
    return lost
  }

  /// When what waits is written; nil: nothing waits, or a transaction is running.
  var deadline: Moment? { backlog.deadline }

  /// The timer keeps this object until the changes are written.
  private func setTimer() { timer.set(deadline) { self.write() } }

  private func write() {
    let changes = backlog.take(at: .now).mapValues { value in value().map(Change.put) ?? .delete }
    guard let path, !changes.isEmpty else { return }
    let limit = loop.timer(after: backlog.pacing.patience) { self.report("the disk does not answer") }
    writing = loop.task { [self] in
      let (opened, read) = (database, read)
      let result = await EventLoop.blocking {
        Result { () throws(StoreError) in
          let database = if let opened { opened } else { try Self.reopen(path, read) }
          try database.write(changes)
          return database
        }
      }
      limit.cancel()
      switch result {
      case .success(let written):
        database = written
        backlog.written(at: .now)
        if trouble != nil { Self.log.notice("the state database can be written again") }
        trouble = nil
      case .failure(let error):
        backlog.failed(at: .now)
        report(error.description)
      }
      setTimer()
    }
  }

  private func report(_ reason: String) {
    if trouble == nil {
      Self.log.error(
        "cannot write the state database: changes are kept in memory, and writing is retried",
        ["reason": reason])
    }
    trouble = reason
  }
}

/// The records of one part of the program.
package struct StateSection: Sendable {
  fileprivate let database: StateDatabase?
  fileprivate let prefix: String
  fileprivate var records: [String: [UInt8]] = [:]

  /// A section that is not persisted, with these records at first.
  package static func inMemory(_ records: [String: [UInt8]] = [:]) -> StateSection {
    StateSection(database: nil, prefix: "", records: records)
  }

  /// The records by key, as read when the database was opened. They are handed out once: the part of the program keeps what
  /// it needs of them.
  @LoopActor package func takeRecords() -> [String: [UInt8]] { database?.take(prefix) ?? records }

  /// Sets the value of `key`, as ``StateDatabase/put(_:isUrgent:patience:_:)`` does.
  @LoopActor package func put(
    _ key: String, isUrgent: Bool, patience: Duration, _ value: @escaping @LoopActor () -> [UInt8]?
  ) {
    database?.put(prefix + key, isUrgent: isUrgent, patience: patience, value)
  }

  @LoopActor package func put(_ key: String, _ value: [UInt8]?) { database?.put(prefix + key, value) }
}
