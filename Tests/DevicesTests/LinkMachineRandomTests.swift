import BlueZ
import Configuration
import EventLoop
import TestSupport
import Testing

@testable import Devices

/// Invariants, checked with random inputs; a failure names the seed that repeats it.
@Suite struct LinkMachineRandomTests {
  @Test(.serialized, arguments: 0..<300)
  func randomInputsViolateNoInvariant(seed: UInt64) async {
    let violations = await offPool {
      var simulation = LinkSimulation(seed: seed)
      for _ in 0..<300 where simulation.violations.isEmpty { simulation.step() }
      if simulation.violations.isEmpty { simulation.finish() }
      return simulation.violations
    }
    #expect(violations == [], "seed \(seed)")
  }
}

/// A session, its operations in flight, and a peripheral that comes, goes and fails.
struct LinkSimulation {
  private typealias Action = LinkMachine.Action

  private var bench: LinkBench
  private var random: SplitMix64
  private let isOnDemand: Bool
  /// Every bond that is made is lost at once.
  private let losesBonds: Bool
  private var isAdapterOn = true
  private var isConnecting = false
  private var isSubscribing = false
  /// The link is being ended, or the peripheral removed.
  private var isLeaving = false
  /// The link is up.
  private var hasLink = false
  private var isOnline = false
  /// Attempts to connect since the last input from outside at this moment.
  private var attempts = 0
  private var lastAttempt: Moment?
  private(set) var violations: [String] = []
  /// The last inputs, for the report of a violation.
  private var inputs: [String] = []

  init(seed: UInt64) {
    random = SplitMix64(state: seed)
    isOnDemand = Bool.random(using: &random)
    losesBonds = Int.random(in: 0..<4, using: &random) == 0
    let mode = Configuration.PairingMode.allCases.randomElement(using: &random)!
    let interval: Duration? = Bool.random(using: &random) ? .seconds(1) : nil
    bench = LinkBench(mode, interval: interval, isOnDemand: isOnDemand)
    bench.seen.isInRange = false
    bench.seen.isReceived = false
  }

  private mutating func chance(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }

  // MARK: Inputs

  mutating func step() {
    switch Int.random(in: 0..<24, using: &random) {
    case 0..<8: finishOperation()
    case 8, 9, 10: pass(Int.random(in: 0...40, using: &random))
    case 11: run("timer") { $0.machine.deadline == nil ? [] : $0.timer() }
    case 12, 13: changeRange()
    case 14: if hasLink { loseLink() }
    case 15: if hasLink { bench.reading() }
    case 16: if hasLink { linkTrouble() }
    case 17: if chance(3) { changeAdapter() }
    case 18: run("period") { $0.setPeriod(20_000) }
    case 19: if isOnDemand { run("demanded") { $0.demanded() } }
    case 20:
      // In turns, if it is not connected on demand.
      let isOnDemand = isOnDemand
      run("end") { isOnDemand ? $0.take(.visitEnded) : $0.take(.turnEnded) }
    case 21: if chance(2) { run("handed over") { $0.take(.handedOver) } }
    case 22: if chance(3) { request() }
    default: if chance(20) { stopAndRestart() }
    }
  }

  private mutating func pass(_ seconds: Int) {
    bench.pass(seconds)
    guard let deadline = bench.machine.deadline, deadline <= bench.seen.now else { return }
    run("timer") { $0.timer() }
  }

  private mutating func changeRange() {
    let isPaired = bench.seen.isPaired
    bench.seen.isReceived = isAdapterOn && Bool.random(using: &random)
    // bluetoothd keeps the object of a bonded peripheral.
    bench.seen.isInRange = bench.seen.isReceived || isAdapterOn && isPaired
    attempts = 0
    run("range \(bench.seen.isInRange) \(bench.seen.isReceived)") { $0.take(.rangeChanged) }
  }

  private mutating func changeAdapter() {
    isAdapterOn.toggle()
    attempts = 0
    bench.seen.isInRange = false
    bench.seen.isReceived = false
    guard !isAdapterOn else { return }
    hasLink = false
    isSubscribing = false
    run("adapter off") { $0.take(.adapterWentAway) }
  }

