import BlueZ
import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

@LoopActor @Suite struct RoundedWriteTests {
  /// Whatever the outcome, the bytes are those that were asked for: nothing is written on the next link.
  @Test(arguments: [
    (505.0, 510.0, "adjusted"), (510.0, 510.0, "applied"), (21.5, 21.500000000000004, "applied"),
    (0.1, 0.10000000149011612, "applied"),
  ])
  func numberThatIsRoundedToBeEncodedIsAdjusted(requested: Double, held: Double, word: String) throws {
    var machine = StateWrites()
    let actual = EncodedValue(.number(held), [51])
    func operation(_ actions: [WriteAction]) throws -> WriteOperation {
      switch try #require(actions.first) {
      case .read(let operation), .write(_, let operation): return operation
      case let other: throw Failure("\(other)")
      }
    }
    _ = machine.read(try operation(machine.linkUp()), .success(EncodedValue(.number(0), [0])))
    let command = EncodedCommand(value: EncodedValue(.number(requested), [51])) { _ in }
    let ended = machine.wrote(try operation(machine.command(command)), .thenRead(.success(actual)))
    let outcomes = ended.compactMap { action -> Outcome? in
      if case .outcome(_, let outcome) = action { outcome } else { nil }
    }
    #expect(outcomes.map(\.word) == [word])
    #expect(outcomes.first?.actual == .number(held))
    #expect(machine.desired.effective?.value == .number(requested))
    _ = machine.linkDown()
    let next = machine.read(try operation(machine.linkUp()), .success(actual))
    #expect(!next.contains { if case .write = $0 { true } else { false } })
  }
}

/// The writes of a state whose commands are identified by a word, and whose operations are answered in order.
@LoopActor struct Bench {
  var machine: StateWrites
  enum Started {
    case write(WriteOperation)
    case read(WriteOperation)
  }
  private(set) var started: [Started] = []
  private var override: DesiredValue.Override?
  /// The words of the commands that were answered.
  private let answered: Record<String>

  /// - Parameter waiting: the value of the command `w` of an earlier run.
  init(
    desired: Int? = nil, waiting: Int? = nil, mode: Property.WriteMode = .confirm, isReadable: Bool = true
  ) {
    let answered = Record<String>()
    self.answered = answered
    machine = StateWrites(
      DesiredValue(
        override: desired.map { DesiredValue.Override(value: EncodedValue($0), source: .request) },
        waiting: waiting.map { DesiredValue.Waiting(value: EncodedValue($0), sender: nil) }),
      mode: mode, isReadable: isReadable
    ) { _ in answered.append("w") }
  }

  /// The actions in short: `read`, `write 5`, `desired 5` if a command has set that, `a: applied 5`, `publish 5`.
  mutating func run(_ actions: [WriteAction]) -> [String] {
    var texts: [String] = []
    if let new = machine.desired.override, new != override, new.source == .command {
      texts = ["desired \(new.value.value)"]
    }
    override = machine.desired.override
    texts += actions.flatMap { action -> [String] in
      switch action {
      case .write(let value, let operation):
        started.append(.write(operation))
        return ["write \(value.value)"]
      case .read(let operation):
        started.append(.read(operation))
        return ["read"]
      case .outcome(let command, let outcome):
        let detail = outcome.actual.map { " \($0)" } ?? outcome.reason.map { " \($0)" } ?? ""
        command.reply(outcome)
        return ["\(answered.elements.last!): \(outcome.word)\(detail)"]
      case .readBack(let value): return ["publish \(value.value)"]
      case .applyFailed(let value, let failure): return ["not restored \(value.value) \(failure)"]
      case .unresponsive: return ["unresponsive"]
      }
    }
    return texts
  }

