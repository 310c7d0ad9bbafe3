import BlueZ
import Configuration
import EventLoop

@testable import Devices

/// A machine whose waits have no random share, and what holds when it gets an input.
struct LinkBench {
  typealias Action = LinkMachine.Action

  var machine: LinkMachine
  var seen = LinkMachine.Snapshot(now: .now)

  init(
    _ pairing: Configuration.PairingMode = .ask, isPaired: Bool = false, interval: Duration? = .seconds(1),
    isOnDemand: Bool = false
  ) {
    machine = LinkMachine(
      now: seen.now, interval: interval, isOnDemand: isOnDemand, pairing: pairing,
      servicesLimit: .seconds(3), spread: 0.0)
    seen.isPaired = isPaired
  }

  var state: SessionState { machine.state.published }
  /// Until the machine does something by itself.
  var wait: Duration? { machine.deadline.map { seen.now.duration(to: $0) } }
  var pairsFirst: Bool { machine.pairing.pairsFirst && !seen.isPaired }

  // MARK: Inputs

  mutating func take(_ input: LinkMachine.Input) -> [Action] { machine.handle(input, seen) }

  mutating func pass(_ seconds: Int) { seen.now = seen.now + .seconds(seconds) }

  /// The timer that the machine has asked for.
  mutating func timer() -> [Action] {
    seen.now = max(seen.now, machine.deadline ?? seen.now)
    return take(.deadline)
  }

  mutating func range(_ isInRange: Bool) -> [Action] {
    seen.isInRange = isInRange
    return take(.rangeChanged)
  }

  mutating func received(_ isReceived: Bool) -> [Action] {
    seen.isReceived = isReceived
    return take(.rangeChanged)
  }

  mutating func adapterWentAway() -> [Action] {
    seen.isInRange = false
    return take(.adapterWentAway)
  }

  mutating func connected(_ connection: LinkMachine.Connection = .connected) -> [Action] {
    take(.connected(connection))
  }
  mutating func failed(_ error: CentralError) -> [Action] { connected(.failed(error)) }
  mutating func subscribed(_ result: LinkMachine.Subscription = .subscribed) -> [Action] {
    take(.subscribed(result))
  }
  mutating func disconnected(because reason: String? = nil) -> [Action] {
    take(.disconnected(reason: reason))
  }
  mutating func disconnectCompleted() -> [Action] { take(.disconnectCompleted) }
  mutating func reading() { machine.liveness.readingReceived(at: seen.now, isPeriodic: true) }
  mutating func setPeriod(_ milliseconds: Int) -> [Action] { take(.period(.milliseconds(milliseconds))) }
  mutating func becameUnusable(_ reason: String) -> [Action] { take(.unusable(reason)) }
  mutating func demanded() -> [Action] { take(.demanded) }
  mutating func reconnect() -> [Action] { take(.reconnect) }
  mutating func pair() -> [Action] { take(.pair(.ask)) }

  // MARK: In each state

  func connecting() -> LinkBench {
    var bench = self
    _ = bench.range(true)
    return bench
  }

  func subscribing() -> LinkBench {
    var bench = connecting()
    _ = bench.connected()
    return bench
  }

  func live() -> LinkBench {
    var bench = subscribing()
    _ = bench.subscribed()
    return bench
  }

  func waiting() -> LinkBench {
    var bench = subscribing()
    _ = bench.disconnected()
    return bench
  }

  func leaving() -> LinkBench {
    var bench = live()
    _ = bench.take(.unresponsive)
    return bench
  }

  func awaitingServices() -> LinkBench {
    var bench = connecting()
    _ = bench.connected(.unsuitable(lacks: []))
    return bench
  }

  func idle() -> LinkBench {
    var bench = live()
    _ = bench.take(.visitEnded)
    _ = bench.disconnectCompleted()
    return bench
  }

  func stopped() -> LinkBench {
    var bench = self
    _ = bench.take(.stop)
    return bench
  }
}
