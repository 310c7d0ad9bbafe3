import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

/// Event writes whose commands are identified by their values.
@LoopActor private struct EventBench {
  var machine: EventWrites
  private var operations: [WriteOperation] = []
  /// The values of the commands that were answered.
  private let answered = Record<Int>()

  init(_ mode: Property.WriteMode = .request, isLinked: Bool = true) {
    machine = EventWrites(mode: mode)
    if isLinked { _ = machine.linkUp() }
  }

  /// The actions in short: `write 5 as 1`, `5: accepted`, `unresponsive`.
  mutating func texts(_ actions: [WriteAction]) -> [String] {
    actions.map { action in
      switch action {
      case .write(let value, let operation):
        operations.append(operation)
        return "write \(value.value) as \(operation)"
      case .outcome(let command, let outcome):
        command.reply(outcome)
        return "\(answered.elements.last!): \(outcome.word)" + (outcome.reason.map { " \($0)" } ?? "")
      case .unresponsive: return "unresponsive"
      case .read, .readBack, .applyFailed: return "\(action)"
      }
    }
  }

  mutating func command(_ value: Int, ttl: Int? = nil, at now: Moment = .now) -> [String] {
    let timeToLive = ttl.map { TimeToLive(seconds: $0, from: now) }
    let reply: @Sendable (Outcome) -> Void = { [answered] _ in answered.append(value) }
    return texts(
      machine.command(EncodedCommand(value: EncodedValue(value), timeToLive: timeToLive, reply: reply)))
  }
  /// The write with this number has ended.
  mutating func wrote(_ number: Int, _ failure: WriteFailure? = nil) -> [String] {
    texts(machine.wrote(operations[number - 1], failure.map { .notWritten($0) } ?? .notConfirmed))
  }
  mutating func linkUp() -> [String] { texts(machine.linkUp()) }
  mutating func linkDown() -> [String] { texts(machine.linkDown()) }
  mutating func expire(at now: Moment) -> [String] { texts(machine.expire(at: now)) }
  mutating func abandon() -> [String] { texts(machine.abandon(reason: "removed", defers: true)) }
}

@LoopActor @Suite struct EventWritesTests {
  private let start = Moment.now
  private let lost = "timeout the link was lost during the write: it may have taken effect"

  // MARK: In order

  @Test(arguments: [
    (Property.WriteMode.request, "accepted"), (.confirm, "accepted"), (.command, "sent"),
  ])
  func everyWriteIsCarriedOutOnceInOrder(mode: Property.WriteMode, word: String) {
    var bench = EventBench(mode)
    #expect(bench.command(1) == ["write 1 as 1"])
    #expect(bench.command(2) == [], "one in flight")
    #expect(bench.command(2) == [], "an equal value is another write")
    #expect(bench.command(3) == [])
    #expect(bench.wrote(1) == ["1: \(word)", "write 2 as 2"])
    #expect(bench.wrote(2) == ["2: \(word)", "write 2 as 3"])
    #expect(bench.wrote(3) == ["2: \(word)", "write 3 as 4"])
    #expect(bench.wrote(4) == ["3: \(word)"])
    #expect(bench.command(4) == ["write 4 as 5"])
  }

