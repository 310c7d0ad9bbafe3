import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct SpoolFileTests {
  private let folder: TemporaryFolder
  private var path: String { "\(folder.path)/here.spool" }

  init() throws { folder = try TemporaryFolder() }

  private func unlimited() -> SpoolFile { SpoolFile(path: path, maxAge: 1000, maxBytes: 1 << 30) }

  private func entries(_ numbers: ClosedRange<Int64>) -> [SpoolFile.Entry] {
    numbers.map {
      SpoolFile.Entry(number: $0, time: $0 * 10, topic: Array("t".utf8), payload: Array("ü\($0)".utf8))
    }
  }

  private func work(
    add: [SpoolFile.Entry] = [], through: Int64? = nil, after: Int64? = nil
  ) -> SpoolFile.Work {
    var work = SpoolFile.Work()
    (work.added, work.deliveredThrough, work.readAfter) = (add, through, after)
    return work
  }

  @Test func messagesAreReadInOrderAlsoByTheNextRun() {
    let file = unlimited()
    #expect(file.perform(work(after: 0)).read.isEmpty)
    let written = file.perform(work(add: entries(1...700)))
    #expect(written.isAdded && written.failure == nil)
    file.close()

    let next = unlimited()
    let first = next.perform(work(after: 0))
    #expect(first.read == entries(1...500))
    #expect(first.content.messages == 700 && first.content.last == 700 && first.content.oldest == 10)
    #expect(first.content.bytes == entries(1...700).reduce(0) { $0 + $1.bytes })
    let second = next.perform(work(through: 500, after: 500))
    #expect(second.read == entries(501...700))
    #expect(second.content.messages == 200 && second.content.oldest == 5010)
    let end = next.perform(work(through: 700, after: 700))
    #expect(end.read.isEmpty && end.content.messages == 0 && end.content.bytes == 0)
    #expect(end.content.oldest == nil && end.content.last == 700)
  }

  /// A memory card wears out by the pages that are written: with a rollback journal 17 KiB by each transaction.
  @Test func aReadingIsStoredInFewBytes() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...1)))
    let payload = [UInt8](repeating: 46, count: 230)
    let before = try written()
    for number in 2...101 as ClosedRange<Int64> {
      let entry = SpoolFile.Entry(number: number, time: 0, topic: Array("t".utf8), payload: payload)
      #expect(file.perform(work(add: [entry])).isAdded)
    }
    #expect(try written() - before < 100 * 3000)
  }

  /// The bytes that this thread has written.
  private func written() throws -> Int {
    let text = String(decoding: try contents("/proc/thread-self/io"), as: UTF8.self)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("wchar: ") })
    return try #require(Int(line.dropFirst("wchar: ".count)))
  }

  @Test func whatWasStoredIsThereAfterAKill() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...700)))
    for suffix in ["", "-wal"] { try folder.write(contents(path + suffix), to: "next.spool\(suffix)") }
    let next = SpoolFile(path: "\(folder.path)/next.spool", maxAge: 1000, maxBytes: 1 << 30)
    #expect(next.perform(work(after: 500)).read == entries(501...700))
    #expect(access("\(folder.path)/next.spool-shm", F_OK) != 0, "the memory is not shared")
  }

  @Test func beyondItsSizeTheOldestAreRemoved() {
    // A message has 4 bytes.
    let file = SpoolFile(path: path, maxAge: 1000, maxBytes: 20)
    _ = file.perform(work(add: entries(1...4)))
    let full = file.perform(work(add: entries(5...8)))
    #expect(full.lost == 3 && full.content.messages == 5 && full.content.bytes == 20)
    #expect(file.perform(work(after: 0)).read == entries(4...8))
  }

  /// They wait in memory, or are sent.
  @Test func whatHasBeenReadIsNotLost() {
    let file = SpoolFile(path: path, maxAge: 1000, maxBytes: 20)
    _ = file.perform(work(add: entries(1...3), after: 0))
    #expect(file.perform(work(after: 0)).read == entries(1...3))
    #expect(file.perform(work(add: entries(4...7))).lost == 0)
    #expect(file.perform(work(add: entries(8...9))).lost == 1, "4")
    #expect(file.perform(work(after: 3)).read == entries(5...9))
  }

  /// The clock of the host is not asked: it may jump by years.
  @Test func beyondItsAgeTheOldestAreRemovedAndTheAgeCountsOverRuns() {
    let start = Moment.now
    let offset = Mutex(0)
    func file() -> SpoolFile {
      SpoolFile(path: path, maxAge: 100, maxBytes: 1 << 20) {
        start + .seconds(offset.withLock { $0 })
      }
    }
    let first = file()
    _ = first.perform(work(add: entries(1...2)))
    offset.withLock { $0 = 60 }
    _ = first.perform(work(add: entries(3...3)))
    first.close()
    // A run that begins much later: its clock goes on where the last message was written.
    offset.withLock { $0 = 1000 }
    let second = file()
    #expect(second.perform(work(add: entries(4...4))).lost == 0)
    offset.withLock { $0 = 1041 }
    let outcome = second.perform(work(add: entries(5...5)))
    #expect(outcome.lost == 2)
    #expect(second.perform(work(after: 0)).read == entries(3...5))
  }

  @Test func nothingIsLeftOfALongOutage() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...100_000)))
    #expect(try contents(path).count >= 1 << 20)
    #expect(file.perform(work(through: 100_000)).content.messages == 0)
    #expect(access(path, F_OK) != 0 && access(path + "-wal", F_OK) != 0)
    // Later ones have later numbers.
    _ = file.perform(work(add: entries(100_001...100_002)))
    #expect(file.perform(work(after: 0)).read == entries(100_001...100_002))
  }

  @Test(arguments: [0.02, 0.5])
  func damagedFileIsSetAside(_ place: Double) throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...5000)))
    file.close()
    var bytes = try contents(path)
    let begin = Int(Double(bytes.count) * place) / 4096 * 4096 + 4096
    for index in begin..<(begin + 8192) { bytes[index] = UInt8(truncatingIfNeeded: index &* 31 + 7) }
    try folder.write(bytes, to: "here.spool")

    let next = unlimited()
    let outcome = next.perform(work(add: entries(1...3), after: 0))
    let aside = try #require(outcome.setAside)
    #expect(aside.path.contains("here.spool.corrupt-") && outcome.failure == nil && outcome.isAdded)
    #expect(next.perform(work(after: 0)).read == entries(1...3))
    #expect(try contents(aside.path) == bytes)
  }

  /// The end of the file is missing, as after a power cut of a card that reported too much.
  @Test func truncatedFileIsSetAside() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...5000)))
    file.close()
    let bytes = try contents(path)
    try folder.write(Array(bytes.prefix(bytes.count / 2 + 100)), to: "here.spool")
    let next = unlimited()
    #expect(next.perform(work(add: entries(1...1))).setAside != nil)
    #expect(next.perform(work(after: 0)).read == entries(1...1))
  }

  @Test func fileThatSomebodyDeletesIsMadeAnew() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...3)))
    try #require(unlink(path) == 0)
    #expect(file.perform(work(add: entries(4...5))).isAdded)
    #expect(file.perform(work(after: 3)).read == entries(4...5))
  }

  @Test func fileDamagedWhileItIsUsedIsSetAsideAndCounted() throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...30_000)))
    // What is written is in the log until then.
    file.close()
    _ = file.perform(work())
    let garbage = [UInt8](repeating: 0xA5, count: try contents(path).count - 4096)
    let descriptor = open(path, O_WRONLY)
    defer { close(descriptor) }
    #expect(pwrite(descriptor, garbage, garbage.count, 4096) == garbage.count)
    let outcome = file.perform(work(after: 3000))
    #expect(outcome.setAside != nil && outcome.lost == 30_000 && outcome.content.messages == 0)
    #expect(file.perform(work(add: entries(30_001...30_001), after: 3000)).isAdded)
    #expect(file.perform(work(after: 3000)).read == entries(30_001...30_001))
  }

  /// As another program may have written them: no sum overflows.
  @Test(arguments: [
    "number = 9223372036854775807", "second = 9223372036854775807", "second = -9223372036854775808",
    "second = 1e300", "second = 'x'", "time = 9223372036854775807",
  ])
  func numbersThatCannotBeEndNothing(change: String) throws {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...2)))
    file.close()
    try SQLiteConnection(path).execute("UPDATE message SET \(change) WHERE number = 2")
    let next = unlimited()
    let outcome = next.perform(work(add: entries(3...4), after: 0))
    #expect(outcome.isAdded && outcome.failure == nil && !outcome.read.isEmpty)
    #expect(next.perform(work(through: .max, after: 0)).content.messages == 0)
  }

  @Test func fileOfAnotherProcessIsNotTouched() {
    let file = unlimited()
    _ = file.perform(work(add: entries(1...1)))
    let second = unlimited()
    let outcome = second.perform(work(add: entries(1...1)))
    #expect(!outcome.isAdded && outcome.failure?.contains("in use by another process") == true)
    file.close()
    #expect(second.perform(work(add: entries(2...2))).content.messages == 2)
  }
}
