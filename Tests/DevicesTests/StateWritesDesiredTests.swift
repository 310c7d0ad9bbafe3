import EventLoop
import GATT
import Testing

@testable import Devices

/// Deadlines, changes of the desired value by requests and the configuration, and other gateways.
@LoopActor @Suite struct StateWritesDesiredTests {
  let start = Moment.now

  // MARK: Time to live

  @Test func waitingCommandExpiresOnce() {
    var bench = Bench()
    #expect(bench.machine.deadline == nil)
    #expect(bench.command("a", 5, ttl: 60, at: start) == ["a: pending"])
    #expect(bench.machine.deadline == start + .seconds(60))
    #expect(bench.expire(at: start + .seconds(59)) == [])
    #expect(bench.expire(at: start + .seconds(60)) == ["a: timeout not applied within 60 s"])
    #expect(bench.machine.deadline == nil)
    #expect(bench.expire(at: start + .seconds(61)) == [])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000"])
  }

  @Test func commandAppliedInTimeNeverExpires() {
    var bench = Bench()
    _ = bench.command("a", 5, ttl: 60, at: start)
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
    #expect(bench.machine.deadline == nil, "it no longer waits")
    #expect(bench.expire(at: start + .seconds(61)) == [])
    #expect(bench.holds(5) == ["desired 5", "a: applied 5", "publish 5"])
  }

  @Test func deadlineIsThatOfTheWaitingCommand() {
    var bench = Bench()
    _ = bench.command("a", 5, ttl: 60, at: start)
    #expect(bench.command("b", 6) == ["a: superseded", "b: pending"])
    #expect(bench.machine.deadline == nil)
    #expect(bench.expire(at: start + .seconds(100)) == [])
    #expect(bench.command("c", 7, ttl: 1, at: start) == ["b: superseded", "c: pending"])
    #expect(bench.machine.deadline == start + .seconds(1))
  }

