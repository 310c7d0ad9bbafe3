import EventLoop
import Log

/// The state database of a gateway, with a section for each part of the program.
///
/// A key of a section is stored as `{section}/{key}`. Used on the event loop, which only waits for the disk when the
/// database is opened and closed.
@LoopActor package final class StateDatabase {
  private static let log = Logger(component: "state")
  private nonisolated static let separator: Character = "/"

  private let store: StateStore
  /// The records by section and key, as read when the database was opened.
  private let records: [String: [String: [UInt8]]]
  /// Why another process has to end before this one can use the database; nil: it need not.
  package let inUse: String?
  /// Why changes are not persisted; nil if they are.
  package private(set) var trouble: String?

  /// Opens the database. Blocks for some milliseconds.
  ///
  /// Does not fail: if the file cannot be written, changes are kept in memory, which is logged and reported by
  /// ``trouble``.
  /// - Parameters:
  ///   - path: nil if there is no folder for it.
  package init(path: String?, pacing: Pacing = Pacing()) {
    guard let path else {
      store = .inMemory()
      records = [:]
      inUse = nil
      trouble = "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path"
      Self.logInMemoryOnly(trouble)
      return
    }
    let opened = StateStore.open(path: path, pacing: pacing)
    store = opened.store
    records = Self.sections(opened.records)
    inUse = if case .inUse(let reason) = opened.opening { reason } else { nil }
    switch opened.opening {
    case .opened:
      Self.log.debug("state database", ["path": path, "records": opened.records.count])
    case .setAside(let aside):
      Self.log.warning(
        "the state database was damaged: it was renamed, and a new one created",
        ["moved_to": aside.path, "reason": aside.reason])
    case .newer(let reason):
      trouble = reason
      Self.log.warning(
        "cannot use the state database: changes will be lost on restart", ["reason": reason])
    case .inUse(let reason): trouble = reason
    case .inMemoryOnly(let reason):
      trouble = reason
      Self.logInMemoryOnly(reason)
    }
    store.setHandler { [weak self] event in
      guard let self else { return }
      loop.onLoop { self.handle(event) }
    }
  }

  private static func logInMemoryOnly(_ reason: String?) {
    log.warning(
      "cannot write the state folder: changes will be lost on restart", ["reason": reason ?? ""])
  }

  /// The section of this name, which must not contain a slash.
  package func section(_ name: String) -> StateSection {
    precondition(!name.contains(Self.separator), "the name of a section contains a slash")
    return StateSection(store, prefix: name + String(Self.separator), records[name] ?? [:])
  }

  /// Writes pending changes, for at most a second; later changes are not persisted.
  package func close() {
    let lost = store.close(within: .seconds(1))
    if lost > 0 {
      Self.log.error("some changes were not written to the state database", ["records": lost])
    }
  }

  /// The records of the database at `path`, by section and key, without changing the file, whether a gateway uses it or
  /// not; empty if there is none. Blocks for at most a few seconds.
  package nonisolated static func sections(path: String) throws(StoreError) -> [String: [String: [UInt8]]] {
    sections(try StateStore.records(path: path))
  }

  /// Whether another process uses the database at `path`: a gateway that runs, or is still stopping.
  package nonisolated static func isInUse(path: String) -> Bool { FileLock.isHeld(path) }

  /// Records by section and key; keys without a section are omitted.
  private nonisolated static func sections(_ records: [String: [UInt8]]) -> [String: [String: [UInt8]]] {
    var sections: [String: [String: [UInt8]]] = [:]
    for (key, value) in records {
      guard let end = key.firstIndex(of: separator) else { continue }
      sections[String(key[..<end]), default: [:]][String(key[key.index(after: end)...])] = value
    }
    return sections
  }

  private func handle(_ event: StoreEvent) {
    switch event {
    case .failing(let reason):
      trouble = reason
      Self.log.error(
        "cannot write the state database: changes are kept in memory, and writing is retried",
        ["reason": reason])
    case .recovered:
      trouble = nil
      Self.log.notice("the state database can be written again")
    }
  }
}

/// The records of one part of the program.
package final class StateSection: Sendable {
  /// The records by key, as read when the database was opened.
  package let records: [String: [UInt8]]
  private let store: StateStore
  private let prefix: String

  fileprivate init(_ store: StateStore, prefix: String, _ records: [String: [UInt8]]) {
    self.store = store
    self.prefix = prefix
    self.records = records
  }

  /// A section that is not persisted.
  package static func inMemory() -> StateSection { StateSection(.inMemory(), prefix: "", [:]) }

  /// Sets the value of `key`, in UTF-8; nil deletes it. Returns at once; the change is written within about a second, an
  /// urgent one with all others within a tenth of it, unless there are many.
  package func put(_ key: String, _ value: [UInt8]?, isUrgent: Bool = false) {
    store.put(prefix + key, value, isUrgent: isUrgent)
  }
}
