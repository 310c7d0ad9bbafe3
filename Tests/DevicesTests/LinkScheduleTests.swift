import EventLoop
import Testing

@testable import Devices

@Suite struct LinkScheduleTests {
  private typealias Bench = LinkScheduleBench

  @Test func nobodyGivesUpALinkWhileThereAreEnough() {
    var bench = Bench(links: 3)
    for device in 0..<3 { #expect(bench.asks(device) == 0) }
    bench.pass(10_000)
    #expect(
      bench.schedule.review(at: bench.now, isBusy: { _ in false }) == [] && bench.schedule.deadline == nil)
  }

  @Test func theDeviceThatHadItsLinkForTheLongestTimeGivesItUpAfterItsStay() {
    var bench = Bench(links: 2)
    #expect(bench.asks(0) == 0)
    bench.pass(10)
    #expect(bench.asks(1) == 0)
    #expect(bench.asks(2) == nil)
    #expect(bench.review() == [] && bench.schedule.deadline == bench.start + .seconds(60))
    bench.pass(49)
    #expect(bench.review() == [])
    bench.pass(1)
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    #expect(bench.review() == [], "one is enough")
    bench.ends(0)
    #expect(bench.review() == [.connect(Bench.address(2))])
    // The link is reserved.
    #expect(bench.asks(0) == nil && bench.asks(2) == 0)
  }

  @Test func aDeviceThatIsBusyKeepsItsLinkUntilItsTaskHasEnded() {
    var bench = Bench(links: 2)
    for device in 0..<2 { _ = bench.asks(device) }
    bench.pass(60)
    #expect(bench.asks(2) == nil)
    bench.busy = [0, 1]
    #expect(bench.review() == [] && bench.schedule.deadline == nil)
    bench.busy = [0]
    #expect(bench.review() == [.giveUp(Bench.address(1))])
  }

  /// A request begins while its LEDs are restored.
  @Test func aDeviceThatBecomesBusyAsItsTurnEndsKeepsItsLink() {
    var bench = Bench(links: 2)
    for device in 0..<3 { _ = bench.asks(device) }
    bench.pass(60)
    guard case .giveUp(let device)? = bench.review().first else { Issue.record("none ends"); return }
    let (first, other) = device == Bench.address(0) ? (0, 1) : (1, 0)
    bench.busy = [first]
    bench.schedule.keepsLink(device)
    #expect(bench.review() == [.giveUp(Bench.address(other))])
    bench.busy = [0, 1]
    bench.schedule.keepsLink(Bench.address(other))
    #expect(bench.review() == [] && bench.turns.map(\.next) == [nil])
    bench.busy = [other]
    #expect(bench.review() == [.giveUp(device)])
  }

  /// While it copies a data log, say: a time that has passed would be published.
  @Test func nobodyIsToldATimeThatABusyDeviceDecides() {
    var bench = Bench(links: 1)
    for device in 0..<3 { _ = bench.asks(device) }
    bench.busy = [0]
    #expect(bench.review() == [] && bench.schedule.deadline == bench.start + .seconds(60))
    #expect(bench.turns.map(\.next) == [65, 130].map { bench.start + .seconds($0) })
    bench.pass(60)
    #expect(bench.review() == [] && bench.schedule.deadline == nil)
    #expect(bench.turns.map(\.next) == [nil, nil])
    bench.busy = []
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    #expect(bench.turns.map(\.next) == [5, 70].map { bench.now + .seconds($0) })
  }

  @Test func aLinkThatIsBeingMadeIsNotGivenUp() {
    var bench = Bench(links: 1)
    bench.schedule.occupy(Bench.address(0), on: 0, for: nil, isNew: false)
    bench.pass(1000)
    #expect(bench.asks(1) == nil)
    #expect(bench.review() == [] && bench.schedule.deadline == nil)
    bench.schedule.becameLive(Bench.address(0), at: bench.now)
    #expect(bench.review() == [] && bench.schedule.deadline == bench.now + .seconds(60))
  }

  @Test func aLastingLinkIsNeverGivenUpAndComesFirst() {
    var bench = Bench(links: 2)
    bench.lasting = [0, 9]
    for device in 0..<4 { _ = bench.asks(device) }
    #expect(bench.asks(9) == nil)
    #expect(bench.queue == [9, 2, 3])
    // It gets a link as soon as the one that has it has received its values.
    bench.pass(5)
    #expect(bench.review() == [.giveUp(Bench.address(1))])
    bench.ends(1)
    #expect(bench.review() == [.connect(Bench.address(9))])
    #expect(bench.asks(9) == 0)
    bench.pass(100_000)
    #expect(bench.review() == [] && bench.schedule.deadline == nil)
    #expect(bench.turns.map(\.next) == [nil, nil])
  }

