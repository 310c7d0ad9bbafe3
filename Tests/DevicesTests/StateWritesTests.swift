import BlueZ
import EventLoop
import GATT
import Testing

@testable import Devices

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

    var alone = Bench.idle()
    _ = alone.command("a", 1)
    #expect(alone.abandon(reason: "removed") == ["a: timeout removed: the write may have taken effect"])

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
