import Glibc
import TestSupport
import Testing

/// Random faults, one after the other. `make soak` runs it longer and with more micro:bits.
///
/// `FAULT_SEED` repeats a run, apart from the times of the programs; with `FAULT_FROM` and `FAULT_TO`, only these of its
/// faults: `scripts/soak` searches for the fewest that fail.
@Suite struct FaultTests {
  private static let seconds = environmentNumber("FAULT_SECONDS") ?? 5
  private static let count = environmentNumber("FAULT_DEVICES") ?? 10
  private static let seed = environmentNumber("FAULT_SEED") ?? Int.random(in: 1...1_000_000)
  private static let first = environmentNumber("FAULT_FROM") ?? 1
  private static let last = environmentNumber("FAULT_TO") ?? Int.max

  @Test("Every fault heals, no reading is lost, and nothing is left behind in the gateway or on the bus")
  func random() async throws {
    print("FaultTests: seed \(Self.seed), \(Self.count) micro:bits for \(Self.seconds) s")
    var plan = Plan(isLong: true, devices: Self.count, period: 100)
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"properties":["temperature"]}"#
    try await withFixture(plan) { fixture in
      var faults = RandomFaults(seed: Self.seed, devices: Self.count, first: Self.first)
      var hasFailed = true
      defer { if hasFailed { print("FaultTests: failed at fault \(faults.number)") } }
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.reading(id) { $0.sequence > 2 } }
      var times: [Fault: [Duration]] = [:]
      func heal() async throws {
        let fault = faults.next()
        times[fault.kind, default: []].append(try await fixture.healed(fault))
      }
      // Once each: memory that the gateway keeps is there from then on.
      for _ in 0..<min(Fault.allCases.count, Self.last - Self.first + 1) { try await heal() }
      var sequences = Sequences()
      try await sequences.complete(ids, fixture)
      var samples = [try await fixture.sample()]
      let end = ContinuousClock.now + .seconds(Self.seconds)
      repeat {
        let next = min(end, ContinuousClock.now + .seconds(max(10, Self.seconds / 20)))
        while ContinuousClock.now < next, faults.number < Self.last { try await heal() }
        try await sequences.complete(ids, fixture)
        samples.append(try await fixture.sample())
      } while ContinuousClock.now < end && faults.number < Self.last
      hasFailed = false

      let readings = sequences.received.values.map(\.count).reduce(0, +)
      for fault in Fault.allCases { print("FaultTests: \(fault), \(summary(times[fault] ?? []))") }
      for sample in samples { print("FaultTests: \(sample)") }
      print("FaultTests: \(readings) readings, \(times.values.map(\.count).reduce(0, +)) faults")
      #expect(samples.last?.descriptors ?? 0 <= samples[0].descriptors)
      #expect(samples.last?.matchRules == samples[0].matchRules)
      #expect(samples.last?.connections == samples[0].connections)
      // What a longer outage of the broker needs is kept.
      let half = samples.suffix((samples.count + 1) / 2)
      #expect((half.map(\.kilobytes).min() ?? 0) < samples[0].kilobytes + 2048)
    }
  }
}

private func summary(_ times: [Duration]) -> String {
  let sorted = times.map { $0 / .seconds(1) }.sorted()
  func text(_ time: Double) -> String { "\((time * 100).rounded() / 100) s" }
  guard let last = sorted.last else { return "never" }
  return "healed \(sorted.count) times, median \(text(sorted[sorted.count / 2])), longest \(text(last))"
}

private enum Fault: CaseIterable {
  case linkLost, allLinksLost, microbitReset, outOfRange, silent, serviceMissing
  case subscriptionDropped, subscriptionRefused, subscriptionUnanswered
  case discoveryRefused, adapterOff, adapterUnplugged
  case bluetoothdKilled, bluetoothdEnded, bluetoothdHung
  case brokerKilled, brokerHung
}

/// The faults of a seed: each kind once, then any.
private struct RandomFaults {
  struct Next {
    let number: Int
    let kind: Fault
    let index: Int
    let pause: Duration
  }

  private var random: SplitMix64
  private var firstRound: [Fault]
  private let devices: Int
  private(set) var number = 0

  /// - Parameter first: the faults before it are left out.
  init(seed: Int, devices: Int, first: Int) {
    random = SplitMix64(state: UInt64(seed))
    firstRound = Fault.allCases.shuffled(using: &random)
    self.devices = devices
    while number < first - 1 { _ = next() }
  }

  mutating func next() -> Next {
    number += 1
    return Next(
      number: number, kind: firstRound.popLast() ?? Fault.allCases.randomElement(using: &random) ?? .linkLost,
      index: Int.random(in: 0..<devices, using: &random),
      pause: .milliseconds(Int.random(in: 100...2000, using: &random)))
  }
}

/// The numbers of the readings that have arrived, by device.
private struct Sequences {
  private(set) var received: [String: Set<Int>] = [:]
  private var mark = 0

  /// Waits until no reading is missing before the last one.
  mutating func complete(_ ids: [String], _ fixture: Fixture) async throws {
    let end = try fixture.observer.mark
    for id in ids {
      var numbers = received[id, default: []]
      numbers.formUnion(try fixture.readings(id, after: mark).map(\.sequence))
      while let missing = numbers.firstMissing {
        let reading = try await fixture.reading(id, after: mark) { $0.sequence == missing }
        numbers.insert(reading.sequence)
      }
      received[id] = numbers
    }
    mark = end
  }
}

