import EventLoop

/// A small map of keys to values that survives the process: what must not be forgotten, nor hold up the event loop.
///
/// Changes are collected, the newest for each key, and written by a thread that exists only as long as there is something
/// to write. What is in a file is read once, when it is opened; from then on the owner knows it all, and puts changes.
package final class StateStore: Sendable {
  private struct State: Sendable {
    var backlog = Backlog()
    var handler: @Sendable (StoreEvent) -> Void = { _ in }
  }

  /// Nil when there is memory only.
  private let database: Database?
  private let pacing: Pacing
  private let monitor = Monitor(State())

  private init(_ database: Database?, _ pacing: Pacing) {
    self.database = database
    self.pacing = pacing
  }

  // MARK: Opening

  /// The layout of keys without sections.
  package static let schemaWithoutSections = Schema(version: 0, migrations: [])

  /// Opens the database at `path`, and makes it if there is none, with its folders, for this user alone (0600, 0700). An
  /// older one is migrated.
  ///
  /// Blocks, for at most some seconds. Does not fail: a gateway runs without its memory as well, and is told why.
  /// - Returns: the store, what it holds, and what became of the file.
  package static func open(
    path: String, schema: Schema = schemaWithoutSections
  ) -> (store: StateStore, records: [String: [UInt8]], opening: Opening) {
    open(path: path, schema: schema, pacing: Pacing(), maximumPages: nil)
  }

  static func open(
    path: String, schema: Schema = schemaWithoutSections, pacing: Pacing, maximumPages: Int?
  ) -> (store: StateStore, records: [String: [UInt8]], opening: Opening) {
    do {
      let opened = try StateFile.open(path, schema, maximumPages: maximumPages)
      return (StateStore(opened.database, pacing), opened.records, opened.opening)
    } catch {
      let store = StateStore(nil, pacing)
      if error.cause == .newer { return (store, [:], .newer(reason: error.description)) }
      // A card that has become read-only still tells what was.
      let records = (try? StateFile.records(path, schema)) ?? [:]
      return (store, records, .inMemoryOnly(reason: error.description))
    }
  }

  /// What the database at `path` holds, as records of `schema`: without touching it, while a gateway uses it or not;
  /// nothing if there is none. Blocks, for at most some seconds.
  package static func records(
    path: String, schema: Schema = schemaWithoutSections
  ) throws(StoreError) -> [String: [UInt8]] {
    try StateFile.records(path, schema)
  }

  /// A store without a file: what is put is not kept.
  package static func inMemory() -> StateStore { StateStore(nil, Pacing()) }

  // MARK: Using

  /// Calls `handler`, on the writer's thread, when writing fails and when it works again.
  package func setHandler(_ handler: @escaping @Sendable (StoreEvent) -> Void) {
    monitor.withLock { $0.handler = handler }
  }

  /// Makes `value`, UTF-8, that of `key`; nil deletes it. Returns at once, from any thread; it is on the disk soon (within
  /// about a second, as long as the disk takes it). After ``close(within:)`` it does nothing.
  package func put(_ key: String, _ value: [UInt8]?) {
    guard database != nil else { return }
    let change = value.map(Change.put) ?? .delete
    guard monitor.withLock({ $0.backlog.add(key, change) }) else { return }
    if !startThread({ self.write() }) { monitor.withLock { $0.backlog.unclaim() } }
  }

  /// Writes what waits, and closes the file; waits for that, but no longer than `limit`.
  /// - Returns: the number of keys whose last change is not known to be on the disk.
  @discardableResult
  package func close(within limit: Duration) -> Int {
    guard database != nil else { return 0 }
    if monitor.notify({ $0.backlog.close() }), !startThread({ self.write() }) {
      // No disk keeps to a limit, hence the thread; but rather late than never.
      write()
    }
    monitor.wait(atMost: limit) { $0.backlog.writer == .ended }
    return monitor.withLock { $0.backlog.count }
  }

  // MARK: Writing

  /// The thread's work: a transaction for what has been collected, and again until nothing waits.
  private func write() {
    guard let database else { return }
    var failures = 0
    pause(pacing.gather)
    while true {
      let (changes, isLast) = monitor.withLock { $0.backlog.take() }
      failures = attempt(changes, database, failures)
      if isLast {
        database.close()
        monitor.notify { $0.backlog.ended() }
        return
      }
      pause(pacing.wait(afterFailures: failures))
      if monitor.withLock({ $0.backlog.release() }) { return }
    }
  }

  /// Waits, unless the store is being closed: then everything is done at once.
  private func pause(_ duration: Duration) { monitor.wait(atMost: duration, until: \.backlog.isClosing) }

  /// - Returns: how many transactions in a row have failed now.
  private func attempt(_ changes: [String: Change], _ database: Database, _ failures: Int) -> Int {
    guard !changes.isEmpty else { return failures }
    do throws(StoreError) {
      try database.write(changes)
      monitor.withLock { $0.backlog.written() }
      if failures > 0 { tell(.recovered) }
      return 0
    } catch {
      monitor.withLock { $0.backlog.failed() }
      if failures == 0 { tell(.failing(reason: error.description)) }
      return failures + 1
    }
  }

  private func tell(_ event: StoreEvent) { monitor.withLock { $0.handler }(event) }
}
