import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import Store
import TestSupport
import Testing

@testable import Bridge

@Suite struct SpoolQueueTests {
  private static let start = Moment.now
  private let folder: TemporaryFolder
  private let file: SpoolFile

  init() throws {
    folder = try TemporaryFolder()
    file = Self.file(in: folder)
  }

  private static func file(in folder: TemporaryFolder) -> SpoolFile {
    SpoolFile(path: "\(folder.path)/spool", maxAge: 1000, maxBytes: 1 << 30)
  }

  /// A queue with its open file, in which these messages are.
  private func opened(holding numbers: Range<Int> = 0..<0) -> SpoolQueue {
    var queue = SpoolQueue(hasFile: true, rate: 10_000)
    run(&queue, file)
    add(numbers, to: &queue)
    queue.writeMemory()
    run(&queue, file)
    return queue
  }

  private func add(_ numbers: Range<Int>, to queue: inout SpoolQueue) {
    for number in numbers {
      queue.add(topic: Array("t".utf8), payload: Array("\(number)".utf8), time: Int64(number))
    }
  }

  private func numbers(_ entries: [SpoolFile.Entry]) -> [Int] {
    entries.compactMap { Int(String(decoding: $0.payload, as: UTF8.self)) }
  }

  /// Does what the queue asks for, until it asks for nothing.
  private func run(_ queue: inout SpoolQueue, _ file: SpoolFile) {
    while let work = queue.nextWork() { _ = queue.finished(file.perform(work)) }
  }

  @Test func shortOutageIsWrittenTogetherOnceASecond() {
    var queue = opened()
    add(0..<20, to: &queue)
    queue.connected(receiveMaximum: 100)
    #expect(queue.hasMemory && queue.messages == 20)
    #expect(queue.nextWork() == nil && queue.next(at: Self.start).isEmpty, "until a second has passed")
    queue.writeMemory()
    let write = queue.nextWork()
    #expect(write?.added.count == 20 && queue.messages == 20)
    _ = queue.finished(file.perform(write ?? SpoolFile.Work()))
    #expect(drain(&queue, file) == Array(0..<20))
    #expect(queue.nextWork() == nil)
  }

  @Test func longOutageIsWrittenAndReplayedInOrderWithinTheWindow() {
    var queue = opened(holding: 0..<1200)
    #expect(!queue.hasMemory && queue.messages == 1200)
    // Not written yet.
    add(1200..<1205, to: &queue)
    queue.connected(receiveMaximum: 20)
    #expect(drain(&queue, file, atMost: 10) == Array(0..<1205))
    #expect(file.perform(SpoolFile.Work()).content.messages == 0)
  }

  @Test func whatIsNotAcknowledgedIsSentAgain() {
    var queue = opened(holding: 0..<5)
    add(5..<10, to: &queue)
    queue.writeMemory()
    run(&queue, file)
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    _ = queue.next(at: Self.start)
    let sent = queue.next(at: Self.start + .seconds(1))
    #expect(numbers(sent) == Array(1..<10))
    // 0 to 2 are acknowledged.
    queue.completed([1, 2, 3])
    queue.disconnected()
    #expect(queue.messages == 10, "what is acknowledged is still in the file")
    run(&queue, file)
    #expect(queue.messages == 7 && queue.oldest == 3)
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    #expect(numbers(queue.next(at: Self.start + .seconds(2))) == Array(3..<10))
  }

  @Test func afterAKillAllThatWasWrittenAndNotAcknowledgedIsThere() {
    _ = opened(holding: 0..<700)
    file.close()
    let file = Self.file(in: folder)
    var queue = SpoolQueue(hasFile: true, rate: 10_000)
    // Before the file is open.
    add(700..<701, to: &queue)
    queue.connected(receiveMaximum: 1000)
    #expect(queue.next(at: Self.start).isEmpty)
    run(&queue, file)
    #expect(drain(&queue, file) == Array(0..<701))
  }

