import Configuration
import EventLoop

/// When to connect to one peripheral, whether its link is in use, when to end it, and when to try again.
///
/// A pure machine: each input returns the actions to run, in order. After each input the caller sets a timer for the
/// ``deadline``. An input that means nothing in the present state has no effect.
struct LinkMachine: Sendable {
  private(set) var state = State.absent
  /// Why there is no link, or why there was none; nil once the link is live.
  var lastError: Trouble?
  var pairing: PairingPlan
  /// The readings on the link, or on the last one: it is told of each.
  var liveness: Liveness
  var failures = LinkFailures()
  let isOnDemand: Bool
  var backOff: BackOff
  /// The back-off for a peripheral that cannot be used: it is tried less and less often.
  var longBackOff: BackOff
  /// The back-off for a bonded peripheral that is not received and is probably switched off.
  var absenceBackOff: BackOff

  /// How long the peripheral may take to add services after it was connected to.
  let servicesLimit: Duration
  /// How long a bonded peripheral may take to be received before it is connected to anyway.
  private static let firstAdvertisement = Duration.seconds(10)

  /// A peripheral that refuses to pair ends the link when bluetoothd asks it to, after the first read. A bad link seldom ends
  /// so often at this point.
  private static let mostEnded = 5

  /// - Parameters:
  ///   - interval: between two readings, as long as no other is known: a link on which none comes is ended; nil: the
  ///     link alone counts.
  ///   - isOnDemand: whether each link is ended when there is nothing more to do.
  ///   - servicesLimit: how long the peripheral may take to add services.
  ///   - spread: the random share of each wait.
  init(
    now: Moment, interval: Duration?, isOnDemand: Bool, pairing: Configuration.PairingMode,
    servicesLimit: Duration, spread: Double = 0.3
  ) {
    liveness = Liveness(now: now, period: isOnDemand ? nil : interval)
    self.isOnDemand = isOnDemand
    self.servicesLimit = servicesLimit
    self.pairing = PairingPlan(pairing)
    backOff = BackOff(first: .seconds(1), longest: .seconds(60), spread: spread)
    longBackOff = BackOff(first: .seconds(60), longest: .seconds(3600), spread: spread)
    absenceBackOff = BackOff(first: .seconds(60), longest: .seconds(600), spread: spread)
  }

  /// When the input ``Input/deadline`` is due.
  var deadline: Moment? { state.deadline }

  mutating func handle(_ input: Input, _ seen: Snapshot) -> [Action] {
    switch input {
    case .rangeChanged: return rangeChanged(seen)
    case .adapterWentAway: return adapterWentAway()
    case .deadline: return deadlineReached(seen)

    case .connected(let connection): return connected(connection, seen)
    case .subscribed(let result): return state == .subscribing ? subscribed(result, seen) : []
    case .disconnectCompleted:
      guard case .leaving(let delay) = state else { return [] }
      return delay.map { wait($0, seen) } ?? change(to: .idle)

    case .disconnected(let reason): return disconnected(because: reason, seen)
    case .unresponsive: return liveLinkFailed(.unresponsive)
    case .servicesLost: return liveLinkFailed(.servicesLost)
    case .unusable(let reason):
      // Otherwise the operation in progress reports it, or there is no link.
      guard state.isInUse else { return [] }
      return trouble(.unusable(reason)) + endLink(thenWait: longBackOff.next(), forgets: seen.isPaired)
    case .readingsExpected(let isExpected):
      liveness.expect(isExpected, at: seen.now)
      return state.isLive ? change(to: .live(checkAt: liveness.limit.map { seen.now + $0 })) : []
    case .period(let period):
      guard let limit = liveness.setPeriod(period), state.isLive else { return [] }
      return change(to: .live(checkAt: seen.now + limit))

    case .handedOver: return handedOver()
    case .demanded: return demanded(seen)
    case .visitEnded:
      guard isOnDemand, state.isLive else { return [] }
      backOff.reset()
      return endLink(thenWait: nil)
    case .turnEnded:
      guard state.isLive else { return [] }
      linkWasGood(until: seen.now)
      return endLink(thenWait: .zero)
    case .reconnect: return reconnect(seen)
    case .pair(let mode):
      pairing.mode = mode
      pairing.isDue = true
      // The peripheral seems to have lost the bond.
      if case .waiting = state, seen.isPaired, pairing.mayBeLost {
        return endLink(thenWait: .zero, forgets: true)
      }
      return reconnect(seen)
    case .unpair: return unpair()
    case .stop: return change(to: .stopped)
    }
  }

  // MARK: Range and time

  private mutating func rangeChanged(_ seen: Snapshot) -> [Action] {
    switch state {
    case .absent where seen.isInRange:
      // bluetoothd lists bonded peripherals before any is received: those that are on are connected to first.
      if seen.isPaired, !seen.isReceived {
        return wait(Self.firstAdvertisement, seen, wakesOnAdvertisement: true)
      }
      return connectIfInRange(seen)
    case .waiting(_, wakesOnAdvertisement: true) where seen.isReceived:
      // What failed before it was switched off does not count.
      backOff.reset()
      absenceBackOff.reset()
      return wait(backOff.next(), seen)
    default: return []
    }
  }

  private mutating func adapterWentAway() -> [Action] {
    // What failed before says nothing about the time after it; the first connect after a restart of bluetoothd often
    // fails, as that ends the links of the one before.
    backOff.reset()
    // bluetoothd removes the services of all devices while it ends.
    if lastError == .servicesLost { lastError = nil }
    if case .waiting = state { return change(to: .absent) }
    // An attempt in progress reports its end.
    return state.isInUse ? change(to: .absent) : []
  }