  mutating func linkUp() -> [String] { run(machine.linkUp()) }
  mutating func linkDown() -> [String] { run(machine.linkDown()) }
  mutating func command(_ tag: String, _ value: Int) -> [String] {
    command(tag, value, nil)
  }
  mutating func command(_ tag: String, _ value: Int, ttl: Int, at now: Moment) -> [String] {
    command(tag, value, TimeToLive(seconds: ttl, from: now))
  }
  mutating func commandForThisLink(_ tag: String, _ value: Int) -> [String] {
    command(tag, value, nil, waitsForLink: false)
  }
  private mutating func command(
    _ tag: String, _ value: Int, _ timeToLive: TimeToLive?, waitsForLink: Bool = true
  ) -> [String] {
    let reply: @Sendable (Outcome) -> Void = { [answered] _ in answered.append(tag) }
    return run(
      machine.command(
        EncodedCommand(
          value: EncodedValue(value), timeToLive: timeToLive, waitsForLink: waitsForLink, reply: reply)))
  }
  mutating func expire(at now: Moment) -> [String] { run(machine.expire(at: now)) }
  /// A request sets the value, or another gateway has set it, whose value does not supersede commands.
  mutating func apply(_ value: Int?, supersedesCommands: Bool = true) -> [String] {
    let value = value.map { EncodedValue($0) }
    let change: DesiredChange =
      supersedesCommands ? .requested(value) : .copied(value)
    return run(machine.change(change)).filter { !$0.hasPrefix("desired") }
  }
  mutating func abandon(reason: String) -> [String] {
    run(machine.abandon(reason: reason, defers: false))
  }
  /// Another gateway takes the device over, and publishes a desired value or none.
  mutating func handOver(desired: Int? = nil, mayHaveCommands: Bool = true) -> [String] {
    let value = desired.map { EncodedValue($0) }
    let log = run(machine.handOver(value, mayHaveCommands: mayHaveCommands))
    return log + (desired.map { apply($0, supersedesCommands: false) } ?? [])
  }
  /// The device answers the read, or accepts the write, and holds this value.
  mutating func holds(_ value: Int) -> [String] { answer(started.last!, value) }
  mutating func answer(_ operation: Started, _ value: Int) -> [String] {
    switch operation {
    case .write(let operation): run(machine.wrote(operation, .thenRead(.success(EncodedValue(value)))))
    case .read(let operation): run(machine.read(operation, .success(EncodedValue(value))))
    }
  }
  mutating func notWritten(_ failure: WriteFailure) -> [String] { notWritten(started.last!, failure) }
  mutating func notWritten(_ operation: Started, _ failure: WriteFailure) -> [String] {
    guard case .write(let operation) = operation else { return ["nothing was to be written"] }
    return run(machine.wrote(operation, .notWritten(failure)))
  }
  /// The device accepts the write, which is not read back.
  mutating func accepted() -> [String] {
    guard case .write(let operation) = started.last! else { return ["nothing was to be written"] }
    return run(machine.wrote(operation, .notConfirmed))
  }
  /// Neither the read nor the read-back is answered.
  mutating func readFailed(_ failure: WriteFailure) -> [String] {
    switch started.last! {
    case .write(let operation): run(machine.wrote(operation, .thenRead(.failure(failure))))
    case .read(let operation): run(machine.read(operation, .failure(failure)))
    }
  }

  /// A bench whose link is up and whose device holds `actual`.
  static func idle(actual: Int = 1000, desired: Int? = nil) -> Bench {
    var bench = Bench(desired: desired)
    _ = bench.linkUp()
    _ = bench.holds(actual)
    return bench
  }
}

@LoopActor @Suite struct StateWritesTests {
  @Test func commandIsWrittenReadBackAndAnswered() {
    var bench = Bench.idle()
    #expect(bench.command("a", 2000) == ["write 2000"])
    #expect(bench.holds(2000) == ["desired 2000", "a: applied 2000", "publish 2000"])
    #expect(bench.machine.desired.effective == 2000)
  }

  @Test func differentReadBackIsReportedAsAdjusted() {
    var bench = Bench.idle()
    _ = bench.command("a", 2000)
    #expect(bench.holds(2048) == ["desired 2000", "a: adjusted 2048", "publish 2048"])
    #expect(bench.machine.desired.effective == 2000)
  }

  @Test(arguments: [(Property.WriteMode.request, "accepted"), (.command, "sent")])
  func unreadablePropertyIsAnsweredAfterTheWrite(mode: Property.WriteMode, word: String) {
    var bench = Bench(desired: 7, mode: mode, isReadable: false)
    #expect(bench.linkUp() == ["write 7"], "it cannot be read")
    #expect(bench.accepted() == [])
    #expect(bench.command("a", 2000) == ["write 2000"])
    #expect(bench.command("b", 3000) == [])
    #expect(bench.accepted() == ["desired 2000", "a: \(word)", "write 3000"])
    #expect(bench.linkDown() == ["b: pending"], "a state is written again on the next link")
    #expect(bench.linkUp() == ["write 3000"])
    #expect(bench.accepted() == ["desired 3000", "b: \(word)"])
    #expect(bench.linkDown() == [])
    #expect(bench.linkUp() == ["write 3000"])
  }