  @Test func whatCannotBeWrittenStaysInMemoryWithinABound() {
    var queue = SpoolQueue(hasFile: true, rate: 10_000)
    var failed = SpoolFile.Outcome()
    failed.failure = "the disk is full"
    #expect(queue.nextWork() != nil)
    #expect(queue.finished(failed) == .seconds(1))
    add(0..<SpoolQueue.mostMessages, to: &queue)
    #expect(queue.nextWork() == nil, "until it is tried again")
    queue.retry()
    #expect(queue.nextWork()?.added.count == SpoolQueue.mostMessages)
    add(0..<3, to: &queue)
    #expect(queue.messages == SpoolQueue.mostMessages + 3)
    #expect(queue.finished(failed) == .seconds(2))
    #expect(queue.messages == SpoolQueue.mostMessages && queue.lost == 3)
    // It is published nevertheless.
    queue.connected(receiveMaximum: 1000)
    #expect(numbers(queue.next(at: Self.start)) == [3])
  }

  /// The queue for the broker may hold as many when a connection ends.
  @Test func whatTheFileIsToGetMayBeTwiceAsMuch() {
    var queue = opened()
    add(0..<2 * SpoolQueue.mostMessages, to: &queue)
    #expect(queue.lost == 0)
    queue.writeMemory()
    #expect(queue.nextWork()?.added.count == 2 * SpoolQueue.mostMessages)
  }

  @Test("What can be read from a full disk is sent without a pause, though nothing can be removed")
  func fullDisk() {
    var queue = opened(holding: 0..<3)
    queue.connected(receiveMaximum: 1000)
    for number in 1...3 {
      let work = queue.nextWork()
      #expect(work?.readAfter != nil)
      var outcome = SpoolFile.Outcome(content: SpoolFile.Content(last: 3))
      outcome.content.messages = 3
      outcome.read = [SpoolFile.Entry(number: Int64(number), time: 0, topic: [], payload: [])]
      outcome.failure = "the disk is full"
      #expect(queue.finished(outcome) == nil)
      let sent = queue.next(at: Self.start + .seconds(number))
      #expect(sent.map(\.number) == [Int64(number)])
      queue.completed(sent.map(\.number))
    }
    // Nothing is left to read: the removal is tried again less often.
    #expect(queue.nextWork()?.deliveredThrough == 3)
    var outcome = SpoolFile.Outcome(content: SpoolFile.Content(last: 3))
    outcome.failure = "the disk is full"
    #expect(queue.finished(outcome) == .seconds(1))
  }

  /// Sends and acknowledges all that there is.
  private func drain(
    _ queue: inout SpoolQueue, _ file: SpoolFile, from start: Moment = start, atMost window: Int = 32
  ) -> [Int] {
    var received: [Int] = []
    var now = start
    while !queue.isEmpty, received.count < 2000, now < start + .seconds(600) {
      if queue.hasMemory { queue.writeMemory() }
      run(&queue, file)
      now = now + .milliseconds(20)
      let sent = queue.next(at: now)
      #expect(sent.count <= window)
      received += numbers(sent)
      queue.completed(sent.map(\.number))
    }
    return received
  }

  @Test("What the broker refuses for now stays in its place, and is tried one at a time until it is accepted")
  func refusedForNow() {
    var queue = opened(holding: 0..<8)
    queue.connected(receiveMaximum: 8)
    run(&queue, file)
    _ = queue.next(at: Self.start)
    #expect(numbers(queue.next(at: Self.start + .seconds(1))) == [1, 2, 3])
    // The first two are refused, the third is accepted, the fourth is not answered before the next attempt.
    #expect(queue.refused(1) == .seconds(1))
    #expect(queue.refused(2) == nil, "it waits already")
    #expect(!queue.mayBeSent && queue.next(at: Self.start + .seconds(2)).isEmpty)
    queue.completed([3])
    queue.resume()
    #expect(queue.next(at: Self.start + .seconds(2)).isEmpty, "one at a time")
    queue.completed([4], rejected: 1)
    for delay in [1, 2, 4, 8, 16, 30, 30] {
      #expect(numbers(queue.next(at: Self.start + .seconds(3))) == [0])
      #expect(queue.refused(1) == .seconds(delay))
      queue.resume()
      queue.resume()
    }
    #expect(drain(&queue, file, from: Self.start + .seconds(4)) == [0, 1] + Array(4..<8))
    #expect(queue.lost == 0 && file.perform(SpoolFile.Work()).content.messages == 0)
  }

