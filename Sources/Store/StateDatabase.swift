import EventLoop
import Log

/// The state database of a gateway: what its parts keep over restarts, with a section for each part.
///
/// A key of a section is stored as `{section}/{key}`. Used on the event loop, which never waits for the disk, except
/// when the database is opened and closed.
package final class StateDatabase: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private static let log = Logger(component: "state")
  private static let separator: Character = "/"

  private let store: StateStore
  /// As opened, by section and key.
  private let records: [String: [String: [UInt8]]]
  /// Why changes are not kept; nil while they are.
  package private(set) var trouble: String?

  /// Opens the database, and migrates it to `schema`. Blocks until it is read, some milliseconds.
  ///
  /// Does not fail: what cannot be kept is in memory only, which is logged and told by ``trouble``.
  /// - Parameters:
  ///   - path: nil where there is no folder for one.
  ///   - loop: where ``trouble`` is kept up to date.
  package convenience init(path: String?, schema: Schema, loop: EventLoop) {
    self.init(path: path, schema: schema, loop: loop, pacing: Pacing(), maximumPages: nil)
  }

  init(path: String?, schema: Schema, loop: EventLoop, pacing: Pacing, maximumPages: Int?) {
    guard let path else {
      store = .inMemory()
      records = [:]
      trouble = "there is no state folder: set STATE_DIRECTORY, XDG_STATE_HOME or HOME"
      Self.logInMemoryOnly(trouble)
      return
    }
    let opened = StateStore.open(path: path, schema: schema, pacing: pacing, maximumPages: maximumPages)
    store = opened.store
    records = Self.sections(opened.records)
    switch opened.opening {
    case .opened:
      Self.log.debug("state database", ["path": path, "records": opened.records.count])
    case .migrated(let version, let copy):
      Self.log.notice(
        "the state database was migrated to a newer schema",
        ["from": version, "to": schema.version, "copy_of_old": copy])
    case .setAside(let aside, let reason):
      Self.log.warning(
        "the state database was damaged: moved it aside and began a new one",
        ["moved_to": aside, "reason": reason])
    case .newer(let reason):
      trouble = reason
      Self.log.warning(
        "cannot use the state database: changes will be lost on restart", ["reason": reason])
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

  /// The section of this name, which has no slash.
  package func section(_ name: String) -> StateSection {
    precondition(!name.contains(Self.separator), "a slash ends the name of a section")
    return StateSection(store, prefix: name + String(Self.separator), records[name] ?? [:])
  }

  /// Writes what is not written yet, for at most a second; what is put afterwards is not kept.
  package func close() {
    let lost = store.close(within: .seconds(1))
    if lost > 0 {
      Self.log.error("some changes were not written to the state database", ["records": lost])
    }
  }

  /// What the database at `path` holds, by section and key, as records of `schema`: without touching it, while a gateway
  /// uses it or not; nothing if there is none. Blocks, for at most some seconds.
  package static func sections(
    path: String, schema: Schema
  ) throws(StoreError) -> [String: [String: [UInt8]]] {
    sections(try StateStore.records(path: path, schema: schema))
  }

  /// Records by section and key; those of a key without a section are left out.
  private static func sections(_ records: [String: [UInt8]]) -> [String: [String: [UInt8]]] {
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
        "cannot write the state database: changes are kept in memory, and writing is tried again",
        ["reason": reason])
    case .recovered:
      trouble = nil
      Self.log.notice("the state database is written again")
    }
  }
}

/// What one part keeps in the state database.
package final class StateSection: Sendable {
  /// As the database was opened, by key.
  package let records: [String: [UInt8]]
  private let store: StateStore
  private let prefix: String

  fileprivate init(_ store: StateStore, prefix: String, _ records: [String: [UInt8]]) {
    self.store = store
    self.prefix = prefix
    self.records = records
  }

  /// Makes `value`, UTF-8, that of `key`; nil deletes it. Returns at once; it is on the disk within about a second, as long
  /// as the disk takes it.
  package func put(_ key: String, _ value: [UInt8]?) { store.put(prefix + key, value) }
}
