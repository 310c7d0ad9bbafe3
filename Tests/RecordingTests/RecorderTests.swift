import Configuration
import EventLoop
import GATT
import Glibc
import JSON
import Log
import TestSupport
import Testing

@testable import Devices
@testable import Recording

/// A recorder with an engine that has no Bluetooth: tests deliver readings as the engine would.
@LoopActor private final class RecorderUnderTest {
  static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  let folder: String
  let engine: DeviceManager
  private(set) var recorder: Recorder

  init(_ folder: TemporaryFolder, _ limits: RecordingLimits = RecordingLimits()) throws {
    self.folder = folder.path + "/recordings"
    let text =
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"table-1","#
      + #""properties":["temperature","button_a","uart_rx"]}]}"#
    engine = DeviceManager(
      try Configuration.parse(Array(text.utf8)).get(), gateway: GatewayID(hostName: "here"),
      state: .inMemory())
    engine.start()
    recorder = Recorder(engine, folder: self.folder, limits: limits)
    recorder.start()
  }

  /// The gateway is killed, and starts again.
  func startAgain(_ limits: RecordingLimits = RecordingLimits()) async throws {
    await recorder.stop(within: .seconds(5))
    recorder = Recorder(engine, folder: folder, limits: limits)
    recorder.start()
    _ = try await recorder.list()
  }

  var device: Device { engine.registry.byAddress[Self.address]! }

  func receive(_ values: Int..., of property: String = "temperature") {
    let index = device.description.profile.index(ofPropertyNamed: property)!
    for value in values { device.channels[index].reportReading(of: .integer(value)) }
  }

  func receive(line: String) {
    device.values.deliver(device.values.accept(FrameAssembler.Frame(bytes: Array(line.utf8))))
  }

  /// The device, property and value of each reading of a recording.
  func rows(_ name: String) async throws -> [String] {
    let open = try #require(recorder.table(name, .rows))
    let text = try await EventLoop.blocking {
      Result { () throws(RecordingFailure) in
        var (table, text) = (try open(), [UInt8]())
        while let piece = try table.next() { text += piece }
        return String(decoding: text, as: UTF8.self)
      }
    }.get()
    return text.split(separator: "\r\n").dropFirst().map {
      $0.split(separator: ",")[1...3].joined(separator: " ")
    }
  }
}

