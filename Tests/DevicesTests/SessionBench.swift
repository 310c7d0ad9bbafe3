import BlueZ
import Configuration
import EventLoop

@testable import Devices

/// A session whose waits have no random share, and what holds when it gets an input.
struct SessionBench {
  typealias Action = PeripheralSession.Action

  var session: PeripheralSession
  var seen = PeripheralSession.Snapshot(now: .now)

  init(
    _ pairing: Configuration.PairingMode = .ask, isPaired: Bool = false, interval: Duration? = .seconds(1),
    isOnDemand: Bool = false
  ) {
    session = PeripheralSession(
      now: seen.now, interval: interval, isOnDemand: isOnDemand, pairing: pairing, spread: 0.0)
    seen.isPaired = isPaired
  }

  var state: SessionState { session.state.published }
  /// Until the session does something by itself.
  var wait: Duration? { session.deadline.map { seen.now.duration(to: $0) } }
  var pairsFirst: Bool { session.pairing.pairsFirst && !seen.isPaired }

  // MARK: Inputs

  mutating func pass(_ seconds: Int) { seen.now = seen.now + .seconds(seconds) }

  /// The timer that the session has asked for.
  mutating func timer() -> [Action] {
    seen.now = max(seen.now, session.deadline ?? seen.now)
    return session.timer(seen)
  }

  mutating func range(_ isInRange: Bool) -> [Action] {
    seen.isInRange = isInRange
    return session.seen(seen)
  }

  mutating func received(_ isReceived: Bool) -> [Action] {
    seen.isReceived = isReceived
    return session.seen(seen)
  }

  mutating func adapterWentAway() -> [Action] {
    seen.isInRange = false
    return session.adapterWentAway()
  }

  mutating func connected(_ connection: PeripheralSession.Connection = .connected) -> [Action] {
    session.connected(connection, seen)
  }
  mutating func failed(_ error: CentralError) -> [Action] { connected(.failed(error)) }
  mutating func subscribed(_ result: PeripheralSession.Subscription = .subscribed) -> [Action] {
    session.subscribed(result, seen)
  }
  mutating func disconnected() -> [Action] { session.disconnected(seen) }
  mutating func disconnectCompleted() -> [Action] { session.disconnectCompleted(seen) }
  mutating func reading() { session.liveness.readingReceived(at: seen.now, isPeriodic: true) }
  mutating func setPeriod(_ milliseconds: Int) -> [Action] { session.setPeriod(milliseconds, seen) }
  mutating func becameUnusable(_ reason: String) -> [Action] { session.becameUnusable(reason, seen) }
  mutating func demanded() -> [Action] { session.demanded(seen) }
  mutating func reconnect() -> [Action] { session.reconnect(seen) }
  mutating func pair() -> [Action] { session.pair(.ask, seen) }

  // MARK: In each state

  func connecting() -> SessionBench {
    var bench = self
    _ = bench.range(true)
    return bench
  }

  func subscribing() -> SessionBench {
    var bench = connecting()
    _ = bench.connected()
    return bench
  }

  func live() -> SessionBench {
    var bench = subscribing()
    _ = bench.subscribed()
    return bench
  }

  func waiting() -> SessionBench {
    var bench = subscribing()
    _ = bench.disconnected()
    return bench
  }

  func leaving() -> SessionBench {
    var bench = live()
    _ = bench.session.unresponsive()
    return bench
  }

  func awaitingServices() -> SessionBench {
    var bench = connecting()
    _ = bench.connected(.unsuitable)
    return bench
  }

  func idle() -> SessionBench {
    var bench = live()
    _ = bench.session.visitEnded()
    _ = bench.disconnectCompleted()
    return bench
  }

  func stopped() -> SessionBench {
    var bench = self
    _ = bench.session.stop()
    return bench
  }
}