  private mutating func loseLink() {
    hasLink = false
    isSubscribing = false
    run("disconnected") { $0.disconnected() }
  }

  private mutating func linkTrouble() {
    switch Int.random(in: 0..<3, using: &random) {
    case 0: run("unresponsive") { $0.take(.unresponsive) }
    case 1: run("services lost") { $0.take(.servicesLost) }
    default:
      let isNews = !isLeaving && !isConnecting
      run("unusable") { $0.becameUnusable("HID") }
      if isNews, !isLeaving { fail("the link of an unusable peripheral is not ended") }
    }
  }

  private mutating func request() {
    attempts = 0
    switch Int.random(in: 0..<4, using: &random) {
    case 0: run("unpair") { $0.take(.unpair) }
    case 1:
      run("pair") { $0.pair() }
      if bench.machine.state != .stopped, !bench.machine.pairing.isDue { fail("pairing is not due") }
      expectNoWait()
    default:
      run("reconnect") { $0.reconnect() }
      expectNoWait()
    }
  }

  /// After a request of a user nothing but an operation in flight delays the next attempt to connect.
  private mutating func expectNoWait() {
    switch bench.machine.state {
    case .waiting, .idle, .live, .subscribing, .awaitingServices, .connecting(isWithdrawn: true):
      fail("no new link after a request")
    case .leaving(let delay):
      if delay != .zero { fail("a wait of \(String(describing: delay)) after a request") }
    case .absent: if bench.seen.isInRange { fail("absent, though it is in range") }
    case .connecting(isWithdrawn: false), .stopped: break
    }
  }

  /// Nothing is left of a session that has ended.
  private mutating func stopAndRestart() {
    run("stop") { $0.take(.stop) }
    var stopped = bench
    var actions = stopped.reconnect() + stopped.range(true) + stopped.connected() + stopped.subscribed()
    actions += stopped.disconnectCompleted() + stopped.demanded() + stopped.timer() + stopped.disconnected()
    actions += stopped.pair() + stopped.take(.handedOver) + stopped.take(.visitEnded)
    if !actions.isEmpty || stopped.machine.deadline != nil || stopped.state != .stopped {
      fail("a session that was stopped goes on: \(actions)")
    }
    let seen = bench.seen
    bench = LinkBench(isOnDemand: isOnDemand)
    bench.seen = seen
    // The owner ends the link, and ignores what is in flight.
    (isConnecting, isSubscribing, isLeaving, hasLink) = (false, false, false, false)
    changeRange()
  }

  // MARK: Operations

  private mutating func finishOperation() {
    if isLeaving {
      (isLeaving, hasLink) = (false, false)
      run("left") { $0.disconnectCompleted() }
    } else if isConnecting {
      isConnecting = false
      let connection = connection()
      run("\(connection)") { $0.connected(connection) }
    } else if isSubscribing {
      isSubscribing = false
      let result = subscription()
      run("\(result)") { $0.subscribed(result) }
    } else if case .awaitingServices = bench.machine.state, chance(2) {
      run("services") { $0.connected() }
    }
    if bench.wait == .zero { run("timer") { $0.timer() } }
  }

  private mutating func connection() -> LinkMachine.Connection {
    if !isAdapterOn { return .failed(.unavailable) }
    if bench.pairsFirst {
      if chance(3) { return .notPaired(chance(2) ? .refused : .failed(.refused("HID"))) }
      pair()
    }
    if bench.seen.isPaired, losesBonds { return .failed(.keyMissing) }
    switch Int.random(in: 0..<12, using: &random) {
    case 0: return .failed(.gone)
    case 1: return .failed(.timedOut("x"))
    case 2: return .failed(.refused("HID"))
    case 3: return .failed(.transient("x"))
    case 4, 5: if bench.seen.isPaired { return .failed(.keyMissing) }
    case 6, 7:
      hasLink = true
      return .unsuitable(lacks: [])
    default: break
    }
    hasLink = true
    return .connected
  }

  private mutating func pair() {
    bench.seen.isPaired = true
    bench.machine.pairing.isDue = false
  }