  @Test func stateThatHoldsTheDesiredValueIsNotWritten() {
    var bench = Bench(desired: 7, mode: .request)
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(7) == ["publish 7"])
  }

  @Test func newestWaitingCommandIsWritten() {
    var bench = Bench.idle()
    #expect(bench.command("a", 1) == ["write 1"])
    #expect(bench.command("b", 2) == [])
    #expect(bench.command("c", 3) == ["b: superseded"])
    #expect(bench.command("d", 4) == ["c: superseded"])
    #expect(bench.holds(1) == ["desired 1", "a: applied 1", "publish 1", "write 4"])
    #expect(bench.holds(4) == ["desired 4", "d: applied 4", "publish 4"])
    #expect(bench.command("e", 5) == ["write 5"])
  }

  @Test func refusedWriteFailsTheCommand() {
    var bench = Bench.idle()
    _ = bench.command("a", 5)
    #expect(bench.notWritten(.failed(reason: "no")) == ["a: failed the write failed: no"])
    #expect(bench.machine.desired.effective == nil)
    #expect(bench.command("b", 6) == ["write 6"])
  }

  @Test func failedReadBackFailsTheCommand() {
    var bench = Bench.idle(desired: 1000)
    _ = bench.command("a", 5)
    _ = bench.command("b", 6)
    #expect(bench.readFailed(.failed(reason: "gone")) == ["a: failed the read-back failed: gone", "write 6"])
    #expect(bench.machine.desired.effective == 1000)
  }

  /// A device that does not answer is not called again on this link; waiting commands wait for the next link.
  @Test(arguments: ["write", "read-back"])
  func missingAnswerEndsTheCommandAndTheLink(step: String) {
    var bench = Bench.idle(desired: 1000)
    _ = bench.command("a", 5)
    _ = bench.command("b", 6)
    let actions = step == "write" ? bench.notWritten(.timeout) : bench.readFailed(.timeout)
    #expect(actions == ["a: timeout the \(step) was not answered in time", "unresponsive", "b: pending"])
    #expect(bench.command("c", 7) == ["b: superseded", "c: pending"])
    #expect(bench.linkDown() == [])
    _ = bench.linkUp()
    #expect(bench.holds(5) == ["publish 5", "write 7"])
  }

  /// A step of a sequence is for this link alone.
  @Test func stepInFlightMayHaveTakenEffectWhenTheLinkEnds() {
    var bench = Bench.idle(desired: 1000)
    _ = bench.commandForThisLink("a", 5)
    #expect(bench.linkDown() == ["a: timeout the link was lost during the write: it may have taken effect"])
  }

  @Test func failedReadBackRestoresTheDesiredValue() {
    var bench = Bench.idle(desired: 1000)
    _ = bench.command("a", 5)
    #expect(
      bench.readFailed(.failed(reason: "busy")) == ["a: failed the read-back failed: busy", "write 1000"])
    // Only once: another read-back would fail for the same reason.
    #expect(
      bench.readFailed(.failed(reason: "busy")) == ["not restored 1000 busy"])
  }

  @Test func previousValueIsDesiredAgainAfterAFailure() {
    var bench = Bench.idle(desired: 1000)
    _ = bench.command("a", 5)
    _ = bench.holds(5)
    _ = bench.command("b", 6)
    _ = bench.notWritten(.timeout)
    #expect(bench.machine.desired.effective == 5)
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
  }

  // MARK: Start of a link

  @Test func newLinkPublishesTheActualValue() {
    var bench = Bench()
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1000) == ["publish 1000"])
  }

  @Test func newLinkAppliesADifferentDesiredValue() {
    var bench = Bench(desired: 5000)
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5000"])
    #expect(bench.holds(5000) == ["publish 5000"])
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.holds(5000) == ["publish 5000"])
  }

  @Test func roundedValueIsWrittenOncePerLink() {
    var bench = Bench(desired: 3)
    _ = bench.linkUp()
    _ = bench.holds(20)
    #expect(bench.holds(5) == ["publish 5"])
  }

  @Test func failedFirstReadStillAppliesTheDesiredValue() {
    var bench = Bench(desired: 5000)
    _ = bench.linkUp()
    #expect(bench.readFailed(.failed(reason: "no")) == ["write 5000"])
    var other = Bench()
    _ = other.linkUp()
    #expect(other.readFailed(.failed(reason: "no")) == [])
    #expect(other.command("a", 1) == ["write 1"])
  }

  @Test func failedRestoreIsReportedAndRepeatedOnTheNextLink() {
    var bench = Bench(desired: 5000)
    _ = bench.linkUp()
    _ = bench.holds(1000)
    #expect(bench.notWritten(.timeout) == ["not restored 5000 no answer in time", "unresponsive"])
    #expect(bench.machine.desired.effective == 5000)
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5000"])
    #expect(bench.readFailed(.failed(reason: "x")) == ["not restored 5000 x"])
  }

  @Test func commandThatFailsOnANewLinkKeepsTheDesiredValue() {
    var bench = Bench(desired: 5000)
    _ = bench.command("a", 7)
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 7"])
    #expect(bench.notWritten(.failed(reason: "no")) == ["a: failed the write failed: no", "write 5000"])
  }

  @Test func commandAppliedOnANewLinkReplacesTheDesiredValue() {
    var bench = Bench(desired: 5000)
    _ = bench.command("a", 7)
    _ = bench.linkUp()
    _ = bench.holds(1000)
    #expect(bench.holds(7) == ["desired 7", "a: applied 7", "publish 7"])
  }

  // MARK: Absence

  @Test func latestCommandOfAnAbsentDeviceIsAppliedOnItsReturn() {
    var bench = Bench()
    #expect(bench.command("a", 1) == ["a: pending"])
    #expect(bench.command("b", 2) == ["a: superseded", "b: pending"])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1000) == ["publish 1000", "write 2"])
    #expect(bench.holds(2) == ["desired 2", "b: applied 2", "publish 2"])
  }

  @Test func keptCommandIsWrittenEvenIfTheDeviceHoldsItsValue() {
    var bench = Bench()
    _ = bench.command("a", 1000)
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 1000"])
  }

  @Test func aCommandDuringTheFirstReadIsNotPending() {
    var bench = Bench()
    _ = bench.linkUp()
    #expect(bench.command("a", 1) == [])
    #expect(bench.command("b", 2) == ["a: superseded"])
    #expect(bench.linkDown() == ["b: pending"])
  }

  @Test func waitingCommandIsSupersededDuringTheFirstRead() {
    var bench = Bench()
    _ = bench.command("a", 1)
    _ = bench.linkUp()
    #expect(bench.command("b", 2) == ["a: superseded"])
    #expect(bench.holds(1000) == ["publish 1000", "write 2"])
  }

  @Test func linkLossDuringAWriteKeepsTheCommand() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    #expect(bench.linkDown() == ["a: pending"])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1000) == ["publish 1000", "write 1"])
    #expect(bench.linkDown() == [], "already reported")
    _ = bench.linkUp()
    _ = bench.holds(1000)
    #expect(bench.holds(1) == ["desired 1", "a: applied 1", "publish 1"])
  }

  @Test func linkLossInFlightKeepsTheNewerWaitingCommand() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    _ = bench.command("b", 2)
    #expect(bench.linkDown() == ["a: superseded", "b: pending"])
    #expect(bench.command("c", 3) == ["b: superseded", "c: pending"])
  }

  @Test func operationFailedByLinkLossKeepsTheCommand() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    #expect(bench.notWritten(.linkLost) == ["a: pending"])
    #expect(bench.linkDown() == [])
    _ = bench.linkUp()
    #expect(bench.readFailed(.linkLost) == [])
    #expect(bench.linkUp() == ["read"])
    _ = bench.holds(1000)
    #expect(bench.readFailed(.linkLost) == [])
    _ = bench.linkUp()
    #expect(bench.holds(2) == ["publish 2", "write 1"])
  }

  /// A device that restarts when it is written to: its value is confirmed on the next link.
  @Test func aCommandOutlivesTheRemovalOfItsCharacteristic() {
    #expect(WriteFailure(.characteristicRemoved) == .linkLost)
    #expect(WriteFailure(.refused("no")) == .failed(reason: "\(CentralError.refused("no"))"))
  }

  @Test func valueThatTheDeviceHoldsAfterALinkLossIsNotWrittenAgain() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    #expect(bench.linkDown() == ["a: pending"])
    _ = bench.linkUp()
    #expect(bench.holds(1) == ["desired 1", "a: applied 1", "publish 1"])
  }

  @Test func commandFailsAfterFiveLinksThatItEnds() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    #expect(bench.linkDown() == ["a: pending"])
    for _ in 2..<5 {
      _ = bench.linkUp()
      #expect(bench.holds(1000) == ["publish 1000", "write 1"])
      #expect(bench.linkDown() == [])
    }
    _ = bench.linkUp()
    _ = bench.holds(1000)
    #expect(bench.linkDown() == ["a: failed the link has ended at each of 5 writes"])
  }

  @Test func restoreInterruptedByALinkLossIsRepeatedOnTheNextLink() {
    var bench = Bench(desired: 5)
    _ = bench.linkUp()
    _ = bench.holds(1000)
    #expect(bench.linkDown() == [])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
    #expect(bench.notWritten(.linkLost) == [])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
  }

  // MARK: Late and repeated inputs

  @Test func repeatedLinkInputsChangeNothing() {
    var bench = Bench()
    #expect(bench.linkDown() == [])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.linkUp() == [])
    #expect(bench.holds(1) == ["publish 1"])
    #expect(bench.linkUp() == [])
    #expect(bench.linkDown() == [])
    #expect(bench.linkDown() == [])
  }

  @Test func resultsOfAnEarlierLinkAreIgnored() throws {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    let write = try #require(bench.started.last)
    _ = bench.linkDown()
    #expect(bench.answer(write, 1) == [])
    _ = bench.linkUp()
    #expect(bench.notWritten(write, .timeout) == [])
    #expect(bench.answer(write, 1) == [])
    let read = try #require(bench.started.last)
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.answer(read, 77) == [])
    #expect(bench.holds(1000) == ["publish 1000", "write 1"])
    #expect(bench.answer(write, 1) == [], "a result of the previous link")
  }

  @Test func repeatedResultIsIgnored() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    _ = bench.holds(1)
    #expect(bench.holds(1) == [])
  }

  // MARK: Abandoning

  @Test func abandoningAnswersEveryCommand() {
    var bench = Bench.idle()
    _ = bench.command("a", 1)
    _ = bench.command("b", 2)
    #expect(
      bench.abandon(reason: "stopped") == ["a: superseded", "b: failed stopped"])
    #expect(bench.holds(1) == [])
    #expect(bench.abandon(reason: "stopped") == [])

    var overridden = Bench.idle()
    _ = overridden.command("a", 1)
    _ = overridden.apply(2)
    #expect(overridden.abandon(reason: "stopped") == ["a: superseded"])

    var absent = Bench()
    _ = absent.command("c", 3)
    #expect(absent.abandon(reason: "removed") == ["c: failed removed"])
  }

  // MARK: Restarts

  @Test func commandOfAnEarlierRunIsCarriedOutOnTheNextLink() {
    var bench = Bench(desired: 5, waiting: 6)
    #expect(bench.linkDown() == [], "it is pending already")
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(1000) == ["publish 1000", "write 6"])
    #expect(bench.holds(6) == ["desired 6", "w: applied 6", "publish 6"])
  }

  @Test func failedCommandOfAnEarlierRunLeavesTheDesiredValue() {
    var bench = Bench(desired: 5, waiting: 6)
    _ = bench.linkUp()
    _ = bench.holds(5)
    #expect(bench.notWritten(.failed(reason: "x")) == ["w: failed the write failed: x"])
    #expect(bench.machine.desired.effective == 5)
  }

  /// Other gateways know its value at most.
  @Test func commandOfAnEarlierRunFailsWithATakeover() {
    let reason = "another gateway has taken the device over"
    var bench = Bench(waiting: 6)
    #expect(bench.handOver(desired: 7) == ["w: failed \(reason)"])
    bench = Bench(waiting: 6)
    #expect(bench.handOver(desired: 6) == ["w: failed \(reason), and applies the value"])
  }
}
