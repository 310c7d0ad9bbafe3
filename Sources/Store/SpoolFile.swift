import EventLoop
import Glibc

/// The messages that wait for the broker, in a file: a SQLite database with a row for each, in the order of their numbers.
///
/// All of it blocks, and is used by one thread at a time.
package final class SpoolFile: @unchecked Sendable {
  // @unchecked: its owner starts the next ``perform(_:)`` when the one before has returned.

  /// A message.
  package struct Entry: Sendable, Equatable {
    /// A number from 1 on, greater than all before, given by the file.
    package var number: Int64
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
    package var last: Int64
    /// ``Entry/time`` of the first message.
    package var oldest: Int64?

    /// Empty.
    package init(last: Int64 = 0) { self.last = last }
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
    package var content: Content
    package var isAdded = false
    package var read: [Entry] = []
    /// Messages that were too old, too many, or in a damaged file, without those that had been read: they are sent from memory.
    package var lost: Int64 = 0
    package var setAside: SetAside?
    /// Why a part could not be done; the rest was.
    package var failure: String?

    /// Nothing was done.
    package init(content: Content = Content()) { self.content = content }
  }

  private static let schema = Schema(
    application: 0x6D62_6773,  // "mbgs"
    version: 1, table: "message",
    columns: """
      (number INTEGER PRIMARY KEY, second INTEGER NOT NULL, time INTEGER NOT NULL, topic BLOB NOT NULL,
      payload BLOB NOT NULL)
      """, isWrittenOften: true)

  private let path: String
  private let (maxAge, maxBytes): (Int64, Int64)
  private let clock: @Sendable () -> Moment
  private var database: Database?
  private var outcome = Outcome()
  /// All messages up to this number were read.
  private var readThrough: Int64 = 0
  /// When the file was opened, and the second of its last message at that time.
  private var start: (moment: Moment, second: Int64)

  /// - Parameters:
  ///   - maxAge: for how long messages are kept, in seconds while a gateway runs: the clock of a host without a battery
  ///     jumps.
  ///   - maxBytes: the size of topics and payloads that is kept. Of older and more messages, the oldest are removed.
  ///   - clock: for tests.
  package init(
    path: String, maxAge: Int64, maxBytes: Int64, clock: @escaping @Sendable () -> Moment = { .now }
  ) {
    self.path = path
    (self.maxAge, self.maxBytes) = (maxAge, maxBytes)
    self.clock = clock
    start = (clock(), 0)
  }

  package func perform(_ work: Work) -> Outcome {
    outcome = Outcome(content: outcome.content)
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
    outcome.content.oldest = nil
    // One that was removed is made again when there is something to add.
    if outcome.content.messages > 0 {
      attempt { db throws(StoreError) in try self.readOldest(from: db) }
    }
    return outcome
  }

  package func close() {
    database?.close()
    database = nil
  }

  /// Runs `body`, again if the file turns out to be damaged, as opening it tells whether that is so; then with a new file.
  @discardableResult
  private func attempt<Result>(_ body: (Database) throws(StoreError) -> Result) -> Result? {
    do throws(StoreError) {
      for isLast in [false, true] {
        do throws(StoreError) {
          return try body(try open())
        } catch  where error.cause == .content && database != nil {
          close()
          if isLast { setAside(SetAside(path: try DatabaseFile.setAside(path), reason: error.description)) }
        }
      }
      return try body(try open())
    } catch {
      outcome.failure = error.description
      return nil
    }
  }

  private func setAside(_ setAside: SetAside) {
    outcome.setAside = setAside
    outcome.lost += unread(outcome.content)
    outcome.content = Content(last: outcome.content.last)
  }

  /// How many messages were not read; their numbers are consecutive.
  private func unread(_ content: Content) -> Int64 {
    max(0, min(content.messages, content.last - readThrough))
  }

  private func open() throws(StoreError) -> Database {
    // To a file that somebody has deleted the log would still be written.
    if let database, access(path, F_OK) == 0 { return database }
    close()
    let opened = try DatabaseFile.open(path, Self.schema) {
      database throws(StoreError) in try Self.content(of: database)
    }
    if let aside = opened.setAside { setAside(aside) }
    let (content, second) = opened.content
    outcome.content = Content(last: max(outcome.content.last, content.last))
    (outcome.content.messages, outcome.content.bytes) = (content.messages, content.bytes)
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
    // Whoever may write the file can write any number.
    func possible(_ number: Int64) -> Int64 { max(0, min(number, .max / 4)) }
    var content = Content(last: possible(row.integer(2)))
    (content.messages, content.bytes) = (row.integer(0), possible(row.integer(1)))
    defer { database.releaseMemory() }
    return (content, possible(row.integer(3)))
  }

  private func readOldest(from database: Database) throws(StoreError) {
    try database.statement("SELECT time FROM message ORDER BY number LIMIT 1", "read").run {
      row throws(StoreError) in
      outcome.content.oldest = row.integer(0)
      return false
    }
  }

  private func read(after number: Int64, from database: Database) throws(StoreError) -> [Entry] {
    guard !database.isEmpty else { return [] }
    var entries: [Entry] = []
    try database.statement(
      "SELECT number, time, topic, payload FROM message WHERE number > ? ORDER BY number LIMIT ?", "read"
    ).run(.integer(number), .integer(Int64(Work.limit))) { row throws(StoreError) in
      entries.append(
        Entry(number: row.integer(0), time: row.integer(1), topic: row.bytes(2), payload: row.bytes(3)))
      return true
    }
    readThrough = entries.last?.number ?? readThrough
    return entries
  }

  private func add(_ entries: [Entry], to database: Database) throws(StoreError) {
    try database.makeTable()
    let second = start.second + start.moment.duration(to: clock()).components.seconds
    let before = unread(outcome.content) + Int64(entries.count)
    try change(database) { content throws(StoreError) in
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
      try Self.remove(from: database, &content) { row, bytes in
        bytes > self.maxBytes
          || second.subtractingReportingOverflow(row.integer(1)).partialValue > self.maxAge
      }
    }
    outcome.lost += before - unread(outcome.content)
  }

  private func remove(through number: Int64, from database: Database) throws(StoreError) {
    guard !database.isEmpty else { return }
    guard number >= outcome.content.last else {
      return try change(database) { content throws(StoreError) in
        try Self.remove(from: database, &content) { row, _ in row.integer(0) <= number }
      }
    }
    // A long outage leaves a large file; and a file can be removed from a full disk, on which SQLite changes nothing.
    guard unlink(path) == 0 else { throw .system("remove", path) }
    close()
    unlink(path + "-wal")
    outcome.content = Content(last: outcome.content.last)
  }

  /// Runs `body` in a transaction; if that fails, the content is as before.
  private func change(
    _ database: Database, _ body: (inout Content) throws(StoreError) -> Void
  ) throws(StoreError) {
    var content = outcome.content
    try database.transaction { () throws(StoreError) in try body(&content) }
    outcome.content = content
  }

  /// Removes the first messages, up to one for which `isRemoved` does not hold: it gets a message's number and second, and the
  /// bytes of this and all later ones. Must be called in a transaction.
  private static func remove(
    from database: Database, _ content: inout Content,
    while isRemoved: (_ row: Statement, _ bytes: Int64) -> Bool
  ) throws(StoreError) {
    var (rest, last) = (content, Int64?.none)
    try database.statement(
      "SELECT number, second, length(topic) + length(payload) FROM message ORDER BY number", "read"
    ).run { row throws(StoreError) in
      guard isRemoved(row, rest.bytes) else { return false }
      last = row.integer(0)
      rest.messages -= 1
      rest.bytes -= row.integer(2)
      return true
    }
    guard let last else { return }
    try database.statement("DELETE FROM message WHERE number <= ?").run(.integer(last))
    content = rest
  }
}
