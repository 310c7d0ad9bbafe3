import Configuration
import EventLoop
import GATT
import TestSupport
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
    #expect(bench.schedule.turns(at: bench.now).map(\.next) == [nil, nil])
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

  @Test("A class of 25 with 7 links has all first values within a minute", .serialized, arguments: 0..<30)
  func aClassBegins(seed: UInt64) async {
    let (last, violations) = await offPool {
      var simulation = LinkScheduleSimulation(devices: 25, links: 7, SplitMix64(state: seed))
      simulation.begin()
      let last = simulation.firstValues(within: 600) ?? .max
      return (last, simulation.violations)
    }
    #expect(violations == [])
    #expect(last <= 60)
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
    let turns = bench.schedule.turns(at: bench.now)
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

  @Test("A class of 25 with 7 links is numbered soon", .serialized, arguments: 0..<30)
  func aClassIsNumbered(seed: UInt64) async {
    let (last, violations) = await offPool {
      var simulation = LinkScheduleSimulation(devices: 25, links: 7, SplitMix64(state: seed))
      let last = simulation.numbers(within: 600) ?? .max
      return (last, simulation.violations)
    }
    #expect(violations == [])
    #expect(last <= 90)
  }

  @Test func theQueueTellsWhenTheNextTurnsAre() {
    var bench = Bench(links: 2)
    _ = bench.asks(0)
    bench.pass(20)
    for device in 1..<6 { _ = bench.asks(device) }
    let times = bench.schedule.turns(at: bench.now).map { bench.start.duration(to: $0.next ?? bench.start) }
    #expect(times == [65, 85, 130, 150].map(Duration.seconds))
    #expect(bench.schedule.expectedWait(on: 0) == .seconds(3 * 65))
  }

  @Test(.serialized, arguments: 0..<30)
  func everyDeviceGetsItsTurnInTime(seed: UInt64) async {
    let violations = await offPool {
      var random = SplitMix64(state: seed)
      let links = Int.random(in: 1...7, using: &random)
      let count = Int.random(in: links + 1...40, using: &random)
      var simulation = LinkScheduleSimulation(devices: count, links: links, random)
      simulation.hasArrivals = seed % 2 == 1
      simulation.run(hours: 3)
      return simulation.violations
    }
    #expect(violations == [])
  }
}

/// The machine with devices that are numbers, each with what it needs.
struct LinkScheduleBench {
  let start = Moment.now
  var now: Moment
  var schedule: LinkSchedule
  var lasting: Set<Int> = []
  var visits: Set<Int> = []
  var urgent: Set<Int> = []
  var new: Set<Int> = []
  var busy: Set<Int> = []
  /// Those whose values have not come yet in this run.
  var first: Set<Int> = []
  /// By which adapters a device is received; those that are missing here by all.
  var received: [Int: [Int]] = [:]
  private let adapters: Int

  init(adapters: Int = 1, links: Int, stay: Int = 60) {
    now = start
    self.adapters = adapters
    schedule = LinkSchedule(adapters: adapters, links: links, stay: .seconds(stay))
  }

  static func address(_ device: Int) -> BluetoothAddress { BluetoothAddress(truncating: UInt64(device)) }

  mutating func pass(_ seconds: Int) { now = now + .seconds(seconds) }

  func need(_ device: Int) -> Configuration.ConnectMode? {
    lasting.contains(device) ? .always : visits.contains(device) ? .onDemand : nil
  }

  /// The device needs a link: it gets it at once, and is live, or waits.
  /// - Returns: the adapter; nil: it waits.
  mutating func asks(_ device: Int) -> Int? {
    let address = Self.address(device)
    if !first.contains(device) { schedule.receivedFirstValues(address) }
    let received = received[device] ?? Array(0..<adapters)
    let free = schedule.free(for: address)
    guard let adapter = received.first(where: { free[$0] }) else {
      _ = schedule.wait(
        address, for: need(device), on: received, isUrgent: urgent.contains(device),
        isNew: new.contains(device))
      return nil
    }
    schedule.occupy(address, on: adapter, for: need(device), isNew: new.contains(device))
    schedule.becameLive(address, at: now)
    return adapter
  }

  /// What its first turn is for has come.
  mutating func receivesFirstValues(_ device: Int) {
    first.remove(device)
    schedule.receivedFirstValues(Self.address(device))
  }

  /// Its link has ended, or it is out of range.
  mutating func ends(_ device: Int) { schedule.leave(Self.address(device)) }

  mutating func review() -> [LinkSchedule.Action] {
    let busy = Set(busy.map(Self.address))
    return schedule.review(at: now) { busy.contains($0) }
  }

  var queue: [Int] { schedule.turns(at: now).map { Int($0.device.value) } }
}

/// Devices of which all but two links' worth share the links, second by second: connecting takes up to 3 s, the end of a
/// link 3 s, and a device advertises a second later. The turns are reviewed when something has happened, and at the deadline.
private struct LinkScheduleSimulation {
  private enum State {
    case absent, idle, waiting(since: Int), connecting(until: Int), live, leaving(until: Int)
  }

  var hasArrivals = false
  private var connectsOneByOne = false
  /// When the last attempt to connect ends.
  private var adapterIsFree = 0
  private var bench: LinkScheduleBench
  private var states: [State]
  private let links: Int
  private var random: SplitMix64
  private var served: Set<Int> = []
  /// Whether something has happened since the last review.
  private var isReviewDue = true
  private(set) var violations: [String] = []

