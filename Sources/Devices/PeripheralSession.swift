import Configuration
import EventLoop

/// The session with one peripheral: when to connect, whether it is online, when to disconnect and try again.
///
/// A pure machine: each input returns the actions to run, in order. After each input the caller sets a timer for its
/// ``deadline``.
package struct PeripheralSession: Sendable {
  private(set) var state: State
  /// Why there is no link, or why there was none; nil once the session is live.
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
  static let servicesLimit = Duration.seconds(3)
  /// How long a bonded peripheral may take to be received before it is connected to anyway.
  private static let firstAdvertisement = Duration.seconds(10)

  /// - Parameters:
  ///   - interval: between two readings, as long as no other is known: a link on which none comes is ended; nil: the
  ///     link alone keeps the session alive.
  ///   - isOnDemand: whether each link is ended when there is nothing more to do.
  ///   - spread: the random share of each wait.
  init(
    now: Moment, interval: Duration?, isOnDemand: Bool, pairing: Configuration.PairingMode,
    spread: Double = 0.3
  ) {
    state = .absent
    liveness = Liveness(now: now, period: isOnDemand ? nil : interval)
    self.isOnDemand = isOnDemand
    self.pairing = PairingPlan(pairing)
    backOff = BackOff(first: .seconds(1), longest: .seconds(60), spread: spread)
    longBackOff = BackOff(first: .seconds(60), longest: .seconds(3600), spread: spread)
    absenceBackOff = BackOff(first: .seconds(60), longest: .seconds(600), spread: spread)
  }

  /// When to call ``timer(_:)``.
  var deadline: Moment? { state.deadline }

  // MARK: Range

  /// What the adapters know of the peripheral has changed.
  mutating func seen(_ seen: Snapshot) -> [Action] {
    switch state {
    case .absent where seen.isInRange:
      // bluetoothd lists bonded peripherals before any is received: those that are on are connected to first.
      if seen.isPaired, !seen.isReceived { return awaitAdvertisement(atMost: Self.firstAdvertisement, seen) }
      return connectIfInRange(seen)
    case .waiting(_, wakesOnAdvertisement: true) where seen.isReceived:
      // What failed before it was switched off does not count.
      backOff.reset()
      absenceBackOff.reset()
      return wait(backOff.next(), seen)
    case .absent, .waiting, .connecting, .awaitingServices, .subscribing, .live, .leaving, .idle,
      .stopped:
      return []
    }
  }

  /// The adapter of the link, or of the last one, is absent or off.
  mutating func adapterWentAway() -> [Action] {
    // What failed before says nothing about the time after it; the first connect after a restart of bluetoothd often
    // fails, as that ends the links of the one before.
    backOff.reset()
    // bluetoothd removes the services of all devices while it ends.
    if lastError == .servicesLost { lastError = nil }
    switch state {
    // An attempt in progress reports its end.
    case .stopped, .absent, .connecting, .leaving, .idle: return []
    case .waiting, .awaitingServices, .subscribing, .live: return change(to: .absent)
    }
  }

  // MARK: The link

  /// - Parameter isExpected: whether the link offers the readings that keep it alive.
  mutating func expectReadings(_ isExpected: Bool, _ seen: Snapshot) -> [Action] {
    liveness.expect(isExpected, at: seen.now)
    return state.isLive ? change(to: .live(checkAt: liveness.limit.map { seen.now + $0 })) : []
  }

  /// The peripheral sends a reading every `milliseconds` from its next sample on.
  mutating func setPeriod(_ milliseconds: Int, _ seen: Snapshot) -> [Action] {
    guard let limit = liveness.setPeriod(.milliseconds(milliseconds)), state.isLive else { return [] }
    return change(to: .live(checkAt: seen.now + limit))
  }

  /// The link ended.
  mutating func disconnected(_ seen: Snapshot) -> [Action] {
    switch state {
    // The operation in progress reports the end of the link in `connecting` and `leaving`.
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: return []
    case .awaitingServices: return trouble(.unsuitable) + wait(longBackOff.next(), seen)
    case .subscribing:
      lastError = lastError ?? .linkEnded(nil)
      let isRefused = failures.endedEarly(counts: !liveness.hasReading && !seen.isPaired)
      return (isRefused ? trouble(.endsLinks) : []) + wait(backOff.next(), seen)
    case .live:
      lastError = .linkEnded(nil)
      linkWasGood(until: seen.now)
      return wait(backOff.next(), seen)
    }
  }

  /// Why the link has ended; bluetoothd reports it after the end.
  /// - Returns: whether that is news.
  mutating func linkEnded(because reason: String) -> Bool {
    guard lastError == .linkEnded(nil) else { return false }
    lastError = .linkEnded(reason)
    return true
  }

  /// An operation on the live link was not answered in time.
  mutating func unresponsive() -> [Action] { liveLinkFailed(.unresponsive) }

  /// The peripheral has removed what the profile requires, or bluetoothd has lost it: the next link shows which.
  mutating func servicesLost() -> [Action] { liveLinkFailed(.servicesLost) }

  private mutating func liveLinkFailed(_ reason: Trouble) -> [Action] {
    guard state.isLive else { return [] }
    linkWasGood(until: liveness.lastSignOfLife)
    return trouble(reason) + endLink(thenWait: backOff.next())
  }

  /// The peripheral has changed its services so that it must not be used: the link is ended, and a bond deleted.
  mutating func becameUnusable(_ reason: String, _ seen: Snapshot) -> [Action] {
    switch state {
    case .awaitingServices, .subscribing, .live: break
    // The operation in progress reports it, or there is no link.
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: return []
    }
    let delay = longBackOff.next()
    return trouble(.unusable(reason)) + (seen.isPaired ? forget(thenWait: delay) : endLink(thenWait: delay))
  }

  /// The deadline is reached.
  mutating func timer(_ seen: Snapshot) -> [Action] {
    switch state {
    case .absent, .connecting, .subscribing, .leaving, .idle, .stopped: return []
    case .waiting: return connectIfInRange(seen)
    case .awaitingServices:
      if failures.wasUnusable(), !seen.isPaired { return forget(thenWait: .zero) }
      return trouble(.unsuitable) + endLink(thenWait: longBackOff.next())
    case .live:
      guard let limit = liveness.limit, let remaining = liveness.remaining(at: seen.now) else { return [] }
      if remaining > .zero { return change(to: .live(checkAt: seen.now + remaining)) }
      linkWasGood(until: liveness.lastSignOfLife)
      let isCacheOutdated = !liveness.hasReading && failures.wasSilent() && !seen.isPaired
      return trouble(.silent(limit))
        + (isCacheOutdated ? forget(thenWait: backOff.next()) : endLink(thenWait: backOff.next()))
    }
  }

  /// The link has been ended from this side.
  mutating func disconnectCompleted(_ seen: Snapshot) -> [Action] {
    guard case .leaving(let delay) = state else { return [] }
    return delay.map { wait($0, seen) } ?? change(to: .idle)
  }

  // MARK: Steps

  // Used in the other files of this type too, and so not private.

  mutating func change(to new: State) -> [Action] {
    let wasLive = state.isLive
    state = new
    return new.isLive == wasLive ? [] : [new.isLive ? .online : .offline]
  }

  mutating func connectIfInRange(_ seen: Snapshot) -> [Action] {
    seen.isInRange ? change(to: .connecting(isWithdrawn: false)) + [.connect] : change(to: .absent)
  }

  mutating func wait(_ delay: Duration, _ seen: Snapshot) -> [Action] {
    change(to: .waiting(until: seen.now + delay, wakesOnAdvertisement: false))
  }

  mutating func awaitAdvertisement(atMost delay: Duration, _ seen: Snapshot) -> [Action] {
    change(to: .waiting(until: seen.now + delay, wakesOnAdvertisement: true))
  }

  /// - Parameter delay: how long to wait after the end of the link; nil: until a link is demanded.
  mutating func endLink(thenWait delay: Duration?) -> [Action] {
    change(to: .leaving(thenWait: delay)) + [.disconnect]
  }

  mutating func forget(thenWait delay: Duration?) -> [Action] {
    pairing.refusedLinks = 0
    return change(to: .leaving(thenWait: delay)) + [.forget]
  }

  /// The link had readings until `end`: if that was long enough, earlier failures no longer count.
  mutating func linkWasGood(until end: Moment) {
    if liveness.hasReading { failures.hadReading() }
    if liveness.wasGood(until: end) { backOff.reset() }
  }

  mutating func trouble(_ trouble: Trouble) -> [Action] {
    if trouble == lastError { return [] }
    lastError = trouble
    return [.report(trouble)]
  }
}