  private mutating func subscription() -> LinkMachine.Subscription {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: .failed(.refused("x"))
    case 1: .failed(.timedOut("x"))
    case 2: .unreadable(.timedOut("x"))
    default: .subscribed
    }
  }

  // MARK: Actions

  private mutating func run(_ input: String, _ body: (inout LinkBench) -> [LinkBench.Action]) {
    inputs = inputs.suffix(11) + [input]
    for action in body(&bench) { perform(action) }
    check()
  }

  private mutating func perform(_ action: Action) {
    switch action {
    case .connect:
      if isConnecting || isSubscribing || isLeaving || hasLink {
        fail("connects, though it has or ends a link")
      }
      if !bench.seen.isInRange { fail("connects to what is not in range") }
      attempts = lastAttempt == bench.seen.now ? attempts + 1 : 1
      lastAttempt = bench.seen.now
      // One for outdated services, one for a bond that was lost, one for a request during the attempt.
      if attempts > 4 { fail("connects again and again without a wait") }
      isConnecting = true
    case .subscribe:
      if !hasLink || isSubscribing { fail("subscribes without a link, or twice") }
      isSubscribing = true
    case .disconnect:
      if !hasLink || isLeaving { fail("ends a link that there is not") }
      (isLeaving, isSubscribing) = (true, false)
    case .forget:
      if isLeaving || isConnecting { fail("removes it during another operation") }
      (isLeaving, isSubscribing) = (true, false)
      bench.seen.isPaired = false
    case .unpair: bench.seen.isPaired = false
    case .online:
      if isOnline { fail("online twice") }
      isOnline = true
    case .offline:
      if !isOnline { fail("offline twice") }
      isOnline = false
    case .log(let trouble): if bench.machine.lastError != trouble { fail("reports what it does not keep") }
    }
  }

  private mutating func check() {
    let state = bench.machine.state
    if isOnline != state.isLive { fail("online is \(isOnline)") }
    if state.isLive, bench.machine.lastError != nil { fail("an error while it is live") }
    if let wait = bench.wait, wait > .seconds(3600) { fail("waits \(wait)") }
    let isAsExpected =
      switch state {
      case .absent: !isConnecting && !isLeaving && !hasLink && bench.wait == nil
      case .waiting: !isConnecting && !isLeaving && !hasLink && bench.wait != nil
      case .connecting: isConnecting
      case .awaitingServices: hasLink && !isConnecting && bench.wait != nil
      case .subscribing: hasLink && isSubscribing
      case .live: hasLink && (bench.wait != nil || isOnDemand || bench.machine.liveness.limit == nil)
      case .leaving: isLeaving
      case .idle: isOnDemand && !isConnecting && !isLeaving && !hasLink
      case .stopped: true
      }
    if !isAsExpected {
      fail("connecting \(isConnecting), subscribing \(isSubscribing), leaving \(isLeaving), link \(hasLink)")
    }
  }

  private mutating func fail(_ violation: String) {
    violations.append("\(violation) in \(bench.machine.state) after \(inputs.joined(separator: ", "))")
  }

  // MARK: The end

  /// Nothing fails any more, and the peripheral is in range: the session becomes live.
  mutating func finish() {
    isAdapterOn = true
    (bench.seen.isInRange, bench.seen.isReceived) = (true, true)
    run("in range") { $0.take(.rangeChanged) }
    let begin = bench.seen.now
    for _ in 0..<20 where !isOnline && violations.isEmpty {
      if isLeaving {
        finishOperation()
      } else if isConnecting {
        if bench.pairsFirst { pair() }
        (isConnecting, hasLink) = (false, true)
        run("connected") { $0.connected() }
      } else if isSubscribing {
        isSubscribing = false
        run("subscribed") { $0.subscribed() }
      } else if bench.machine.deadline != nil {
        run("timer") { $0.timer() }
      } else if bench.state == .idle {
        run("demanded") { $0.demanded() }
      } else {
        return fail("nothing is to come")
      }
    }
    if !isOnline { fail("it does not become live") }
    if begin.duration(to: bench.seen.now) > .seconds(3610) { fail("it became live too late") }
  }
}