  private static let stay = 60
  private static let connect = 3
  private static let end = 3

  init(devices: Int, links: Int, _ random: SplitMix64) {
    self.links = links
    self.random = random
    bench = LinkScheduleBench(links: links, stay: Self.stay)
    states = Array(repeating: .idle, count: devices)
    // One of them is to be connected always, if that leaves links to share.
    if links > 1 { bench.lasting = [0] }
    bench.urgent = []
  }

  private var longestWait: Int {
    let shared = links - bench.lasting.count
    let rounds = (states.count - bench.lasting.count + shared - 1) / shared
    return rounds * (Self.stay + Self.connect + Self.end + 2)
  }

  mutating func run(hours: Int) {
    for second in 0..<hours * 3600 where violations.isEmpty {
      step(second)
      if hasArrivals { comeAndGo() }
    }
    if !hasArrivals, served.count < states.count { fail("\(served.count) of \(states.count) were served") }
  }

  private mutating func fail(_ violation: String) { violations.append(violation) }

  private mutating func step(_ second: Int) {
    bench.now = bench.start + .seconds(second)
    for device in states.indices { advance(device, second) }
    guard isReviewDue || bench.schedule.deadline.map({ $0 <= bench.now }) ?? false else { return }
    isReviewDue = false
    for action in bench.review() {
      switch action {
      case .giveUp(let address):
        let device = Int(address.value)
        if case .live = states[device] {} else { fail("\(device) has no link to give up") }
        if bench.lasting.contains(device) { fail("\(device) is to be connected always") }
        states[device] = .leaving(until: second + Self.end)
      case .connect(let address): ask(Int(address.value), second)
      }
    }
    let linked = states.count(where: isLinked)
    if linked > links { fail("\(linked) links of \(links)") }
  }

  private func isLinked(_ state: State) -> Bool {
    switch state {
    case .connecting, .live, .leaving: true
    case .absent, .idle, .waiting: false
    }
  }

  private mutating func advance(_ device: Int, _ second: Int) {
    switch states[device] {
    case .absent: break
    case .live: if bench.lasting.contains(device) { served.insert(device) }
    case .idle: ask(device, second)
    case .waiting(let since):
      if second - since > longestWait {
        fail("\(device) of \(states.count) waits for one of \(links) links")
      }
    case .connecting(let until):
      guard second >= until else { return }
      served.insert(device)
      bench.schedule.becameLive(LinkScheduleBench.address(device), at: bench.now)
      states[device] = .live
      isReviewDue = true
    case .leaving(let until):
      guard second >= until else { return }
      bench.ends(device)
      states[device] = .idle
      isReviewDue = true
    }
  }

  /// Nobody has had a turn yet, and all share the links. The adapter connects to one at a time.
  mutating func begin() {
    bench.lasting = []
    bench.first = Set(states.indices)
    connectsOneByOne = true
  }

  /// The second in which the last device has sent its first value, which each does up to 3 s after the begin of its link.
  mutating func firstValues(within limit: Int) -> Int? {
    var due: [Int: Int] = [:]
    for second in 0..<limit {
      step(second)
      for device in bench.first {
        guard case .live = states[device] else {
          due[device] = nil
          continue
        }
        due[device] = due[device] ?? second + Int.random(in: 0...3, using: &random)
        guard due[device] == second else { continue }
        bench.receivesFirstValues(device)
        isReviewDue = true
      }
      if bench.first.isEmpty { return second }
    }
    return nil
  }

  /// The second in which the last device gets its number: each 2 s after the begin of its link.
  mutating func numbers(within limit: Int) -> Int? {
    begin()
    bench.first = []
    bench.schedule.setNumbering(true)
    var due: [Int: Int] = [:]
    var rest = Set(states.indices)
    for second in 0..<limit {
      step(second)
      for device in rest {
        guard case .live = states[device] else { continue }
        due[device] = due[device] ?? second + 2
        guard due[device] == second else { continue }
        rest.remove(device)
        bench.schedule.wasNumbered(LinkScheduleBench.address(device), at: bench.now)
        isReviewDue = true
      }
      if rest.isEmpty { return second }
    }
    return nil
  }

  private mutating func ask(_ device: Int, _ second: Int) {
    let address = LinkScheduleBench.address(device)
    isReviewDue = true
    if !bench.first.contains(device) { bench.schedule.receivedFirstValues(address) }
    guard bench.schedule.free(for: address)[0] else {
      _ = bench.schedule.wait(address, for: bench.need(device), on: [0], isUrgent: false, isNew: false)
      if case .waiting = states[device] { return }
      return states[device] = .waiting(since: second)
    }
    bench.schedule.occupy(address, on: 0, for: bench.need(device), isNew: false)
    let begin = connectsOneByOne ? max(second, adapterIsFree) : second
    adapterIsFree = begin + Int.random(in: 0...Self.connect, using: &random)
    states[device] = .connecting(until: adapterIsFree)
  }

  /// A device goes out of range or comes back, once in a while.
  private mutating func comeAndGo() {
    guard Int.random(in: 0..<20, using: &random) == 0 else { return }
    let device = Int.random(in: states.indices, using: &random)
    switch states[device] {
    case .absent: states[device] = .idle
    case .idle, .waiting, .connecting, .live, .leaving:
      bench.ends(device)
      states[device] = .absent
      isReviewDue = true
    }
  }
}