  @Test func aNewConnectionTriesAtOnceWhatWasRefused() {
    var queue = opened(holding: 0..<3)
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    let first = queue.next(at: Self.start)
    #expect(queue.refused(first[0].number) == .seconds(1))
    queue.disconnected()
    queue.connected(receiveMaximum: 1000)
    #expect(drain(&queue, file, from: Self.start + .seconds(1)) == [0, 1, 2])
    queue.resume()
    #expect(queue.isEmpty)
  }

  @Test func whatAnEarlierRunLeftIsSentIfTheFileCanBeUsedLater() {
    _ = opened(holding: 0..<700)
    file.close()
    let file = Self.file(in: folder)
    var queue = SpoolQueue(hasFile: true, rate: 10_000)
    var failed = SpoolFile.Outcome()
    failed.failure = "it is read-only"
    #expect(queue.nextWork() != nil)
    _ = queue.finished(failed)
    queue.connected(receiveMaximum: 1000)
    add(700..<703, to: &queue)
    queue.completed(queue.next(at: Self.start).map(\.number))
    #expect(queue.messages == 2)
    queue.disconnected()
    // The rest is added below, after what is there.
    queue.retry()
    run(&queue, file)
    #expect(queue.messages == 702)
    queue.connected(receiveMaximum: 1000)
    #expect(drain(&queue, file, from: Self.start + .seconds(1)) == Array(0..<700) + [701, 702])
  }

  @Test func whatIsInMemoryIsSentWhileTheFileCannotBeRead() {
    var queue = opened(holding: 0..<5)
    add(5..<8, to: &queue)
    queue.connected(receiveMaximum: 1000)
    #expect(queue.nextWork()?.readAfter == 0)
    var failed = SpoolFile.Outcome()
    (failed.failure, failed.content) = ("the card is gone", file.perform(SpoolFile.Work()).content)
    #expect(queue.finished(failed) == .seconds(1))
    _ = queue.next(at: Self.start)
    let sent = queue.next(at: Self.start + .seconds(1))
    #expect(numbers(sent) == [6, 7])
    queue.completed([-1] + sent.map(\.number))
    #expect(!queue.mayBeSent && queue.messages == 5)
    queue.retry()
    #expect(drain(&queue, file, from: Self.start + .seconds(2)) == Array(0..<5))
  }

  @Test(
    "While the disk does not answer, what came later is sent, and the rest when it answers",
    arguments: [true, false])
  func stalledFile(isWritten: Bool) throws {
    var queue = opened()
    add(0..<3, to: &queue)
    queue.writeMemory()
    let next = queue.nextWork()
    let work = try #require(next)
    add(3..<5, to: &queue)
    queue.connected(receiveMaximum: 1000)
    #expect(!queue.mayBeSent)
    queue.stalled()
    #expect(queue.mayBeSent && !queue.hasMemory && queue.messages == 5)
    let sent = queue.next(at: Self.start) + queue.next(at: Self.start + .seconds(1))
    #expect(numbers(sent) == [3, 4] && queue.nextWork() == nil)
    queue.completed([-1])
    queue.disconnected()
    var outcome = SpoolFile.Outcome()
    outcome.failure = "the disk is full"
    _ = queue.finished(isWritten ? file.perform(work) : outcome)
    if !isWritten { queue.retry() }
    queue.connected(receiveMaximum: 1000)
    #expect(drain(&queue, file, from: Self.start + .seconds(2)) == [0, 1, 2, 4])
    #expect(queue.lost == 0)
    queue.stalled()
    add(5..<6, to: &queue)
    #expect(queue.hasMemory && !queue.mayBeSent, "there was no work")
  }

  @Test func aCloseDuringAWriteWritesTheRestAfterwards() throws {
    var queue = opened()
    add(0..<3, to: &queue)
    queue.writeMemory()
    let next = queue.nextWork()
    let first = try #require(next)
    add(3..<5, to: &queue)
    queue.disconnected()
    queue.retry()
    #expect(queue.isWorking && queue.nextWork() == nil)
    _ = queue.finished(file.perform(first))
    let more = queue.nextWork()
    let last = try #require(more)
    #expect(numbers(last.added) == [3, 4])
    _ = queue.finished(file.perform(last))
    #expect(!queue.isWorking && queue.nextWork() == nil)
    #expect(file.perform(SpoolFile.Work()).content.messages == 5)
  }