extension Set<Int> {
  /// The first number from 1 on that is not among them, if there is a greater one.
  fileprivate var firstMissing: Int? {
    guard let last = self.max(), last != count else { return nil }
    return (1..<last).first { !contains($0) }
  }
}

/// What the gateway uses.
private struct Sample: CustomStringConvertible {
  let kilobytes: Int
  let descriptors: Int
  let matchRules: Int
  let connections: Int

  var description: String {
    "\(kilobytes) KiB of private memory, \(descriptors) descriptors, \(matchRules) match rules, \(connections) bus names"
  }
}

extension Fixture {
  /// Injects the fault, ends it, and waits until all micro:bits are connected and their readings arrive.
  ///
  /// - Returns: how long that took from the end of the fault.
  fileprivate func healed(_ fault: RandomFaults.Next) async throws -> Duration {
    let mark = try observer.mark
    do {
      // Links that are lost come back; the readings until then are those of before.
      let lost = try await inject(fault.kind, fault.index, fault.pause)
      let (start, end) = (ContinuousClock.now, try observer.mark)
      for index in lost { try await online(try await id(index), after: mark) }
      var last = start
      for index in 0..<plan.devices {
        let reading = try await reading(try await id(index), after: end) { !$0.isReplayed }
        last = max(last, reading.message.arrived)
      }
      return start.duration(to: last)
    } catch {
      throw Failure("fault \(fault.number), \(fault.kind) of \(fault.index) for \(fault.pause): \(error)")
    }
  }

  /// - Returns: the micro:bits that have lost their link.
  private func inject(_ fault: Fault, _ index: Int, _ pause: Duration) async throws -> Range<Int> {
    let (one, all) = (index..<index + 1, 0..<plan.devices)
    func during(_ on: String, _ off: String) async throws {
      try await simulator.control(on)
      try await Task.sleep(for: pause)
      try await simulator.control(off)
    }
    func subscription(_ fault: String) async throws {
      try await simulator.control("subscription", index, fault)
      try await simulator.control("disconnect", index)
    }
    switch fault {
    case .linkLost: try await simulator.control("disconnect", index)
    case .microbitReset: try await simulator.control("reset", index)
    case .allLinksLost:
      for index in all { try await simulator.control("disconnect", index) }
      return all
    case .outOfRange:
      try await simulator.control("vanish", index)
      try await Task.sleep(for: pause)
      try await simulator.waitUntil(index, "its link is lost") { !$0.isConnected }
      try await simulator.control("return", index)
    case .silent:
      try await during(
        #"{"op":"silent","i":\#(index),"on":true}"#, #"{"op":"silent","i":\#(index),"on":false}"#)
      return 0..<0
    case .serviceMissing:
      let service = #""i":\#(index),"service":"e95d6100-251d-470a-a062-fa1922dfa9a8""#
      try await during(#"{"op":"serve",\#(service),"on":false}"#, #"{"op":"serve",\#(service),"on":true}"#)
      return 0..<0
    case .subscriptionDropped: try await subscription(#""fault":"drop""#)
    case .subscriptionRefused: try await subscription(#""fault":"error","code":14"#)
    case .subscriptionUnanswered: try await subscription(#""fault":"silence","ms":500"#)
    case .discoveryRefused:
      try await simulator.control(#"{"op":"scan","on":false}"#)
      try await simulator.control("disconnect", index)
      try await Task.sleep(for: pause)
      try await simulator.control(#"{"op":"scan","on":true}"#)
    case .adapterOff:
      try await during(#"{"op":"power","on":false}"#, #"{"op":"power","on":true}"#)
      return all
    case .adapterUnplugged:
      try await during(#"{"op":"plug","on":false}"#, #"{"op":"plug","on":true}"#)
      return all
    case .bluetoothdKilled, .bluetoothdEnded:
      let how = fault == .bluetoothdKilled ? "kill" : "term"
      try await simulator.control(#"{"op":"restart","how":"\#(how)","ms":100}"#)
      return all
    case .bluetoothdHung:
      try simulator.process.signal(SIGSTOP)
      try await Task.sleep(for: pause)
      try simulator.process.signal(SIGCONT)
      return 0..<0
    case .brokerKilled:
      try await killBroker()
      try await Task.sleep(for: pause)
      try await restartBroker()
      return 0..<0
    case .brokerHung:
      broker.freeze(true)
      try await Task.sleep(for: pause)
      broker.freeze(false)
      return 0..<0
    }
    return one
  }

  /// Without the files of the spool, which are open while something waits for the broker.
  fileprivate func sample() async throws -> Sample {
    let descriptors = try gateway.descriptors.filter { !$0.contains(".spool") || $0.hasSuffix(" (deleted)") }
    let statistics = try await bus.statistics()
    return Sample(
      kilobytes: try anonymousKilobytes, descriptors: descriptors.count,
      matchRules: statistics["MatchRules"] ?? 0, connections: statistics["ActiveConnections"] ?? 0)
  }
}