  @Test func deadlineAppliesAgainAfterLinkLoss() {
    var bench = Bench.idle()
    #expect(bench.command("a", 5, ttl: 2, at: start) == ["write 5"])
    #expect(bench.expire(at: start + .seconds(3)) == [], "in flight")
    #expect(bench.linkDown() == ["a: pending"])
    #expect(
      bench.expire(at: start + .seconds(3)) == [
        "a: timeout the link was lost during the write: it may have taken effect"
      ])
  }

  @Test func waitingCommandIsStoredAgainAfterALaterOneHasExpired() {
    var bench = Bench()
    #expect(bench.command("a", 5) == ["a: pending"])
    let stored = bench.machine.desired
    #expect(stored.waiting != nil)
    _ = bench.linkUp()
    _ = bench.holds(1000)
    _ = bench.command("b", 6, ttl: 1, at: start)
    #expect(bench.expire(at: start + .seconds(1)) == ["b: timeout not applied within 1 s"])
    #expect(bench.machine.desired.waiting == nil)
    _ = bench.linkDown()
    #expect(bench.machine.desired == stored)
  }

  @Test func onlyTheQueuedCommandExpires() {
    var bench = Bench.idle()
    _ = bench.command("a", 5, ttl: 1, at: start)
    _ = bench.command("b", 6, ttl: 1, at: start)
    #expect(bench.expire(at: start + .seconds(1)) == ["b: timeout not applied within 1 s"])
    #expect(bench.holds(5) == ["desired 5", "a: applied 5", "publish 5"])
  }

  @Test func expiredCommandKeepsTheDesiredValue() {
    var bench = Bench(desired: 5000)
    _ = bench.command("a", 5, ttl: 1, at: start)
    _ = bench.expire(at: start + .seconds(1))
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5000"])
  }

  // MARK: Changes of the desired value

  @Test(arguments: [true, false])
  func desiredValueIsAppliedAtOnceOnALink(supersedesCommands: Bool) {
    var bench = Bench.idle()
    #expect(bench.apply(5, supersedesCommands: supersedesCommands) == ["write 5"])
    #expect(bench.machine.desired.effective == 5)
    #expect(bench.holds(5) == ["publish 5"])
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
  }

  @Test(arguments: [true, false])
  func desiredValueIsWrittenOnTheNextLink(supersedesCommands: Bool) {
    var bench = Bench(desired: 7)
    #expect(bench.apply(5, supersedesCommands: supersedesCommands) == [])
    _ = bench.linkUp()
    #expect(bench.holds(7) == ["publish 7", "write 5"])
  }

  @Test(arguments: [true, false])
  func withoutADesiredValueTheDeviceKeepsItsOwn(supersedesCommands: Bool) {
    var bench = Bench.idle(actual: 5, desired: 5)
    #expect(bench.apply(nil, supersedesCommands: supersedesCommands) == [])
    #expect(bench.machine.desired.effective == nil)
    _ = bench.linkDown()
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000"])
  }

  @Test func newDesiredValueFollowsARestoreInFlight() {
    var bench = Bench.idle(desired: 1000)
    _ = bench.apply(5)
    #expect(bench.apply(6) == [])
    #expect(bench.holds(5) == ["publish 5", "write 6"])
    #expect(bench.apply(7) == [])
    #expect(bench.notWritten(.failed(reason: "no")) == ["write 7"], "the failure of 6 is not reported")
    #expect(bench.notWritten(.timeout) == ["not restored 7 no answer in time", "unresponsive"])
  }

  @Test func desiredValueSetDuringTheFirstReadWaitsForIt() {
    var bench = Bench()
    _ = bench.linkUp()
    #expect(bench.apply(5) == [])
    #expect(bench.holds(5) == ["publish 5"], "the device already holds it")
    var other = Bench(desired: 5)
    _ = other.linkUp()
    #expect(other.apply(nil) == [])
    #expect(other.holds(1000) == ["publish 1000"])
  }

  @Test func requestSupersedesTheWaitingCommand() {
    var bench = Bench()
    _ = bench.command("a", 5)
    #expect(bench.apply(6) == ["a: superseded"])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 6"])
  }

  @Test func configurationRanksBelowTheWaitingCommand() {
    var bench = Bench()
    _ = bench.command("a", 5)
    #expect(bench.apply(6, supersedesCommands: false) == [])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 5"])
    #expect(bench.holds(5) == ["desired 5", "a: applied 5", "publish 5"])
    #expect(bench.machine.desired.effective == 5)
  }

  @Test func requestOverridesTheCommandInFlight() {
    var bench = Bench.idle()
    _ = bench.command("a", 5)
    #expect(bench.apply(6) == [])
    #expect(bench.holds(5) == ["a: applied 5", "publish 5", "write 6"])
    #expect(bench.machine.desired.effective == 6)
    #expect(bench.holds(6) == ["publish 6"])
  }

  @Test func overriddenCommandIsSupersededOnLinkLoss() {
    var bench = Bench.idle()
    _ = bench.command("a", 5)
    _ = bench.apply(6)
    #expect(bench.linkDown() == ["a: superseded"])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 6"])
  }

  @Test func aCommandInFlightRanksAboveTheConfiguration() {
    var bench = Bench.idle()
    _ = bench.command("a", 5)
    #expect(bench.apply(6, supersedesCommands: false) == [])
    #expect(bench.holds(5) == ["desired 5", "a: applied 5", "publish 5"])
    _ = bench.command("b", 7)
    #expect(bench.apply(6, supersedesCommands: false) == [])
    #expect(bench.notWritten(.failed(reason: "no")) == ["b: failed the write failed: no", "write 6"])
  }

  @Test func commandAfterARequestIsApplied() {
    var bench = Bench.idle()
    _ = bench.apply(6)
    #expect(bench.command("a", 5) == [])
    #expect(bench.holds(6) == ["publish 6", "write 5"])
    #expect(bench.holds(5) == ["desired 5", "a: applied 5", "publish 5"])
  }

  @Test func configuredValueRanksBelowAnOverride() {
    var bench = Bench.idle()
    #expect(bench.run(bench.machine.change(.configured(6))) == ["write 6"])
    #expect(bench.holds(6) == ["publish 6"])
    #expect(bench.run(bench.machine.change(.configured(6))) == [], "nothing has changed")
    _ = bench.command("a", 5)
    _ = bench.holds(5)
    #expect(bench.run(bench.machine.change(.configured(7))) == [])
    #expect(bench.machine.desired.effective == 5)
    #expect(bench.apply(nil) == ["write 7"], "the request takes the override back")
    #expect(bench.machine.desired.isConfigured)
  }

  @Test func commandThatOutlivesTheRunIsKeptUntilItEnds() {
    func waiting(_ bench: Bench) -> EncodedValue? { bench.machine.desired.waiting?.value }
    var bench = Bench(desired: 5)
    _ = bench.command("a", 6, ttl: 60, at: start)
    #expect(waiting(bench) == nil, "it has a time to live")
    _ = bench.command("b", 7)
    #expect(waiting(bench) == 7 && bench.machine.desired.effective == 5)
    _ = bench.linkUp()
    _ = bench.holds(5)
    #expect(waiting(bench) == 7, "in flight")
    _ = bench.notWritten(.failed(reason: "no"))
    #expect(waiting(bench) == nil && bench.machine.desired.effective == 5)
    _ = bench.linkDown()
    _ = bench.command("c", 8)
    #expect(bench.apply(9) == ["c: superseded"])
    #expect(bench.machine.desired.newest == DesiredValue.Override(value: 9, source: .request))
    _ = bench.command("d", 8)
    _ = bench.run(bench.machine.abandon(reason: "stopped", defers: true))
    #expect(waiting(bench) == 8, "the next run carries it out")
  }

  // MARK: Other gateways

  @Test func waitingCommandIsLeftToTheOtherGateway() {
    var bench = Bench(desired: 5)
    _ = bench.command("a", 6)
    #expect(bench.handOver(desired: 6) == [], "its value is desired there")
    #expect(bench.machine.desired.effective == 6)
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 6"])
    #expect(bench.holds(6) == ["publish 6"])
  }

  @Test func commandWithTTLWaitsUntilAppliedElsewhere() {
    func handedOver() -> Bench {
      var bench = Bench(desired: 5)
      #expect(bench.command("a", 6, ttl: 60, at: start) == ["a: pending"])
      #expect(bench.handOver(desired: 7) == [])
      #expect(bench.machine.desired.effective == 7)
      return bench
    }
    var bench = handedOver()
    #expect(bench.handOver(desired: 6, mayHaveCommands: false) == [], "its value is desired there")
    #expect(bench.machine.deadline == nil)
    bench = handedOver()
    #expect(bench.handOver(mayHaveCommands: false) == [], "what is desired there is not known")
    #expect(bench.handOver(desired: 7, mayHaveCommands: false) == [])
    #expect(bench.expire(at: start + .seconds(60)) == ["a: timeout not applied within 60 s"])
    bench = handedOver()
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 6"], "this gateway has the device again")
  }

  /// None was set before, another one, or that one, which is withdrawn.
  @Test(arguments: [nil, 5, 8])
  func commandWithTTLDoesNotUndoWhatWasSetElsewhereLater(before: Int?) {
    let later = start + .seconds(1)
    var bench = Bench(desired: before)
    _ = bench.command("a", 6, ttl: 60, at: start)
    #expect(bench.handOver(desired: .some(before), lastChange: later) == [], "another property was set")
    let there: Int? = before == 8 ? nil : 8
    #expect(
      bench.handOver(desired: .some(there), lastChange: later, mayHaveCommands: false) == ["a: superseded"])
    _ = bench.linkUp()
    let value = there.map { ["write \($0)"] } ?? []
    #expect(bench.holds(1000) == ["publish 1000"] + value, "this gateway has the device again")
  }

  @Test func commandWithTTLIsSupersededByWhatWasSetWhileNothingWasReceived() {
    var bench = Bench(desired: 5)
    _ = bench.command("a", 6, ttl: 60, at: start)
    #expect(bench.handOver(desired: 8, lastChange: start + .seconds(1)) == ["a: superseded"])
  }

  /// A gateway that has not received yet what is desired, as it comes online.
  @Test func commandWithTTLIsNotSupersededByAnOlderValue() {
    var bench = Bench(desired: 5)
    _ = bench.command("a", 6, ttl: 60, at: start)
    #expect(bench.handOver(desired: 7) == [])
    #expect(bench.handOver(desired: 4, lastChange: start + .seconds(-1)) == [])
    _ = bench.linkUp()
    #expect(bench.holds(1000) == ["publish 1000", "write 6"])
  }

  @Test(arguments: [6, 7, nil])
  func waitingCommandFailsIfOtherGatewayCannotHaveIt(desired: Int?) {
    for ttl in [nil, 60] {
      var bench = Bench(desired: 5)
      _ = ttl.map { bench.command("a", 6, ttl: $0, at: start) } ?? bench.command("a", 6)
      #expect(
        bench.handOver(desired: desired, mayHaveCommands: false) == [
          "a: failed another gateway has taken the device over"
            + (desired == 6 ? ", and applies the value" : "")
        ])
      #expect(bench.machine.deadline == nil)
    }
  }

  @Test(arguments: [7, nil])
  func waitingCommandFailsIfOtherGatewayDoesNotHaveIt(desired: Int?) {
    var bench = Bench(desired: 5)
    #expect(bench.command("a", 6) == ["a: pending"])
    let reason = "another gateway has taken the device over"
    #expect(bench.handOver(desired: desired.map(Optional.some)) == ["a: failed \(reason)"])
    #expect(bench.linkUp() == ["read"])
    #expect(bench.holds(6) == ["publish 6", "write \(desired ?? 5)"])
  }

  @Test func desiredValueStaysIfTheOtherGatewayPublishesNone() {
    var bench = Bench(desired: 5)
    #expect(bench.handOver() == [])
    #expect(bench.machine.desired.effective == 5)
  }

  @Test func handoverFailsTheCommandInFlight() throws {
    var bench = Bench.idle()
    _ = bench.command("a", 5)
    _ = bench.command("b", 6)
    #expect(
      bench.handOver(desired: 7) == [
        "a: failed another gateway has taken the device over",
        "b: failed another gateway has taken the device over",
      ])
    #expect(bench.handOver(desired: 7) == [])
    #expect(bench.holds(6) == [], "a result of the previous link")
    #expect(bench.machine.desired.effective == 7)
    #expect(bench.linkDown() == [])
    #expect(bench.linkUp() == ["read"])
  }
}
