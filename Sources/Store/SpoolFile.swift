import EventLoop

/// The messages that wait for the broker, in a file: a SQLite database with a row for each, in the order of their numbers.
///
/// All of it blocks, and is used by one thread at a time.
package final class SpoolFile: @unchecked Sendable {
  // @unchecked: its owner starts the next ``perform(_:)`` when the one before has returned.

  /// What may be in the file; beyond it, the oldest are removed.
  package struct Limits: Sendable, Equatable {
    /// The time since a message was written, in seconds while a gateway runs: the clock of a host without a battery
    /// jumps.
    var age: Int64
    /// The size of topics and payloads.
    var bytes: Int64

    package init(age: Int64, bytes: Int64) {
      self.age = age
      self.bytes = bytes
    }
  }

  /// A message.
  package struct Entry: Sendable, Equatable {
    /// A number from 1 on, greater than all before, given by the file.
    package let number: Int64
    /// The time in milliseconds since 1970.
    package let time: Int64
    package let topic: [UInt8]
    package let payload: [UInt8]

    package init(number: Int64, time: Int64, topic: [UInt8], payload: [UInt8]) {
      self.number = number
      self.time = time
      self.topic = topic
      self.payload = payload
    }

    package var bytes: Int64 { Int64(topic.count + payload.count) }
  }

  /// What is in the file.
  package struct Content: Sendable, Equatable {
    package var messages: Int64 = 0
    /// The size of topics and payloads.
    package var bytes: Int64 = 0
    /// The number of the last message; also if it has been removed since the file was opened.
    package var last: Int64 = 0
    /// ``Entry/time`` of the first message.
    package var oldest: Int64?

    /// Empty.
    package init() {}
  }

  /// What to do in one go.
  package struct Work: Sendable, Equatable {
    /// The broker has acknowledged all messages up to this one.
    package var deliveredThrough: Int64?
    /// Messages to add, in this order.
    package var added: [Entry] = []
    /// Return the messages that follow this number, ``limit`` at most.
    package var readAfter: Int64?
    package static let limit = 500

    package init() {}
  }

  package struct Outcome: Sendable {
    package var content = Content()
    package var isAdded = false
    package var read: [Entry] = []
    /// Messages removed by the ``Limits``, or in a damaged file.
    package var lost: Int64 = 0
    package var setAside: SetAside?
    /// Why a part could not be done; the rest was.
    package var failure: String?

    /// Nothing was done.
    package init() {}
  }

  private static let schema = Schema(
    application: 0x6D62_6773,  // "mbgs"
    version: 1, table: "message",
    columns: """
      (number INTEGER PRIMARY KEY, second INTEGER NOT NULL, time INTEGER NOT NULL, topic BLOB NOT NULL,
      payload BLOB NOT NULL)
      """)

  private let path: String
  private let limits: Limits
  private let clock: @Sendable () -> Moment
  private var database: Database?
  private var outcome = Outcome()
  /// When the file was opened, and the second of its last message at that time.
  private var start: (moment: Moment, second: Int64)

  /// - Parameter clock: for tests.
  package init(
    path: String, _ limits: Limits,
    clock: @escaping @Sendable () -> Moment = { .now }
  ) {
    self.path = path
    self.limits = limits
    self.clock = clock
    start = (clock(), 0)
  }

  package func perform(_ work: Work) -> Outcome {
    let content = outcome.content
    outcome = Outcome()
    outcome.content = content
    guard attempt({ _ in }) != nil else { return outcome }
    // Needs no space on the disk.
    if let number = work.readAfter {
      outcome.read = attempt { db throws(StoreError) in try self.read(after: number, from: db) } ?? []
    }
    // Makes space for what is added.
    if let number = work.deliveredThrough {
      attempt { db throws(StoreError) in try self.remove(through: number, from: db) }
    }
    if !work.added.isEmpty {
      outcome.isAdded = attempt { db throws(StoreError) in try self.add(work.added, to: db) } != nil
    }
    return outcome
  }

  package func close() {
    database?.close()
    database = nil
  }

  /// Runs `body`, with a new file if the present one turns out to be damaged.
  @discardableResult
  private func attempt<Result>(_ body: (Database) throws(StoreError) -> Result) -> Result? {
    do throws(StoreError) {
      do throws(StoreError) {
        return try body(try open())
      } catch  where error.cause == .content && database != nil {
        close()
        setAside(SetAside(path: try DatabaseFile.setAside(path), reason: error.description))
        return try body(try open())
      }
    } catch {
      outcome.failure = error.description
      return nil
    }
  }

  private func setAside(_ setAside: SetAside) {
    outcome.setAside = setAside
    outcome.lost += outcome.content.messages
    let last = outcome.content.last
    outcome.content = Content()
    outcome.content.last = last
  }

  private func open() throws(StoreError) -> Database {
    if let database { return database }
    let opened = try DatabaseFile.open(path, Self.schema) {
      database throws(StoreError) in try Self.content(of: database)
    }
    if let aside = opened.setAside { setAside(aside) }
    let (last, second) = (outcome.content.last, opened.content.second)
    outcome.content = opened.content.content
    outcome.content.last = max(last, outcome.content.last)
    start = (clock(), second)
    database = opened.database
    return opened.database
  }

  private static func content(of database: Database) throws(StoreError) -> (content: Content, second: Int64) {
    guard !database.isEmpty else { return (Content(), 0) }
    let row = try database.prepare(
      """
      SELECT count(*), ifnull(sum(length(topic) + length(payload)), 0), ifnull(max(number), 0),
      ifnull(max(second), 0) FROM message
      """, "read")
    _ = try row.next()
    var content = Content()
    (content.messages, content.bytes, content.last) = (row.integer(0), row.integer(1), row.integer(2))
    let second = row.integer(3)
    defer { database.releaseMemory() }
    return (try withOldest(content, database), second)
  }

  private static func withOldest(
    _ content: Content, _ database: Database
  ) throws(StoreError) -> Content {
    var content = content
    content.oldest = nil
    try database.statement("SELECT time FROM message ORDER BY number LIMIT 1", "read").rows {
      row throws(StoreError) in
      content.oldest = row.integer(0)
      return false
    }
    return content
  }

  private func read(after number: Int64, from database: Database) throws(StoreError) -> [Entry] {
    guard !database.isEmpty else { return [] }
    var entries: [Entry] = []
    try database.statement(
      "SELECT number, time, topic, payload FROM message WHERE number > ? ORDER BY number LIMIT ?", "read"
    ).rows(.integer(number), .integer(Int64(Work.limit))) { row throws(StoreError) in
      entries.append(
        Entry(number: row.integer(0), time: row.integer(1), topic: row.bytes(2), payload: row.bytes(3)))
      return true
    }
    return entries
  }

  private func add(_ entries: [Entry], to database: Database) throws(StoreError) {
    try database.makeTable()
    let second = start.second + start.moment.duration(to: clock()).components.seconds
    var content = outcome.content
    var lost: Int64 = 0
    try database.transaction { () throws(StoreError) in
      let insert = try database.statement(
        "INSERT INTO message (number, second, time, topic, payload) VALUES (?, ?, ?, ?, ?)")
      for entry in entries {
        content.last += 1
        try insert.run(
          .integer(content.last), .integer(second), .integer(entry.time), .blob(entry.topic),
          .blob(entry.payload))
        content.messages += 1
        content.bytes += entry.bytes
      }
      let before = content.messages
      if let last = try self.lastBeyondLimits(content, second, database) {
        content = try Self.remove(through: last, from: database, content)
      }
      lost = before - content.messages
      content = try Self.withOldest(content, database)
    }
    outcome.content = content
    outcome.lost += lost
  }

  /// The last of the messages that are too old, or too many; nil: there are none.
  private func lastBeyondLimits(
    _ content: Content, _ second: Int64, _ database: Database
  ) throws(StoreError) -> Int64? {
    var bytes = content.bytes
    var last: Int64?
    try database.statement(
      "SELECT number, second, length(topic) + length(payload) FROM message ORDER BY number", "read"
    ).rows { row throws(StoreError) in
      guard bytes > limits.bytes || second - row.integer(1) > limits.age else { return false }
      last = row.integer(0)
      bytes -= row.integer(2)
      return true
    }
    return last
  }

  private func remove(through number: Int64, from database: Database) throws(StoreError) {
    guard !database.isEmpty else { return }
    var content = outcome.content
    try database.transaction { () throws(StoreError) in
      content = try Self.remove(through: number, from: database, content)
      content = try Self.withOldest(content, database)
    }
    outcome.content = content
    // A long outage leaves a large file. If VACUUM fails, the pages are used again.
    if content.messages == 0, try database.number("PRAGMA page_count") > 256 {
      try? database.execute("VACUUM", "write to")
    }
  }

  /// Must be called in a transaction.
  private static func remove(
    through number: Int64, from database: Database, _ content: Content
  ) throws(StoreError) -> Content {
    var content = content
    try database.statement(
      "SELECT count(*), ifnull(sum(length(topic) + length(payload)), 0) FROM message WHERE number <= ?",
      "read"
    ).rows(.integer(number)) { row throws(StoreError) in
      content.messages -= row.integer(0)
      content.bytes -= row.integer(1)
      return false
    }
    try database.statement("DELETE FROM message WHERE number <= ?").run(.integer(number))
    return content
  }
}
