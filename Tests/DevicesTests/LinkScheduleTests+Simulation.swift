import EventLoop
import TestSupport
import Testing

@testable import Devices

/// Whole classes of devices, second by second.
extension LinkScheduleTests {
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
