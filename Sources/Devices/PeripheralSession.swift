import BlueZ
import Configuration
import EventLoop

/// The session with one peripheral: when to connect, whether it is online, when to disconnect and try again.
///
/// A pure machine: each input returns the actions to run, in order. It has one timer; setting it replaces the
/// one before.
package struct PeripheralSession: Sendable {
  /// When the adapter goes, `waiting`, `connecting`, `subscribing` and `live` → absent. Every state → stopped.
  package enum State: String, Sendable {
    /// Out of range, or there is no adapter → connecting when it is in range, waiting if it is bonded and not received.
    case absent
    /// An attempt failed or a link ended; the back-off runs → connecting, absent, leaving.
    case waiting
    /// In the queue for the adapter, or being connected and resolved; or it is awaited whether a peripheral that lacks
    /// services adds them → subscribing, waiting, leaving, absent.
    case connecting
    /// Linked; first values are read and notifications requested → live, leaving, waiting.
    case subscribing
    /// Readings arrive → leaving when they stop, waiting when the link ends.
    case live
    /// The link is being ended from this side → waiting, idle, connecting, absent.
    case leaving
    /// Connected on demand, and there is no demand → connecting or absent when there is.
    case idle
    /// The gateway stops, or the device is disabled or removed. Final.
    case stopped
  }

  private(set) var state = State.absent
  private var isInRange = false
  /// Whether its advertisements are received: a bonded one is in range even if they are not.
  private var isReceived = true
  private var backOff = BackOff(first: .seconds(1), longest: .seconds(60))
  /// For a peripheral that cannot be used: it is tried less and less often.
  private var longBackOff = BackOff(first: .seconds(60), longest: .seconds(3600))
  /// For a bonded peripheral that is not received and is probably switched off.
  private var absenceBackOff = BackOff(first: .seconds(60), longest: .seconds(600))
  private var afterLeaving = AfterLeaving.wait(.zero)
  private let isOnDemand: Bool
  /// Connecting on demand, and another gateway has visited it meanwhile: the link is ended as soon as it is made.
  private var isVisitedElsewhere = false
  /// Nil once the session is live.
  private(set) var lastTrouble: Trouble?
  /// The same, or that its link ended.
  private(set) var lastError: Trouble?
  /// Waiting, and to be tried sooner if it is received.
  private var awaitsAdvertisement = false
  /// Connected to a peripheral that lacks what the profile requires, which may still come.
  private(set) var awaitsServices = false
  private(set) var pairing: PairingPlan
  private var failures = LinkFailures()
  private var liveness: Liveness

  /// What follows the end of a link from this side.
  private enum AfterLeaving {
    case wait(Duration)
    /// Until a link is demanded.
    case idle
    /// A link was demanded meanwhile.
    case connect
  }

  /// For services that the peripheral adds after it was connected to.
  private static let servicesLimit = Duration.seconds(3)
  /// How long a bonded peripheral may take to be received before it is connected to anyway.
  private static let firstAdvertisement = Duration.seconds(10)

  /// - Parameters:
  ///   - interval: between two readings, as long as no other is known: a link on which none comes is ended; nil: the
  ///     link alone keeps the session alive.
  ///   - isOnDemand: whether each link is ended when there is nothing more to do.
  init(
    now: Moment, interval: Duration? = .seconds(1), isOnDemand: Bool = false,
    pairing: Configuration.PairingMode = .ask
  ) {
    liveness = Liveness(now: now, silence: isOnDemand ? nil : interval.map { Silence(interval: $0) })
    self.isOnDemand = isOnDemand
    self.pairing = PairingPlan(pairing)
  }

  /// Whether values of its link are readings.
  var isReceiving: Bool {
    switch state {
    case .subscribing, .live: true
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: false
    }
  }

  // MARK: Inputs

  /// It is in range, or is no longer.
  mutating func seen(inRange: Bool) -> [Action] {
    isInRange = inRange
    guard state == .absent, inRange else { return [] }
    // bluetoothd lists bonded peripherals before any is received: those that are on are connected to first.
    if pairing.isPaired, !isReceived { return waitForAdvertisement(atMost: Self.firstAdvertisement) }
    state = .connecting
    return [.connect]
  }

  /// Whether its advertisements are received.
  mutating func seen(isReceived: Bool) -> [Action] {
    self.isReceived = isReceived
    guard state == .waiting, awaitsAdvertisement, isReceived else { return [] }
    // What failed before it was switched off does not count.
    backOff.reset()
    absenceBackOff.reset()
    return wait(backOff.next())
  }

  /// Whether bluetoothd has a bond with it.
  mutating func seen(isPaired: Bool) { pairing.isPaired = isPaired }

  mutating func connected(_ connection: Connection) -> [Action] {
    guard state == .connecting else { return [] }
    awaitsServices = false
    if isVisitedElsewhere {
      isVisitedElsewhere = false
      switch connection {
      case .connected, .unsuitable: return endLink(thenWait: nil)
      case .failed, .notPaired:
        state = .idle
        return []
      }
    }
    switch connection {
    case .connected where pairing.pairsFirst && pairing.isDue:
      // Requested while it was being connected.
      return endLink(thenWait: .zero)
    case .connected:
      pairing.connected()
      liveness.linked()
      state = .subscribing
      return [.subscribe]
    case .unsuitable:
      pairing.connected()
      awaitsServices = true
      return [.setTimer(Self.servicesLimit)]
    case .failed(.gone), .failed(.unavailable):
      // It may have come back while the attempt failed, which is reported only once.
      if isInRange { return wait(backOff.next()) }
      state = .absent
      return []
    case .failed(.keyMissing):
      if pairing.linkWasRefused() { return bondLost() }
      return connectFailed(.keyMissing)
    case .notPaired(.failed(.refused(let reason))), .failed(.refused(let reason)):
      pairing.failed()
      return trouble(.unusable(reason)) + wait(longBackOff.next())
    case .notPaired(let error):
      let wasDue = pairing.isDue
      pairing.failed()
      if wasDue, pairing.mode != .always { return trouble(.wantsPairing) + wait(longBackOff.next()) }
      return trouble(.pairingFailed(error.description)) + wait(backOff.next())
    case .failed(.transient(let reason)):
      // Says nothing about the bond.
      return connectFailed(.transient(reason))
    case .failed(let error):
      pairing.linkFailed()
      return connectFailed(error)
    }
  }

  private mutating func connectFailed(_ error: CentralError) -> [Action] {
    let actions = trouble(.connectFailed(error.description))
    guard pairing.isPaired, !isReceived, error != .keyMissing else { return actions + wait(backOff.next()) }
    return actions + waitForAdvertisement(atMost: absenceBackOff.next())
  }

  mutating func subscribed(_ failure: CentralError?, at now: Moment) -> [Action] {
    guard state == .subscribing else { return [] }
    failures.answered()
    if let failure {
      let isCacheOutdated =
        switch failure {
        case .refused, .transient: linkWasUnusable(deletingAfter: 2)
        case .busy, .unlikely, .timedOut, .gone, .disconnected, .notifyAcquired, .keyMissing, .unavailable:
          false
        }
      return trouble(.subscribeFailed(failure.description))
        + (isCacheOutdated ? forget(thenWait: backOff.next()) : endLink(thenWait: backOff.next()))
    }
    state = .live
    failures.becameLive()
    liveness.becameLive(at: now)
    lastTrouble = nil
    lastError = nil
    longBackOff.reset()
    absenceBackOff.reset()
    return [.online, liveness.limit.map { .setTimer($0) } ?? .cancelTimer]
  }

  /// No value could be read, though the services are known and the link lasts.
  ///
  /// This happens if the peripheral requires pairing: bluetoothd 5.66 never answers the read, 5.82 fails it
  /// at once, and both keep the link (tested). One that no longer responds does the same once; on the next
  /// link its services are not resolved.
  mutating func unreadable(_ failure: CentralError) -> [Action] {
    guard state == .subscribing else { return [] }
    guard failures.wasUnreadable() else {
      return trouble(.subscribeFailed(failure.description)) + endLink(thenWait: backOff.next())
    }
    return trouble(.wantsPairing) + endLink(thenWait: longBackOff.next())
  }

  /// A reading: on the path of every notification.
  mutating func received(at now: Moment) { liveness.received(at: now) }

  /// The peripheral sends a reading every `milliseconds` from its next sample on.
  mutating func setPeriod(_ milliseconds: Int) -> [Action] {
    guard let limit = liveness.setPeriod(.milliseconds(milliseconds)), state == .live else { return [] }
    return [.setTimer(limit)]
  }

  /// The link ended.
  mutating func disconnected(at now: Moment) -> [Action] {
    switch state {
    case .absent, .waiting, .idle, .stopped: return []
    case .connecting where awaitsServices: return trouble(.unsuitable) + wait(longBackOff.next())
    // The operation in progress reports it.
    case .connecting, .leaving: return []
    case .subscribing:
      lastError = .linkEnded(nil)
      let isRefused = failures.endedEarly(counts: !liveness.hasReading && !pairing.isPaired)
      return (isRefused ? trouble(.endsLinks) : []) + wait(backOff.next())
    case .live:
      lastError = .linkEnded(nil)
      linkWasGood(until: now)
      return [.offline] + wait(backOff.next())
    }
  }

  /// Why the link has ended; bluetoothd reports it after the end.
  /// - Returns: whether that is news.
  mutating func linkEnded(because reason: String) -> Bool {
    guard case .linkEnded(nil) = lastError else { return false }
    lastError = .linkEnded(reason)
    return true
  }

  /// An operation on the live link was not answered in time.
  mutating func unresponsive() -> [Action] {
    guard state == .live else { return [] }
    linkWasGood(until: liveness.lastSignOfLife)
    return [.offline] + trouble(.unresponsive) + endLink(thenWait: backOff.next())
  }

  /// The peripheral has removed what the profile requires, or bluetoothd has lost it: the next link shows which.
  mutating func servicesLost() -> [Action] {
    guard state == .live else { return [] }
    linkWasGood(until: liveness.lastSignOfLife)
    return [.offline] + trouble(.servicesLost) + endLink(thenWait: backOff.next())
  }

  /// The peripheral has changed its services so that it must not be used: the link is ended, and a bond deleted.
  mutating func becameUnusable(_ reason: String) -> [Action] {
    switch state {
    case .subscribing, .live: break
    // The operation in progress reports it, or there is no link.
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: return []
    }
    let offline: [Action] = state == .live ? [.offline] : []
    let delay = longBackOff.next()
    return offline + trouble(.unusable(reason))
      + (pairing.isPaired ? forget(thenWait: delay) : endLink(thenWait: delay))
  }

  /// Another gateway has the device now: the link here is no longer alive.
  mutating func handedOver() -> [Action] {
    switch state {
    case .live:
      // Two gateways may take over from each other a peripheral that advertises while it is connected.
      if liveness.wasSteady { backOff.reset() }
      return [.offline] + endLink(thenWait: isOnDemand ? nil : backOff.next())
    case .absent where isOnDemand, .waiting where isOnDemand:
      state = .idle
      return [.cancelTimer]
    case .subscribing where isOnDemand, .connecting where isOnDemand && awaitsServices:
      return endLink(thenWait: nil)
    case .connecting where isOnDemand:
      isVisitedElsewhere = true
      return []
    case .leaving where isOnDemand:
      afterLeaving = .idle
      return []
    case .absent, .waiting, .connecting, .subscribing, .leaving, .idle, .stopped: return []
    }
  }

  /// A device that is connected on demand is due for a visit, or a command waits for it.
  mutating func demanded() -> [Action] {
    switch state {
    case .idle:
      state = isInRange ? .connecting : .absent
      return isInRange ? [.connect] : []
    case .leaving:
      if case .idle = afterLeaving { afterLeaving = .connect }
      return []
    case .connecting:
      isVisitedElsewhere = false
      return []
    case .absent, .waiting, .subscribing, .live, .stopped: return []
    }
  }

  /// Everything that was to be done on the link is done.
  mutating func visitEnded() -> [Action] {
    guard isOnDemand, state == .live else { return [] }
    backOff.reset()
    return [.offline] + endLink(thenWait: nil)
  }

  /// A user requests a new link, now.
  mutating func reconnect() -> [Action] {
    backOff.reset()
    longBackOff.reset()
    absenceBackOff.reset()
    switch state {
    case .live: return [.offline] + endLink(thenWait: .zero)
    case .subscribing: return endLink(thenWait: .zero)
    case .connecting where awaitsServices: return endLink(thenWait: .zero)
    case .idle: return demanded()
    case .waiting where isInRange:
      state = .connecting
      return [.cancelTimer, .connect]
    case .absent, .waiting, .connecting, .leaving, .stopped: return []
    }
  }

  /// A user requests pairing: on a new link, before it is used.
  /// - Parameter mode: the configured one.
  mutating func pair(_ mode: Configuration.PairingMode) -> [Action] {
    let isBondLost = pairing.request(mode)
    switch state {
    case .waiting where isBondLost: return forget(thenWait: .zero)
    case .leaving:
      afterLeaving = .wait(.zero)
      return []
    case .waiting where !isInRange:
      // It is connected as soon as it is in range.
      state = .absent
      return [.cancelTimer]
    case .live, .subscribing, .waiting, .absent, .connecting, .idle, .stopped: return reconnect()
    }
  }

  /// A user requests that the bond be deleted. From now on the session does not pair by itself.
  mutating func unpair() -> [Action] {
    pairing.mode = .ask
    pairing.failed()
    switch state {
    case .live: return [.offline] + forget(thenWait: isOnDemand ? nil : backOff.next())
    case .subscribing, .waiting: return forget(thenWait: backOff.next())
    // Makes an attempt to connect fail.
    case .connecting, .absent, .idle, .leaving, .stopped:
      pairing.forget()
      return [.forget]
    }
  }

  /// The timer that was set has run out.
  mutating func timer(at now: Moment) -> [Action] {
    switch state {
    case .absent, .subscribing, .leaving, .idle, .stopped: return []
    case .connecting where awaitsServices:
      if linkWasUnusable() { return forget(thenWait: .zero) }
      return trouble(.unsuitable) + endLink(thenWait: longBackOff.next())
    case .connecting: return []
    case .waiting:
      state = isInRange ? .connecting : .absent
      return isInRange ? [.connect] : []
    case .live:
      guard let limit = liveness.limit, let remaining = liveness.remaining(at: now) else { return [] }
      if remaining > .zero { return [.setTimer(remaining)] }
      linkWasGood(until: liveness.lastSignOfLife)
      let isCacheOutdated = !liveness.hasReading && failures.wasSilent() && !pairing.isPaired
      return [.offline] + trouble(.silent(limit))
        + (isCacheOutdated ? forget(thenWait: backOff.next()) : endLink(thenWait: backOff.next()))
    }
  }

  /// The link has been ended from this side.
  mutating func disconnectCompleted() -> [Action] {
    guard state == .leaving else { return [] }
    switch afterLeaving {
    case .wait(let delay): return wait(delay)
    case .idle:
      state = .idle
      return []
    case .connect:
      state = .idle
      return demanded()
    }
  }

  /// The adapter of the link, or of the last one, is absent or off: nothing is in range of it.
  mutating func adapterWentAway() -> [Action] {
    isInRange = false
    // What failed before says nothing about the time after it; the first connect after a restart of bluetoothd often
    // fails, as that ends the links of the one before.
    backOff.reset()
    // bluetoothd removes the services of all devices while it ends.
    if lastTrouble == .servicesLost { lastTrouble = nil }
    switch state {
    case .stopped, .absent, .leaving, .idle: return []
    // The attempt in progress reports its end.
    case .connecting where !awaitsServices: return []
    case .waiting, .connecting, .subscribing:
      awaitsServices = false
      state = .absent
      return [.cancelTimer]
    case .live:
      state = .absent
      return [.offline, .cancelTimer]
    }
  }

  mutating func stop() -> [Action] {
    let wasLive = state == .live
    state = .stopped
    return (wasLive ? [.offline] : []) + [.cancelTimer]
  }

  // MARK: Steps

  /// The link had readings until `end`: if that was long enough, earlier failures no longer count.
  private mutating func linkWasGood(until end: Moment) {
    if liveness.hasReading { failures.hadReading() }
    if liveness.wasGood(until: end) { backOff.reset() }
  }

  private mutating func wait(_ delay: Duration) -> [Action] {
    awaitsServices = false
    awaitsAdvertisement = false
    state = .waiting
    return [.setTimer(delay)]
  }

  private mutating func waitForAdvertisement(atMost delay: Duration) -> [Action] {
    let actions = wait(delay)
    awaitsAdvertisement = true
    return actions
  }

  /// - Parameter delay: how long to wait after the end of the link; nil: until a link is demanded.
  private mutating func endLink(thenWait delay: Duration?) -> [Action] {
    awaitsServices = false
    state = .leaving
    afterLeaving = delay.map { .wait($0) } ?? .idle
    return [.cancelTimer, .disconnect]
  }

  private mutating func forget(thenWait delay: Duration?) -> [Action] {
    _ = endLink(thenWait: delay)
    pairing.forget()
    return [.cancelTimer, .forget]
  }

  /// The bond could not be removed: pairing again is pointless.
  mutating func bondRemains() { pairing.failed() }

  /// Another mode is configured.
  mutating func setPairing(_ mode: Configuration.PairingMode) { pairing.mode = mode }

  private mutating func bondLost() -> [Action] {
    guard pairing.mode == .always || pairing.isDue else {
      return trouble(.bondLost(pairsAgain: false)) + wait(longBackOff.next())
    }
    pairing.isDue = true
    return trouble(.bondLost(pairsAgain: true)) + forget(thenWait: .zero)
  }

  /// The services of the link are not usable.
  /// - Returns: whether to delete what bluetoothd has cached of the device, by removing it; not if there is a bond.
  private mutating func linkWasUnusable(deletingAfter links: Int = 1) -> Bool {
    failures.wasUnusable(deletingAfter: links) && !pairing.isPaired
  }

  private mutating func trouble(_ trouble: Trouble) -> [Action] {
    lastError = trouble
    if trouble == lastTrouble { return [] }
    lastTrouble = trouble
    return [.report(trouble)]
  }
}