  @Test func aDeviceForWhichACommandWaitsIsNext() {
    var bench = Bench(links: 1)
    for device in 0..<5 { _ = bench.asks(device) }
    bench.pass(5)
    #expect(bench.review() == [] && bench.queue == [1, 2, 3, 4])
    bench.urgent = [4]
    #expect(bench.asks(4) == nil)
    #expect(bench.queue == [4, 1, 2, 3])
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    bench.ends(0)
    #expect(bench.review() == [.connect(Bench.address(4))])
  }

  @Test func aVisitWaitsLikeTheOthersAndEndsByItself() {
    var bench = Bench(links: 1)
    bench.visits = [0, 1]
    for device in 0..<3 { _ = bench.asks(device) }
    bench.pass(1000)
    #expect(bench.review() == [] && bench.queue == [1, 2])
    bench.ends(0)
    #expect(bench.review() == [.connect(Bench.address(1))])
  }

  @Test func aDeviceGetsALinkOfAnyAdapterThatReceivesIt() {
    var bench = Bench(adapters: 2, links: 1)
    bench.received = [2: [1], 3: [0, 1]]
    #expect(bench.asks(0) == 0 && bench.asks(1) == 1)
    #expect(bench.asks(3) == nil && bench.asks(2) == nil)
    bench.ends(1)
    #expect(bench.review() == [.connect(Bench.address(3))])
    #expect(bench.asks(3) == 1)
    bench.pass(60)
    // Only the second adapter receives it.
    #expect(bench.review() == [.giveUp(Bench.address(3))])
  }

  @Test func aDeviceThatGoesOutOfRangeKeepsItsPlace() {
    var bench = Bench(links: 1)
    for device in 0..<4 { _ = bench.asks(device) }
    bench.ends(1)
    #expect(bench.queue == [2, 3])
    #expect(bench.asks(1) == nil && bench.queue == [1, 2, 3])
    bench.schedule.forget(Bench.address(1))
    #expect(bench.asks(1) == nil && bench.queue == [2, 3, 1])
  }

  @Test func newDevicesAlternateWithTheOthers() {
    var bench = Bench(links: 1)
    bench.new = Set(10..<20)
    _ = bench.asks(0)
    for device in Array(10..<20) + Array(1..<4) { _ = bench.asks(device) }
    #expect(bench.queue == [1, 10, 2, 11, 3, 12, 13, 14, 15, 16, 17, 18, 19])
  }

  @Test func nobodyGivesUpALinkForANewDeviceWhileOneIsBeingMade() {
    var bench = Bench(links: 2)
    bench.new = [10, 11]
    _ = bench.asks(0)
    bench.schedule.occupy(Bench.address(10), on: 0, for: nil, isNew: true)
    #expect(bench.asks(11) == nil)
    bench.pass(1000)
    #expect(bench.review() == [] && bench.schedule.deadline == nil)
    // One that was connected before does not wait for that.
    #expect(bench.asks(1) == nil)
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    bench.ends(10)
    #expect(bench.review() == [.connect(Bench.address(1))])
  }

  @Test func aFirstTurnEndsWithTheFirstValuesWhileOthersHaveNone() {
    var bench = Bench(links: 2)
    bench.first = [0, 1, 2, 3]
    for device in 0..<4 { _ = bench.asks(device) }
    #expect(bench.review() == [] && bench.schedule.deadline == bench.start + .seconds(5))
    bench.pass(1)
    bench.receivesFirstValues(1)
    #expect(bench.review() == [.giveUp(Bench.address(1))])
    bench.ends(1)
    #expect(bench.review() == [.connect(Bench.address(2))])
    #expect(bench.asks(2) == 0)
    // One that has its values waits as long as ever, behind the others.
    #expect(bench.asks(1) == nil && bench.queue == [3, 1])
    // The other one sends nothing: its turn ends too.
    bench.pass(4)
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    bench.ends(0)
    #expect(bench.review() == [.connect(Bench.address(3))])
    #expect(bench.asks(3) == 0)
    for device in [2, 3] { bench.receivesFirstValues(device) }
    #expect(bench.review() == [] && bench.schedule.deadline == bench.start + .seconds(61))
  }

