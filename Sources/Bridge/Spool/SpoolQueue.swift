import EventLoop
import Store

/// The messages that wait for the broker: which of them are in the file, which are sent, and when. Pure.
///
/// A message is written to the file a second after it was added, and read from there to be sent. Without a file, or while it
/// cannot be used, messages are kept in memory, and sent from there.
struct SpoolQueue {
  typealias Entry = SpoolFile.Entry

  /// The bounds of what is in memory; beyond them, the oldest are lost. What the file is to get may be twice as much: all that
  /// the queue for the broker held comes at once when a connection ends.
  static let mostMessages = 10_000
  static let mostBytes: Int64 = 4 * 1024 * 1024

  private enum FileState {
    /// The file is opened at once, as an earlier run may have left messages, which come first.
    case unopened
    case usable
    /// Not used until ``retry()``, as something has failed, or there is none; or not known to work, as it does not answer.
    case failing
  }

  private var fileState: FileState
  /// What the file is asked for; nil: nothing.
  private var work: SpoolFile.Work?
  /// What the file holds.
  private var content = SpoolFile.Content()
  private var backOff = BackOff(first: .seconds(1), longest: .seconds(60), spread: 0)
  private var pace: SpoolPace
  private var window = SpoolWindow()

  /// The messages that are not in the file; their numbers say nothing.
  private var memory: ArraySlice<Entry> = []
  private var memoryBytes: Int64 = 0
  private var isWriteDue = false
  /// Messages read from the file, to be sent.
  private var batch: ArraySlice<Entry> = []
  private var lastRead: Int64 = 0
  /// The messages sent and not acknowledged. Those sent from memory have numbers below zero.
  private var sent: [Entry] = []
  /// The numbers of those that the broker has refused, and that are sent again.
  private var refused: Set<Int64> = []
  private var lowestNumber: Int64 = 0
  /// All messages of the file up to this number are removed from it.
  private var removedThrough: Int64 = 0
  private(set) var lost: UInt64 = 0

  /// - Parameter rate: messages sent in a second, at most.
  init(hasFile: Bool, rate: Int) {
    fileState = hasFile ? .unopened : .failing
    pace = SpoolPace(rate: rate)
  }

  // MARK: What waits

  var isEmpty: Bool { messages == 0 }
  var messages: Int {
    Int(content.messages) + sent.count { $0.number < 0 } + (work?.added.count ?? 0) + memory.count
  }
  var bytes: Int64 { content.bytes + notInFile.reduce(0) { $0 + $1.bytes } }
  /// When the first one was added, in milliseconds since 1970.
  var oldest: Int64? { content.oldest ?? notInFile.first?.time }

  /// The messages that are not known to be in the file.
  var unstored: Int { notInFile.count }
  private var notInFile: [Entry] { sent.filter { $0.number < 0 } + (work?.added ?? []) + memory }

  /// Whether ``writeMemory()`` is to be called a second later.
  var hasMemory: Bool { !memory.isEmpty && fileState != .failing }
  /// Whether something may be sent now or a little later.
  var mayBeSent: Bool {
    window.isOpen && (!batch.isEmpty || fileState == .failing && !memory.isEmpty)
  }
  /// Whether the file is asked for something.
  var isWorking: Bool { work != nil }

  // MARK: Inputs

  mutating func add(topic: [UInt8], payload: [UInt8], time: Int64) {
    memory.append(Entry(number: 0, time: time, topic: topic, payload: payload))
    memoryBytes += memory.last?.bytes ?? 0
    boundMemory()
  }

  /// Messages that turn out not to be in the file are older than the others in memory.
  private mutating func putBack(_ entries: [Entry]) {
    memory = entries + memory
    memoryBytes += entries.reduce(0) { $0 + $1.bytes }
    boundMemory()
  }

  private mutating func boundMemory() {
    let factor = fileState == .failing ? 1 : 2
    while memory.count > Self.mostMessages * factor || memoryBytes > Self.mostBytes * Int64(factor),
      takeFromMemory() != nil
    {
      lost += 1
    }
  }

  private mutating func fileFails() {
    fileState = .failing
    boundMemory()
  }

  private mutating func takeFromMemory() -> Entry? {
    let entry = memory.popFirst()
    memoryBytes -= entry?.bytes ?? 0
    return entry
  }

  /// - Parameter receiveMaximum: how many messages the broker takes unacknowledged: half of them are for other messages.
  mutating func connected(receiveMaximum: Int) { window.connected(receiveMaximum: receiveMaximum) }

  /// Nothing more is sent on this connection.
  mutating func pause() { window.close() }

  /// What was sent is sent again on the next connection.
  mutating func disconnected() {
    pause()
    rewind()
  }

  /// Messages were not delivered, though there is a connection.
  mutating func rewind() { unsend(sent) }

  private mutating func unsend(_ entries: [Entry]) {
    let numbers = Set(entries.map(\.number))
    sent.removeAll { numbers.contains($0.number) }
    refused.subtract(numbers)
    batch = ArraySlice((entries.filter { $0.number > 0 } + batch).sorted { $0.number < $1.number })
    putBack(entries.filter { $0.number < 0 })
  }