  @Test func whatIsAcknowledgedDuringAStopIsNotSentAgain() {
    var queue = opened(holding: 0..<5)
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    let sent = queue.next(at: Self.start) + queue.next(at: Self.start + .seconds(1))
    queue.pause()
    #expect(sent.count == 5 && queue.next(at: Self.start + .seconds(2)).isEmpty)
    queue.completed(sent.prefix(4).map(\.number))
    queue.disconnected()
    queue.retry()
    run(&queue, file)
    #expect(file.perform(SpoolFile.Work()).content.messages == 1)
  }

  @Test func whatIsReadForAnEarlierConnectionIsNotSentTwice() {
    var queue = opened(holding: 0..<900)
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    var now = Self.start
    while queue.nextWork() == nil {
      now = now + .milliseconds(20)
      queue.completed(queue.next(at: now).map(\.number))
      if now > Self.start + .seconds(60) { break }
    }
    // It reads from 500 on, meanwhile:
    queue.disconnected()
    queue.connected(receiveMaximum: 1000)
    var work = SpoolFile.Work()
    work.readAfter = 500
    _ = queue.finished(file.perform(work))
    #expect(drain(&queue, file, from: now) == Array(500..<900))
  }

  @Test("What is added in the very step in which the file proves damaged is sent")
  func addedToADamagedFile() throws {
    var work = SpoolFile.Work()
    work.added = (0..<30_000).map {
      SpoolFile.Entry(number: 0, time: 0, topic: Array("t".utf8), payload: Array("\($0)".utf8))
    }
    #expect(file.perform(work).isAdded)
    // What is written is in the log until then.
    file.close()
    var queue = opened()
    queue.connected(receiveMaximum: 1000)
    run(&queue, file)
    var (now, sent) = (Self.start, 0)
    while case let entries = queue.next(at: now), sent < SpoolFile.Work.limit {
      queue.completed(entries.map(\.number))
      sent += entries.count
      now = now + .milliseconds(20)
    }
    let path = "\(folder.path)/spool"
    let descriptor = open(path, O_WRONLY)
    defer { close(descriptor) }
    let garbage = [UInt8](repeating: 0xA5, count: Int(lseek(descriptor, 0, SEEK_END)) - 4096)
    #expect(pwrite(descriptor, garbage, garbage.count, 4096) == garbage.count)
    add(30_000..<30_003, to: &queue)
    queue.writeMemory()
    let next = queue.nextWork()
    let both = try #require(next)
    #expect(both.readAfter == 500 && both.added.count == 3)
    let outcome = file.perform(both)
    #expect(outcome.setAside != nil && outcome.isAdded && outcome.read.isEmpty)
    _ = queue.finished(outcome)
    #expect(drain(&queue, file, from: now) == [30_000, 30_001, 30_002])
  }

  @Test func theRateIsKept() {
    var pace = SpoolPace(rate: 50)
    var taken = 0
    for step in 0...1000 {
      while pace.mayTake(at: Self.start + .milliseconds(step * 20)) {
        pace.take()
        taken += 1
      }
    }
    #expect((1000...1001).contains(taken))
  }
}

@LoopActor @Suite struct SpoolTests {
  @Test func aDiskThatDoesNotAnswerIsReportedUntilItDoes() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("", to: "spool")
    let descriptor = open(path, O_RDWR)
    defer { close(descriptor) }
    // SQLite waits a second for it, each time. The number is F_OFD_SETLK's, which is not imported.
    let setLock: Int32 = 37
    var lock = Glibc.flock()
    lock.l_type = Int16(F_WRLCK)
    try #require(fcntl(descriptor, setLock, &lock) == 0)
    let gateway = GatewayID(hostName: "here")
    let engine = DeviceManager(Configuration(), gateway: gateway, state: .inMemory())
    let context = BridgeContext(Configuration(), gateway: gateway, engine: engine)
    let spool = Spool(Configuration.Spool(), path: path, context)
    spool.patience = .milliseconds(10)
    spool.start()
    try await eventually("the finding") {
      await spool.finding?.text.contains("the disk does not answer") == true
    }
    lock.l_type = Int16(F_UNLCK)
    #expect(fcntl(descriptor, setLock, &lock) == 0)
    try await eventually("its end") { await spool.finding == nil }
    await spool.close(within: patience)
  }
}
