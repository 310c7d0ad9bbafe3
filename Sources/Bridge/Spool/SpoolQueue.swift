import EventLoop
import Store

/// The messages that wait for the broker: which of them are in the file, which are sent, and when. Pure.
///
/// What is added is kept in memory, written to the file a second later, and read from there to be sent. Without a file, or
/// while it cannot be used, it is sent from memory.
struct SpoolQueue {
  typealias Entry = SpoolFile.Entry

  /// The bounds of what is in memory; beyond them, the oldest are lost.
  static let mostMessages = 10_000
  static let mostBytes: Int64 = 4 * 1024 * 1024

  private let hasFile: Bool
  private var pace: SpoolPace
  /// How many may be sent and not acknowledged; nil without a connection.
  private var window: Int?

  /// What the file holds.
  private var content = SpoolFile.Content()
  /// What the file is asked for; nil: nothing.
  private var work: SpoolFile.Work?
  /// The file was asked once; what is in it comes first. True without a file.
  private var isAsked: Bool
  /// Whether the file is not used until ``retry()``, as something has failed.
  private var isPaused = false
  private var backOff = BackOff(first: .seconds(1), longest: .seconds(60), spread: 0)

  /// The messages that are not in the file; their numbers say nothing.
  private var memory: ArraySlice<Entry> = []
  private var memoryBytes: Int64 = 0
  private var isWriteDue = false
  /// Messages read from the file, to be sent.
  private var batch: ArraySlice<Entry> = []
  private var lastRead: Int64 = 0
  /// The messages sent, in the order of sending; those of the file are in the order of their numbers.
  private var sent: [Sent] = []
  /// The lowest number of a message sent from memory: these have numbers below zero.
  private var lowestNumber: Int64 = 0
  /// All messages of the file up to these numbers are acknowledged, and removed from it.
  private var (deliveredThrough, removedThrough): (Int64, Int64) = (0, 0)

  private var lostInMemory: UInt64 = 0
  private var lostInFile: UInt64 = 0

  private struct Sent {
    let entry: Entry
    var isAcknowledged = false

    var isInFile: Bool { entry.number > 0 }
    /// Whether the message is held nowhere else.
    var isOnlyHere: Bool { !isInFile && !isAcknowledged }
  }

  /// - Parameter rate: messages sent in a second, at most.
  init(hasFile: Bool, rate: Int) {
    self.hasFile = hasFile
    isAsked = !hasFile
    pace = SpoolPace(rate: rate)
  }

  // MARK: What waits

  var isEmpty: Bool {
    content.messages == 0 && memory.isEmpty && work?.added.isEmpty != false
      && !sent.contains(where: \.isOnlyHere)
  }
  var messages: Int { Int(content.messages) + notInFile.count }
  var bytes: Int64 { content.bytes + notInFile.reduce(0) { $0 + $1.bytes } }
  /// When the first one was added, in milliseconds since 1970.
  var oldest: Int64? { content.oldest ?? notInFile.first?.time }
  var lost: UInt64 { lostInMemory + lostInFile }

  private var notInFile: [Entry] {
    sent.filter(\.isOnlyHere).map(\.entry) + (work?.added ?? []) + memory
  }

  /// Whether ``writeMemory()`` is to be called a second later.
  var hasMemory: Bool { hasFile && !memory.isEmpty }

  /// Whether something may be sent now or a little later.
  var mayBeSent: Bool { window != nil && (!batch.isEmpty || isUnread || !memory.isEmpty) }
  /// Whether the file is asked for something.
  var isWorking: Bool { work != nil }

  /// Whether there is more to read from the file, as far as it can be read.
  private var isUnread: Bool { content.messages > 0 && content.last > lastRead && !isPaused }

  // MARK: Inputs

  mutating func add(topic: [UInt8], payload: [UInt8], time: Int64) {
    append(Entry(number: 0, time: time, topic: topic, payload: payload))
  }

  private mutating func append(_ entry: Entry) {
    memory.append(entry)
    memoryBytes += entry.bytes
    while memory.count > Self.mostMessages || memoryBytes > Self.mostBytes, let oldest = memory.popFirst() {
      memoryBytes -= oldest.bytes
      lostInMemory += 1
    }
  }

  /// - Parameter receiveMaximum: how many messages the broker takes unacknowledged: half of them are for other messages.
  mutating func connected(receiveMaximum: Int) { window = max(1, min(32, receiveMaximum / 2)) }

  /// Nothing more is sent on this connection.
  mutating func pause() { window = nil }