  /// The broker has acknowledged these, or rejected them for good.
  mutating func completed(_ numbers: [Int64], rejected: Int = 0) {
    sent.removeAll { numbers.contains($0.number) }
    if numbers.count > rejected { window.accepted() }
  }

  /// The broker has refused this message for now.
  /// - Returns: after which time to call ``resume()``; nil: a call is pending, or none is needed.
  mutating func refused(_ number: Int64) -> Duration? {
    guard sent.contains(where: { $0.number == number }) else { return nil }
    refused.insert(number)
    return window.refused()
  }

  /// The broker may take what it has refused.
  mutating func resume() {
    if window.resume() { unsend(sent.filter { refused.contains($0.number) }) }
  }

  mutating func writeMemory() { isWriteDue = true }

  /// The file may be usable again, or there will be nothing more to write.
  mutating func retry() { (fileState, isWriteDue) = (.unopened, true) }

  /// The file has not answered for long: what is not in its work is sent from memory.
  mutating func stalled() { if work != nil { fileFails() } }

  // MARK: Sending

  /// The messages to send now, in order.
  mutating func next(at now: Moment) -> [Entry] {
    guard let most = window.size else { return [] }
    var entries: [Entry] = []
    while sent.count < most, pace.mayTake(at: now), let next = takeNext() {
      pace.take()
      sent.append(next)
      entries.append(next)
    }
    return entries
  }

  private mutating func takeNext() -> Entry? {
    if let entry = batch.popFirst() { return entry }
    guard fileState == .failing, var entry = takeFromMemory() else { return nil }
    lowestNumber -= 1
    entry.number = lowestNumber
    return entry
  }

  // MARK: The file

  /// What the file is to do now; nil: nothing, or it is busy. Its outcome is to be passed to ``finished(_:)``.
  mutating func nextWork() -> SpoolFile.Work? {
    guard work == nil, fileState != .failing else { return nil }
    var next = SpoolFile.Work()
    if isWriteDue {
      next.added = Array(memory)
      (memory, memoryBytes, isWriteDue) = ([], 0, false)
    }
    if window.isOpen, batch.isEmpty, content.messages > 0, content.last > lastRead {
      next.readAfter = lastRead
    }
    // A removal waits for other work on the file, as each change of the file wears out a memory card.
    let isIdle = sent.isEmpty && (batch.isEmpty || !window.isOpen)
    if isIdle || next != SpoolFile.Work(), deliveredThrough > removedThrough {
      next.deliveredThrough = deliveredThrough
    }
    guard next != SpoolFile.Work() || fileState == .unopened else { return nil }
    work = next
    return next
  }

  /// All messages of the file up to this number are acknowledged.
  private var deliveredThrough: Int64 {
    (sent + batch.prefix(1)).map(\.number).filter { $0 > 0 }.min().map { $0 - 1 } ?? lastRead
  }

  /// - Returns: after which time to call ``retry()``; nil: nothing has failed.
  mutating func finished(_ outcome: SpoolFile.Outcome) -> Duration? {
    guard let work else { return nil }
    self.work = nil
    content = outcome.content
    lost += UInt64(clamping: outcome.lost)
    if !outcome.isAdded { putBack(work.added) }
    batch += outcome.read
    lastRead = outcome.read.last?.number ?? lastRead
    if outcome.failure == nil {
      backOff.reset()
      removedThrough = work.deliveredThrough ?? removedThrough
    } else if outcome.read.isEmpty {
      fileFails()
      return backOff.next()
    }
    // What was read from a full disk is sent, and more is read, though nothing can be removed.
    fileState = .usable
    return nil
  }
}

/// How many messages may be sent and not acknowledged.
struct SpoolWindow {
  /// nil without a connection, and when the broker has refused a message for now, until ``resume()``. From then on it is 1 until
  /// the broker accepts one.
  private(set) var size: Int?
  /// The largest size on the connection; nil: there is none.
  private var largest: Int?
  private var backOff = BackOff(first: .seconds(1), longest: .seconds(30), spread: 0)

  var isOpen: Bool { size != nil }

  /// Opens it, as there is a connection to a broker that takes so many messages unacknowledged.
  mutating func connected(receiveMaximum: Int) {
    largest = max(1, min(32, receiveMaximum / 2))
    size = largest
  }

  /// Closes it until the next connection.
  mutating func close() { (size, largest) = (nil, nil) }

  /// The broker has accepted a message: unless it is closed, it is as large as it can be.
  mutating func accepted() {
    backOff.reset()
    if isOpen { size = largest }
  }

  /// The broker has refused a message for now.
  /// - Returns: after which time to call ``resume()``; nil: it is closed already, and a call of ``resume()`` is pending, or there
  ///   is no connection.
  mutating func refused() -> Duration? {
    guard isOpen else { return nil }
    size = nil
    return backOff.next()
  }

  /// - Returns: whether a refusal had closed it.
  mutating func resume() -> Bool {
    guard !isOpen, largest != nil else { return false }
    size = 1
    return true
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