  @Test func aDeviceThatSendsNothingGetsThreeTurnsBeforeOthersAndNoMore() {
    var bench = Bench(links: 1)
    bench.first = [1]
    _ = bench.asks(0)
    for _ in 0..<3 {
      #expect(bench.asks(1) == nil)
      bench.pass(5)
      #expect(bench.review() == [.giveUp(Bench.address(0))])
      bench.ends(0)
      #expect(bench.review() == [.connect(Bench.address(1))] && bench.asks(1) == 0)
      bench.ends(1)
      #expect(bench.asks(0) == 0)
    }
    #expect(bench.asks(1) == nil)
    bench.pass(59)
    #expect(bench.review() == [])
    bench.schedule.forget(Bench.address(1))
    #expect(bench.asks(1) == nil)
    #expect(bench.review() == [.giveUp(Bench.address(0))], "it was added again")
  }

  @Test func newDevicesThatCannotBeConnectedDoNotComeFirst() {
    var bench = Bench(links: 1)
    bench.new = Set(10..<20)
    bench.first = bench.new
    _ = bench.asks(0)
    for device in [1] + Array(10..<20) { _ = bench.asks(device) }
    #expect(bench.queue.last == 1)
    bench.ends(0)
    // The first to be connected to need not have waited for a link.
    bench.schedule.occupy(Bench.address(9), on: 0, for: nil, isNew: true)
    bench.ends(9)
    #expect(bench.queue.first == 1)
    // One can be connected: the others come first again.
    bench.schedule.occupy(Bench.address(13), on: 0, for: nil, isNew: true)
    bench.schedule.becameLive(Bench.address(13), at: bench.now)
    #expect(bench.queue.last == 1)
  }

  @Test func whatIsNumberedGivesUpItsLinkToWhatIsNot() {
    var bench = Bench(links: 2)
    bench.first = [2]
    for device in 0..<4 { _ = bench.asks(device) }
    bench.receivesFirstValues(0)
    bench.schedule.setNumbering(true)
    bench.pass(59)
    #expect(bench.review() == [], "both wait for a press")
    bench.schedule.wasNumbered(Bench.address(1), at: bench.now)
    #expect(bench.review() == [])
    bench.pass(5)
    #expect(bench.review() == [0, 1].map { .giveUp(Bench.address($0)) }, "one has waited for long")
    for device in [1, 0] { bench.ends(device) }
    #expect(bench.asks(1) == nil && bench.queue == [2, 3, 1])
    #expect(bench.review() == [.connect(Bench.address(2)), .connect(Bench.address(3))])
    for device in 2...3 {
      #expect(bench.asks(device) == 0)
      bench.pass(1)
    }
    // Numbered ones wait as long as others have no number, unless a command waits.
    bench.pass(1000)
    #expect(bench.review() == [])
    bench.urgent = [1]
    #expect(bench.asks(1) == nil)
    #expect(bench.review() == [.giveUp(Bench.address(2))])
    bench.schedule.setNumbering(false)
    #expect(!bench.schedule.awaitsNumber(Bench.address(3)))
  }

  @Test func whatWaitsForANumberIsToldNoTimeThatAPressDecides() {
    var bench = Bench(links: 2)
    for device in 0..<2 { _ = bench.asks(device) }
    bench.schedule.setNumbering(true)
    bench.schedule.wasNumbered(Bench.address(0), at: bench.now)
    for device in 2..<4 { _ = bench.asks(device) }
    bench.schedule.wasNumbered(Bench.address(3), at: bench.now)
    let turns = bench.turns
    #expect(turns.map(\.device) == [2, 3].map(Bench.address))
    #expect(turns[0].next == bench.now + .seconds(10) && turns[1].next == nil)
  }

  @Test func aRoundOfShortTurnsHasThemAllAgain() {
    var bench = Bench(links: 1)
    for device in 0..<3 { _ = bench.asks(device) }
    bench.receivesFirstValues(0)
    bench.pass(30)
    #expect(bench.review() == [])
    bench.schedule.beginRound(at: bench.now)
    #expect(bench.review() == [], "its link is old, its turn is not")
    bench.receivesFirstValues(0)
    #expect(bench.review() == [.giveUp(Bench.address(0))])
    bench.ends(0)
    #expect(bench.review() == [.connect(Bench.address(1))])
  }

  @Test func theQueueTellsWhenTheNextTurnsAre() {
    var bench = Bench(links: 2)
    _ = bench.asks(0)
    bench.pass(20)
    for device in 1..<6 { _ = bench.asks(device) }
    let times = bench.turns.map { bench.start.duration(to: $0.next ?? bench.start) }
    #expect(times == [65, 85, 130, 150].map(Duration.seconds))
    #expect(bench.schedule.expectedWait(on: 0) == .seconds(3 * 65))
  }
}