  @Test func atMost64WritesWait() {
    var bench = EventBench()
    #expect(bench.command(0) == ["write 0 as 1"])
    for value in 1...64 { #expect(bench.command(value) == []) }
    #expect(bench.command(65) == ["65: rejected 64 writes are waiting already"])
    #expect(bench.wrote(1) == ["0: accepted", "write 1 as 2"])
    #expect(bench.command(66) == [], "there is room again")
    for value in 1...63 {
      #expect(bench.wrote(value + 1).last == "write \(value + 1) as \(value + 2)")
    }
    #expect(bench.wrote(65) == ["64: accepted", "write 66 as 66"])
    #expect(bench.wrote(66) == ["66: accepted"])
  }

  @Test func atMost64WritesWaitForAnAbsentDevice() {
    var bench = EventBench(isLinked: false)
    for value in 1...64 { #expect(bench.command(value, ttl: 60) == ["\(value): pending"]) }
    #expect(bench.command(65, ttl: 60) == ["65: rejected 64 writes are waiting already"])
  }

  // MARK: Failures

  @Test func failedWriteIsNotRepeatedAndTheNextFollows() {
    var bench = EventBench()
    _ = bench.command(1)
    _ = bench.command(2)
    #expect(bench.wrote(1, .failed(reason: "no")) == ["1: failed the write failed: no", "write 2 as 2"])
    #expect(bench.wrote(2) == ["2: accepted"])
  }

  @Test func unansweredWriteEndsTheLink() {
    var bench = EventBench()
    _ = bench.command(1)
    _ = bench.command(2)
    _ = bench.command(3, ttl: 60)
    #expect(
      bench.wrote(1, .timeout) == [
        "1: timeout the write was not answered in time", "unresponsive", "2: failed the device went offline",
        "3: pending",
      ])
    #expect(bench.linkDown() == [])
    #expect(bench.linkUp() == ["write 3 as 2"])
  }

  @Test(arguments: [true, false])
  func linkLossDuringAWriteIsATimeoutWithoutRetry(isReportedByTheWrite: Bool) {
    var bench = EventBench()
    _ = bench.command(1, ttl: 60)
    _ = bench.command(2)
    _ = bench.command(3, ttl: 60)
    let actions = isReportedByTheWrite ? bench.wrote(1, .linkLost) : bench.linkDown()
    #expect(actions == ["1: \(lost)", "2: failed the device went offline", "3: pending"])
    #expect(bench.linkDown() == [], "harmless when repeated")
    #expect(bench.wrote(1) == [], "a result of the previous link")
    #expect(bench.linkUp() == ["write 3 as 2"])
    #expect(bench.wrote(1) == [])
    #expect(bench.wrote(2) == ["3: accepted"])
    #expect(bench.wrote(2) == [], "a result counts once")
  }

  // MARK: Absence

  @Test func commandWithoutTTLFailsWhileDeviceIsAbsent() {
    var bench = EventBench(isLinked: false)
    #expect(
      bench.command(1) == [
        "1: failed the device is offline; with a time limit (ttl, in seconds) the command would wait"
      ])
    #expect(bench.linkUp() == [])
  }

  @Test func commandWithTTLWaitsForTheDevice() {
    var bench = EventBench(isLinked: false)
    #expect(bench.command(1, ttl: 60) == ["1: pending"])
    #expect(bench.command(2, ttl: 60) == ["2: pending"], "no event supersedes another")
    #expect(bench.linkUp() == ["write 1 as 1"])
    #expect(bench.wrote(1) == ["1: accepted", "write 2 as 2"])
  }

  @Test func pendingIsReportedOnce() {
    var bench = EventBench(isLinked: false)
    _ = bench.command(1, ttl: 60)
    _ = bench.command(2, ttl: 60)
    #expect(bench.linkUp() == ["write 1 as 1"])
    #expect(bench.command(3, ttl: 60) == [])
    #expect(bench.linkDown() == ["1: \(lost)", "3: pending"])
    #expect(bench.linkUp() == ["write 2 as 2"])
    #expect(bench.linkDown() == ["2: \(lost)"])
    #expect(bench.linkUp() == ["write 3 as 3"])
    #expect(bench.wrote(3) == ["3: accepted"])
  }

  @Test func commandExpiresOnceAndOthersRemain() {
    var bench = EventBench(isLinked: false)
    #expect(bench.machine.deadline == nil)
    _ = bench.command(1, ttl: 60, at: start)
    _ = bench.command(2, ttl: 10, at: start)
    _ = bench.command(3, ttl: 10, at: start)
    #expect(bench.machine.deadline == start + .seconds(10))
    #expect(bench.expire(at: start + .seconds(9)) == [])
    #expect(
      bench.expire(at: start + .seconds(10)) == [
        "2: timeout not applied within 10 s", "3: timeout not applied within 10 s",
      ])
    #expect(bench.machine.deadline == start + .seconds(60))
    #expect(bench.expire(at: start + .seconds(11)) == [])
    #expect(bench.linkUp() == ["write 1 as 1"])
    #expect(bench.machine.deadline == nil, "a write in flight does not expire")
    #expect(bench.expire(at: start + .seconds(61)) == [])
    #expect(bench.wrote(1) == ["1: accepted"])
  }

  @Test func writeBehindAnotherExpiresToo() {
    var bench = EventBench()
    _ = bench.command(1)
    _ = bench.command(2, ttl: 10, at: start)
    #expect(
      bench.expire(at: start + .seconds(10)) == ["2: timeout not applied within 10 s"])
    #expect(bench.wrote(1) == ["1: accepted"])
  }

  // MARK: Abandoning

  @Test func abandoningAnswersEveryWaitingCommand() {
    var bench = EventBench()
    _ = bench.command(1)
    _ = bench.command(2)
    _ = bench.command(3, ttl: 60)
    #expect(
      bench.abandon() == [
        "1: timeout removed: the write may have taken effect", "2: failed removed", "3: failed removed",
      ])
    #expect(bench.abandon() == [])
    #expect(bench.wrote(1) == [])
    #expect(bench.machine.deadline == nil)
    #expect(bench.linkUp() == [])
  }
}