  private mutating func deadlineReached(_ seen: Snapshot) -> [Action] {
    switch state {
    case .waiting: return connectIfInRange(seen)
    case .awaitingServices(_, let lacks):
      // bluetoothd may have cached the services of an earlier program of the peripheral: if a service has the same handles, it
      // takes the characteristics from its cache. Refused reads, and a link without readings, may be due to that, too.
      let isFirst = failures.count(.unsuitable) == 1
      if isFirst, !seen.isPaired { return endLink(thenWait: .zero, forgets: true) }
      // If the discovery of services fails, bluetoothd reports a link without any.
      return trouble(.unsuitable(lacks: lacks))
        + endLink(thenWait: isFirst ? backOff.next() : longBackOff.next())
    case .live:
      guard let limit = liveness.limit else { return [] }
      let end = liveness.lastSignOfLife + limit
      if seen.now < end { return change(to: .live(checkAt: end)) }
      linkWasGood(until: liveness.lastSignOfLife)
      let isCacheOutdated = !liveness.hasReading && failures.count(.silent) == 1 && !seen.isPaired
      return trouble(.silent(limit)) + endLink(thenWait: backOff.next(), forgets: isCacheOutdated)
    default: return []
    }
  }

  // MARK: The end of the link

  private mutating func disconnected(because reason: String?, _ seen: Snapshot) -> [Action] {
    switch state {
    case .awaitingServices(_, let lacks):
      return trouble(.unsuitable(lacks: lacks)) + wait(longBackOff.next(), seen)
    case .subscribing:
      lastError = lastError ?? .linkEnded(reason)
      let isRefused = !seen.isPaired && failures.count(.ended) >= Self.mostEnded
      return (isRefused ? trouble(.wantsPairing) : []) + wait(backOff.next(), seen)
    case .live:
      lastError = .linkEnded(reason)
      linkWasGood(until: seen.now)
      return wait(backOff.next(), seen)
    // The operation in progress reports the end of the link in `connecting` and `leaving`.
    default: return []
    }
  }

  private mutating func liveLinkFailed(_ reason: Trouble) -> [Action] {
    guard state.isLive else { return [] }
    linkWasGood(until: liveness.lastSignOfLife)
    return trouble(reason) + endLink(thenWait: backOff.next())
  }

  /// The link had readings until `end`: if that was long enough, earlier failures no longer count.
  private mutating func linkWasGood(until end: Moment) {
    if liveness.hasReading { failures.forget(.silent) }
    if liveness.wasGood(until: end) { backOff.reset() }
  }

  // MARK: Requests

  private mutating func handedOver() -> [Action] {
    switch state {
    case .live:
      // Two gateways may take over from each other a peripheral that advertises while it is connected.
      if liveness.wasSteady { backOff.reset() }
      return endLink(thenWait: isOnDemand ? nil : backOff.next())
    case _ where !isOnDemand: return []
    case .awaitingServices, .subscribing: return endLink(thenWait: nil)
    case .absent, .waiting: return change(to: .idle)
    case .connecting: return change(to: .connecting(isWithdrawn: true))
    case .leaving: return change(to: .leaving(thenWait: nil))
    case .idle, .stopped: return []
    }
  }

  private mutating func demanded(_ seen: Snapshot) -> [Action] {
    switch state {
    case .idle: connectIfInRange(seen)
    case .leaving(thenWait: nil): change(to: .leaving(thenWait: .zero))
    case .connecting: change(to: .connecting(isWithdrawn: false))
    default: []
    }
  }

  private mutating func reconnect(_ seen: Snapshot) -> [Action] {
    backOff.reset()
    longBackOff.reset()
    absenceBackOff.reset()
    switch state {
    case .awaitingServices, .subscribing, .live: return endLink(thenWait: .zero)
    case .leaving: return change(to: .leaving(thenWait: .zero))
    // If it is not in range, it is connected to as soon as it is.
    case .idle, .waiting: return connectIfInRange(seen)
    case .connecting: return change(to: .connecting(isWithdrawn: false))
    case .absent, .stopped: return []
    }
  }

  private mutating func unpair() -> [Action] {
    pairing.mode = .ask
    pairing.isDue = false
    switch state {
    case .live where isOnDemand: return endLink(thenWait: nil, forgets: true)
    case .waiting, .awaitingServices, .subscribing, .live:
      return endLink(thenWait: backOff.next(), forgets: true)
    // Makes an attempt to connect fail.
    case .absent, .connecting, .leaving, .idle, .stopped:
      pairing.bondHolds()
      return [.unpair]
    }
  }

  // MARK: Steps

  mutating func change(to new: State) -> [Action] {
    let wasLive = state.isLive
    state = new
    return new.isLive == wasLive ? [] : [new.isLive ? .online : .offline]
  }

  private mutating func connectIfInRange(_ seen: Snapshot) -> [Action] {
    seen.isInRange ? change(to: .connecting(isWithdrawn: false)) + [.connect] : change(to: .absent)
  }

  mutating func wait(
    _ delay: Duration, _ seen: Snapshot, wakesOnAdvertisement: Bool = false
  ) -> [Action] {
    change(to: .waiting(until: seen.now + delay, wakesOnAdvertisement: wakesOnAdvertisement))
  }

  /// - Parameters:
  ///   - delay: how long to wait after the end of the link; nil: until a link is demanded.
  ///   - forgets: whether what bluetoothd knows of the peripheral is deleted.
  mutating func endLink(thenWait delay: Duration?, forgets: Bool = false) -> [Action] {
    if forgets { pairing.bondHolds() }
    return change(to: .leaving(thenWait: delay)) + [forgets ? .forget : .disconnect]
  }

  mutating func trouble(_ trouble: Trouble) -> [Action] {
    if trouble == lastError { return [] }
    lastError = trouble
    return [.log(trouble)]
  }
}