  /// What was sent is sent again on the next connection.
  mutating func disconnected() {
    window = nil
    rewind()
  }

  /// Messages were not delivered, though there is a connection.
  mutating func rewind() {
    let waiting = memory
    let unsent = sent.filter(\.isOnlyHere).map(\.entry)
    (memory, memoryBytes, sent, batch) = ([], 0, [], [])
    for entry in unsent + waiting { append(entry) }
    lastRead = deliveredThrough
  }

  /// The broker has acknowledged, or rejected, these.
  mutating func completed(_ numbers: [Int64]) {
    for number in numbers {
      guard let index = sent.firstIndex(where: { $0.entry.number == number }) else { continue }
      sent[index].isAcknowledged = true
    }
    while let first = sent.first, first.isAcknowledged {
      if first.isInFile { deliveredThrough = first.entry.number }
      sent.removeFirst()
    }
  }

  mutating func writeMemory() { isWriteDue = true }
  mutating func retry() { isPaused = false }

  /// All that the file does not have is to be written now: there will be nothing more.
  mutating func close() {
    disconnected()
    (isWriteDue, isPaused) = (true, false)
  }

  // MARK: Sending

  /// The messages to send now, in order.
  mutating func next(at now: Moment) -> [Entry] {
    guard let window, isAsked else { return [] }
    var entries: [Entry] = []
    while sent.count < window, pace.mayTake(at: now), let next = takeNext() {
      pace.take()
      sent.append(next)
      entries.append(next.entry)
    }
    return entries
  }

  private mutating func takeNext() -> Sent? {
    if let entry = batch.popFirst() { return Sent(entry: entry) }
    // What is in the file is older.
    guard !isUnread, work?.added.isEmpty != false, let entry = memory.popFirst() else { return nil }
    memoryBytes -= entry.bytes
    lowestNumber -= 1
    return Sent(
      entry: Entry(number: lowestNumber, time: entry.time, topic: entry.topic, payload: entry.payload))
  }

  // MARK: The file

  /// What the file is to do now; nil: nothing, or it is busy. Its outcome is to be passed to ``finished(_:)``.
  mutating func nextWork() -> SpoolFile.Work? {
    guard hasFile, work == nil, !isPaused else { return nil }
    var next = SpoolFile.Work()
    var isNeeded = !isAsked
    if isAsked, isWriteDue {
      isWriteDue = false
      next.added = Array(memory)
      (memory, memoryBytes) = ([], 0)
      isNeeded = !next.added.isEmpty
    }
    if window != nil, batch.isEmpty, isUnread {
      next.readAfter = lastRead
      isNeeded = true
    }
    // A removal waits for other work on the file, as each change of the file wears out a memory card.
    if deliveredThrough > removedThrough, content.messages > 0, isNeeded || batch.isEmpty && sent.isEmpty {
      next.deliveredThrough = deliveredThrough
      isNeeded = true
    }
    guard isNeeded else { return nil }
    work = next
    return next
  }

  /// - Returns: after which time to call ``retry()``; nil: nothing has failed.
  mutating func finished(_ outcome: SpoolFile.Outcome) -> Duration? {
    guard let work else { return nil }
    self.work = nil
    isAsked = true
    let lastBefore = content.last
    content = outcome.content
    lostInFile += UInt64(outcome.lost)
    if !outcome.isAdded, !work.added.isEmpty {
      let newer = memory
      (memory, memoryBytes) = ([], 0)
      for entry in work.added + newer { append(entry) }
      isWriteDue = true
    }
    // Unless it is to be read again from another one.
    if let number = work.readAfter, number == lastRead, window != nil {
      batch = outcome.read[...]
      // A damaged file was replaced by one that has what was added, which was not read.
      lastRead = batch.last?.number ?? (outcome.failure == nil ? lastBefore : lastRead)
    }
    guard outcome.failure == nil else {
      isPaused = true
      return backOff.next()
    }
    backOff.reset()
    if let number = work.deliveredThrough { removedThrough = number }
    return nil
  }
}

/// Bounds a rate, evenly.
struct SpoolPace {
  private let rate: Double
  private var credit = 1.0
  private var last: Moment?

  init(rate: Int) { self.rate = Double(rate) }

  mutating func mayTake(at now: Moment) -> Bool {
    let elapsed = last.map { $0.duration(to: now) / .seconds(1) } ?? 0
    last = now
    // After a pause no more at once than in a tenth of a second.
    credit = min(max(1, rate / 10), credit + elapsed * rate)
    return credit >= 1
  }

  mutating func take() { credit -= 1 }
}
