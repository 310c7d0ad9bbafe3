import EventLoop

/// A persistent map of keys to values, written without blocking the event loop.
///
/// Changes are collected, the newest for each key, and written by a thread that only exists while there are changes.
/// The records are read once, when the file is opened.
package final class StateStore: Sendable {
  private struct State: Sendable {
    var backlog = Backlog()
    var handler: @Sendable (StoreEvent) -> Void = { _ in }
  }

  /// The database; nil if nothing is persisted.
  private let database: Database?
  private let pacing: Pacing
  private let monitor = Monitor(State())

  private init(_ database: Database?, _ pacing: Pacing) {
    self.database = database
    self.pacing = pacing
  }

  // MARK: Opening

  /// Opens the database at `path`; creates it with its folders if there is none, accessible to this user only (0600,
  /// 0700). Blocks for at most a few seconds.
  ///
  /// Does not fail: a gateway also runs without its state, and gets the reason.
  /// - Returns: the store, its records, and the result of opening the file.
  package static func open(
    path: String, pacing: Pacing = Pacing()
  ) -> (store: StateStore, records: [String: [UInt8]], opening: Opening) {
    do {
      let opened = try DatabaseFile.open(path, .records) {
        database throws(StoreError) in try database.records()
      }
      return (
        StateStore(opened.database, pacing), opened.content,
        opened.setAside.map(Opening.setAside) ?? .opened
      )
    } catch {
      let store = StateStore(nil, pacing)
      if error.cause == .newer { return (store, [:], .newer(reason: error.description)) }
      if error.cause == .inUse { return (store, [:], .inUse(reason: error.description)) }
      // The file may still be readable, as on a card that has become read-only.
      let records = (try? self.records(path: path)) ?? [:]
      return (store, records, .inMemoryOnly(reason: error.description))
    }
  }

  /// The records of the database at `path`, without changing the file, whether a gateway uses it or not; empty if there
  /// is none. Blocks for at most a few seconds.
  package static func records(path: String) throws(StoreError) -> [String: [UInt8]] {
    try DatabaseFile.exists(path) ? Database(path, .records, .readOnly).records() : [:]
  }

  /// A store without a file.
  package static func inMemory() -> StateStore { StateStore(nil, Pacing()) }

  // MARK: Changes

  /// Sets the handler of events, called on the writer's thread.
  package func setHandler(_ handler: @escaping @Sendable (StoreEvent) -> Void) {
    monitor.withLock { $0.handler = handler }
  }

  /// Sets the value of `key`, in UTF-8; nil deletes it. Returns at once, on any thread; the change is written within
  /// about a second, an urgent one with all others within a tenth of it, unless there are many. Has no effect after ``close(within:)``.
  package func put(_ key: String, _ value: [UInt8]?, isUrgent: Bool = false) {
    guard database != nil else { return }
    let change = value.map(Change.put) ?? .delete
    guard monitor.notify({ $0.backlog.add(key, change, isUrgent: isUrgent) }) else { return }
    if !startThread({ self.write() }) { monitor.withLock { $0.backlog.writerNotStarted() } }
  }

  /// Writes pending changes and closes the file; waits for at most `limit`.
  /// - Returns: the number of keys whose last change is not known to be written.
  @discardableResult
  package func close(within limit: Duration) -> Int {
    guard database != nil else { return 0 }
    if monitor.notify({ $0.backlog.close() }), !startThread({ self.write() }) {
      // The limit cannot be kept without a thread; still better than not to write.
      write()
    }
    monitor.wait(atMost: limit) { $0.backlog.writer == .ended }
    return monitor.withLock { $0.backlog.count }
  }

  // MARK: Writing

  /// Runs on the writer's thread: writes the collected changes in a transaction, and repeats until there are none.
  private func write() {
    guard let database else { return }
    var backOff = pacing.retry
    var isFailing = false
    var early = pacing.early
    while true {
      pause(pacing.gather)
      let (changes, isLast) = monitor.withLock { $0.backlog.take() }
      var delay = pacing.apart
      do throws(StoreError) {
        if !changes.isEmpty { try database.write(changes) }
        monitor.withLock { $0.backlog.written() }
        if isFailing { report(.recovered) }
        isFailing = false
        backOff.reset()
      } catch {
        monitor.withLock { $0.backlog.failed() }
        if !isFailing { report(.failing(reason: error.description)) }
        isFailing = true
        delay = backOff.next()
      }
      if isLast {
        database.close()
        monitor.notify { $0.backlog.ended() }
        return
      }
      let isEarly = pause(delay, unlessUrgent: !isFailing && early > 0)
      early = isEarly ? early - 1 : min(early + 1, pacing.early)
      if monitor.withLock({ $0.backlog.release() }) { return }
    }
  }

  /// Waits, unless the store is being closed.
  /// - Returns: whether an urgent change ended the wait.
  @discardableResult
  private func pause(_ duration: Duration, unlessUrgent: Bool = false) -> Bool {
    monitor.wait(atMost: duration) { $0.backlog.isClosing || unlessUrgent && $0.backlog.isUrgent }
    return unlessUrgent && monitor.withLock { $0.backlog.isUrgent }
  }

  private func report(_ event: StoreEvent) { monitor.withLock { $0.handler }(event) }
}
