import BlueZ
import EventLoop

/// The begin of a link.
extension LinkMachine {
  mutating func connected(_ connection: Connection, _ seen: Snapshot) -> [Action] {
    switch state {
    case .connecting(isWithdrawn: false), .awaitingServices: break
    case .connecting(isWithdrawn: true):
      switch connection {
      case .connected, .unsuitable: return endLink(thenWait: nil)
      case .failed, .notPaired: return change(to: .idle)
      }
    default: return []
    }
    switch connection {
    // Pairing was requested while the peripheral was being connected.
    case .connected where pairing.isDue && !seen.isPaired, .unsuitable where pairing.isDue && !seen.isPaired:
      return endLink(thenWait: .zero)
    case .connected:
      pairing.connected()
      liveness.linked()
      return change(to: .subscribing) + [.subscribe]
    case .unsuitable(let lacks):
      pairing.connected()
      var limit = seen.now + servicesLimit
      if case .awaitingServices(let until, _) = state { limit = until }
      return change(to: .awaitingServices(until: limit, lacks: lacks))
    case .notPaired(.failed(.refused(let reason))), .failed(.refused(let reason)):
      pairing.isDue = false
      return trouble(.unusable(reason)) + wait(longBackOff.next(), seen)
    // The end of an earlier link may just have removed it: it is paired with when it is found again.
    case .notPaired(.failed(.gone)): return connectFailed(.gone, seen)
    case .notPaired(let error):
      pairing.isDue = false
      if pairing.mode != .always {
        // The answer to the request says why. A device that was not known to require pairing may do without.
        return wait(lastError?.wantsPairing == true ? longBackOff.next() : backOff.next(), seen)
      }
      return trouble(.pairingFailed(error.description)) + wait(backOff.next(), seen)
    case .failed(let error): return connectFailed(error, seen)
    }
  }

  private mutating func connectFailed(_ error: CentralError, _ seen: Snapshot) -> [Action] {
    switch error {
    case .gone, .unavailable:
      // The peripheral may have come back while the attempt failed, which is reported only once.
      return seen.isInRange ? wait(backOff.next(), seen) : change(to: .absent)
    case .keyMissing:
      if pairing.linkWasRefused() { return bondLost(seen) }
      return trouble(.connectFailed(error.description)) + wait(backOff.next(), seen)
    // These errors say nothing about the bond.
    case .transient, .timedOut, .busy: break
    case .cutShort:
      pairing.mayBeLost = true
      if pairing.isDue {
        return trouble(.connectFailed(error.description)) + endLink(thenWait: .zero, forgets: true)
      }
    case .unlikely, .disconnected, .refused, .notifyAcquired: pairing.bondHolds()
    }
    let actions = trouble(.connectFailed(error.description))
    if seen.isPaired, !seen.isReceived {
      return actions + wait(absenceBackOff.next(), seen, wakesOnAdvertisement: true)
    }
    return actions + wait(backOff.next(), seen)
  }

  private mutating func bondLost(_ seen: Snapshot) -> [Action] {
    guard pairing.mode == .always || pairing.isDue else {
      return trouble(.bondLost(pairsAgain: false)) + wait(longBackOff.next(), seen)
    }
    pairing.isDue = true
    return trouble(.bondLost(pairsAgain: true)) + endLink(thenWait: .zero, forgets: true)
  }

  mutating func subscribed(_ result: Subscription, _ seen: Snapshot) -> [Action] {
    switch result {
    case .subscribed:
      failures.forget(.unreadable, .ended, .unsuitable, .refused)
      liveness.becameLive(at: seen.now)
      lastError = nil
      longBackOff.reset()
      absenceBackOff.reset()
      return change(to: .live(checkAt: liveness.limit.map { seen.now + $0 }))
    case .failed(let error):
      failures.forget(.unreadable, .ended)
      let isCacheOutdated =
        switch error {
        case .refused, .transient: failures.count(.refused) == 2 && !seen.isPaired
        case .busy, .unlikely, .timedOut, .gone, .disconnected, .notifyAcquired, .keyMissing, .cutShort,
          .unavailable:
          false
        }
      return trouble(.subscribeFailed(error.description))
        + endLink(thenWait: backOff.next(), forgets: isCacheOutdated)
    case .unreadable(let error):
      if failures.count(.unreadable) > 1 {
        return trouble(.wantsPairing) + endLink(thenWait: longBackOff.next())
      }
      return trouble(.subscribeFailed(error.description)) + endLink(thenWait: backOff.next())
    }
  }
}