@Suite @LoopActor struct RecorderTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(
    "Nothing is observed before the start and after the end, and each reading in between is recorded once")
  func lesson() async throws {
    let test = try RecorderUnderTest(folder)
    test.receive(1)
    let observers = test.device.observers.count
    #expect(try await test.recorder.record("Table 1, Übung").name == "table-1-uebung")
    #expect(test.device.observers.count == observers + 1)
    test.receive(2, 3)
    test.receive(line: "moisture:7")
    test.receive(line: "moisture:8")
    let ended = try await test.recorder.finish()
    #expect(test.device.observers.count == observers)
    test.receive(4)
    #expect(ended.end == .stop && ended.readings == 4 && ended.lost == 0)
    #expect(
      try await test.rows("table-1-uebung") == [
        "table-1 temperature 2", "table-1 temperature 3", "table-1 values/moisture 7",
        "table-1 values/moisture 8",
      ])
    #expect(try await test.recorder.list() == [ended])
    try await test.startAgain()
    #expect(try await test.recorder.list() == [ended])
    #expect(test.recorder.current == nil && test.device.observers.count == observers)
  }

  @Test func oneRecordingAtATimeAndNoneWithoutAFolder() async throws {
    let test = try RecorderUnderTest(folder)
    await #expect(throws: RequestError(.failed, "nothing is being recorded")) {
      try await test.recorder.finish()
    }
    let first = try await test.recorder.record("a")
    await #expect(throws: RequestError.self) { try await test.recorder.record("b") }
    #expect(test.recorder.current == first)
    _ = try await test.recorder.finish()
    #expect(try await test.recorder.record("a").name == "a-2")
    await #expect(throws: RequestError.self) { try await test.recorder.record("!") }
    let without = Recorder(test.engine, folder: nil)
    without.start()
    await #expect(throws: RequestError.self) { try await without.record(nil) }
    #expect(try await without.list().isEmpty)
  }

  @Test func oneWhoseFileIsBeingMadeIsEnded() async throws {
    let test = try RecorderUnderTest(folder)
    let recorder = test.recorder
    _ = try await recorder.list()
    // The loop runs them in this order, and the file is made on another thread.
    let first = loop.task { try? await recorder.record("a") }
    let second = loop.task { try? await recorder.record("b") }
    let end = loop.task { try? await recorder.finish() }
    #expect(await first.value?.name == "a")
    #expect(await second.value == nil)
    let ended = try #require(await end.value)
    #expect(ended.name == "a" && ended.end == .stop && recorder.current == nil)
  }

  @Test("While the disk does not answer, requests fail, and what was to be started is not recorded later")
  func diskThatDoesNotAnswer() async throws {
    var limits = RecordingLimits()
    limits.patience = .milliseconds(1)
    let test = try RecorderUnderTest(folder, limits)
    let (recorder, answer) = (test.recorder, Waiter<Void>())
    await recorder.loading?.value
    recorder.loading = loop.task { _ = try? await answer.value() }
    let failure = RequestError("the disk does not answer")
    await #expect(throws: failure) { try await recorder.record("a") }
    await #expect(throws: failure) { try await recorder.finish() }
    await #expect(throws: failure) { try await recorder.delete("a") }
    await #expect(throws: failure) { try await recorder.list() }
    let start = try #require(recorder.starting)
    answer.resume(.success(()))
    _ = await start.value
    #expect(recorder.current == nil && recorder.starting == nil)
    #expect(try names(in: test.folder) == [])
  }

  @Test("The next run goes on: with the same columns, without what a power cut has left of a line")
  func restart() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    test.receive(1, 2)
    await test.recorder.stop(within: .seconds(5))
    let path = "recordings/a.part"
    let before = try text(of: path)
    try folder.write(before + "[12,0,9\u{0}\u{0}", to: path)
    try await test.startAgain()
    #expect(test.recorder.current?.readings == 2 && test.recorder.current?.bytes == before.utf8.count)
    test.receive(3)
    let ended = try await test.recorder.finish()
    #expect(ended.readings == 3)
    #expect(try await test.rows("a") == (1...3).map { "table-1 temperature \($0)" })
    #expect(try text(of: "recordings/a.rec").split(separator: "\n").count == 6, "one column, one end")
  }

  @Test("A column whose line is damaged does not give its readings, nor its number, to another one")
  func damagedColumn() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    test.receive(1)
    test.receive(line: "moisture:7")
    await test.recorder.stop(within: .seconds(5))
    let path = "recordings/a.part"
    var lines = try text(of: path).split(separator: "\n").map(String.init)
    lines[1] = String(repeating: "x", count: lines[1].utf8.count)
    try folder.write(lines.joined(separator: "\n") + "\n", to: path)
    try await test.startAgain()
    test.receive(line: "light:8")
    test.receive(line: "moisture:9")
    test.receive(2)
    _ = try await test.recorder.finish()
    #expect(
      try await test.rows("a") == [
        "table-1 values/moisture 7", "table-1 values/light 8", "table-1 values/moisture 9",
        "table-1 temperature 2",
      ])
  }

  @Test("What a bad disk has left of a line is cut off, however long it is")
  func longRest() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    await test.recorder.stop(within: .seconds(5))
    let path = "recordings/a.part"
    let before = try text(of: path)
    try folder.write(before + String(repeating: "\u{0}", count: 300 << 10), to: path)
    try await test.startAgain()
    #expect(test.recorder.current?.bytes == before.utf8.count)
    test.receive(1)
    _ = try await test.recorder.finish()
    #expect(try await test.rows("a") == ["table-1 temperature 1"])
  }

  @Test(arguments: ["", "[12,0", "\u{0}\u{0}\u{0}"])
  func whatAPowerCutHasLeftOfANewOneIsRemoved(_ text: String) async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("b")
    _ = try await test.recorder.finish()
    try folder.write(text, to: "recordings/a.part")
    try await test.startAgain()
    #expect(test.recorder.current == nil)
    #expect(access(folder.path + "/recordings/a.part", F_OK) != 0)
    #expect(try await test.recorder.record("a").name == "a")
  }

  /// A power cut, or a disk that has become read-only, came between the last line and the file's new name.
  @Test(arguments: [true, false])
  func oneThatHasEndedDoesNotGoOnWithoutItsNewName(canBeRenamed: Bool) async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    test.receive(1)
    let ended = try await test.recorder.finish()
    let path = folder.path + "/recordings/a"
    rename(path + ".rec", path + ".part")
    if !canBeRenamed { mkdir(path + ".rec", 0o700) }
    try await test.startAgain()
    #expect(try await test.recorder.list() == [ended] && test.recorder.current == nil)
    #expect(access(path + ".part", F_OK) == (canBeRenamed ? -1 : 0))
    #expect(try await test.rows("a") == ["table-1 temperature 1"])
    if !canBeRenamed { rmdir(path + ".rec") }
    try await test.recorder.delete("a")
    #expect(try names(in: test.folder) == [])
  }

  /// A descriptor that is closed twice may be another file's the second time.
  @Test func whatIsNoFileIsClosedOnce() async throws {
    let place = folder.path
    let refusals = Task.detached {
      (0..<5000).count { _ in (try? RecordingFile(place, O_RDONLY)) == nil }
    }
    let path = try folder.write("a", to: "a")
    for _ in 0..<5000 {
      let file = try RecordingFile(path, O_RDONLY)
      #expect(try file.read(2, at: 0) == Array("a".utf8))
    }
    #expect(await refusals.value == 5000)
  }

  /// File systems in memory, and some others, keep a date of any year; ext4 none after 2446.
  @Test(
    .enabled(if: keepsAnyDate("/dev/shm", 9_300_000_000_000_000), "needs a file system in memory"),
    arguments: [9_300_000_000_000_000, -9_300_000_000_000_000])
  func aFileWithoutAnEndMayHaveAnyDate(seconds: Int) async throws {
    let folder = try TemporaryFolder(in: "/dev/shm")
    mkdir(folder.path + "/recordings", 0o700)
    let file = try folder.write("{\"started\":1764115321000}\n", to: "recordings/a.rec")
    try #require(utimensat(AT_FDCWD, file, [timespec(), timespec(tv_sec: seconds, tv_nsec: 0)], 0) == 0)
    let recordings = try await RecorderUnderTest(folder).recorder.list()
    #expect(recordings.map(\.name) == ["a"])
    #expect(
      try #require(recordings.first?.ended).description
        == (seconds > 0 ? "9999-12-31T23:59:59.000Z" : "1970-01-01T00:00:00.000Z"))
  }

  private func text(of path: String) throws -> String {
    let file = try RecordingFile(folder.path + "/" + path, O_RDONLY)
    return String(decoding: try file.read(100_000, at: 0), as: UTF8.self)
  }

  @Test func aFullFileEndsIt() async throws {
    var limits = RecordingLimits()
    limits.mostBytes = 1000
    let test = try RecorderUnderTest(folder, limits)
    _ = try await test.recorder.record("a")
    for number in 0..<200 { test.receive(number) }
    try await eventually("it ends") { await test.recorder.current == nil }
    let ended = try #require(try await test.recorder.list().first)
    #expect(ended.end == .size && ended.bytes < 1200)
    let rows = try await test.rows("a")
    #expect(
      rows.count == ended.readings && rows.count > 20 && rows.last == "table-1 temperature \(rows.count - 1)")
  }

  @Test func itEndsAfterItsTimeAlsoInALaterRun() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    test.receive(1)
    var limits = RecordingLimits()
    limits.longest = 1
    try await test.startAgain(limits)
    try await eventually("it ends") { await test.recorder.current == nil }
    let ended = try #require(try await test.recorder.list().first)
    #expect(ended.end == .time && ended.readings == 1)
    #expect(ended.ended?.milliseconds == ended.started.milliseconds + 1, "and not at the begin of that run")
  }

  /// The clock of a host without a battery may begin in 1970, until the network has told the time.
  /// Or at the time of its last shutdown, three weeks ago.
  @Test(arguments: [60_000, Timestamp.now.milliseconds - 21 * 86_400_000])
  func oneThatBeganBeforeTheClockWasSetGoesOnInTheNextRun(started: Int64) async throws {
    let test = try RecorderUnderTest(folder)
    mkdir(test.folder, 0o700)
    try folder.write("{\"started\":\(started)}\n", to: "recordings/a.part")
    try await test.startAgain()
    #expect(test.recorder.current?.name == "a")
    test.receive(1)
    let ended = try await test.recorder.finish()
    #expect(ended.end == .stop && ended.readings == 1)
    #expect((ended.ended?.milliseconds ?? 0) > 1_735_689_600_000, "and not in 1970")
  }

  @Test func aFullDiskEndsItAndWhatWasWrittenIsKept() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    test.receive(1)
    var limits = RecordingLimits()
    limits.reserve = .max / 2
    try await test.startAgain(limits)
    test.receive(2)
    try await eventually("it ends") { await test.recorder.current == nil }
    let ended = try #require(try await test.recorder.list().first)
    #expect(ended.end == .disk && ended.readings == 1 && ended.lost == 1)
    #expect(try await test.rows("a") == ["table-1 temperature 1"])
    await #expect(throws: RequestError.self) { try await test.recorder.record("b") }
    #expect(try names(in: test.folder) == ["a.rec"])
  }

  @Test func oneThatHasEndedIsDeleted() async throws {
    let test = try RecorderUnderTest(folder)
    _ = try await test.recorder.record("a")
    await #expect(throws: RequestError(.failed, "a is being recorded: stop it first")) {
      try await test.recorder.delete("a")
    }
    _ = try await test.recorder.finish()
    await #expect(throws: RequestError(.notFound, #"there is no recording "b""#)) {
      try await test.recorder.delete("b")
    }
    try await test.recorder.delete("A!")
    #expect(try await test.recorder.list() == [] && test.recorder.table("a", .rows) == nil)
    #expect(try names(in: test.folder) == [])
  }

  @Test func theOldestAreRemoved() async throws {
    let test = try RecorderUnderTest(folder)
    for _ in 0...RecordingFolder.mostRecordings {
      _ = try await test.recorder.record("a")
      _ = try await test.recorder.finish()
    }
    let kept = try await test.recorder.list()
    #expect(kept.count == RecordingFolder.mostRecordings && kept.last?.name == "a-2")
    let folder = test.folder
    try await eventually("the file is removed") {
      try names(in: folder).count == RecordingFolder.mostRecordings && !names(in: folder).contains("a.rec")
    }
  }
}

private func keepsAnyDate(_ path: String, _ seconds: Int) -> Bool {
  guard let folder = try? TemporaryFolder(in: path), let file = try? folder.write("", to: "file") else {
    return false
  }
  var status = stat()
  return utimensat(AT_FDCWD, file, [timespec(), timespec(tv_sec: seconds, tv_nsec: 0)], 0) == 0
    && stat(file, &status) == 0 && status.st_mtim.tv_sec == seconds
}
