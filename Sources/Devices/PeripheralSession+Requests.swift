import Configuration

/// What users, other gateways and the schedule of visits ask for.
extension PeripheralSession {
  /// Another gateway has the device now: the link here is no longer alive.
  mutating func handedOver() -> [Action] {
    switch state {
    case .live:
      // Two gateways may take over from each other a peripheral that advertises while it is connected.
      if liveness.wasSteady { backOff.reset() }
      return endLink(thenWait: isOnDemand ? nil : backOff.next())
    case .awaitingServices where isOnDemand, .subscribing where isOnDemand: return endLink(thenWait: nil)
    case .absent where isOnDemand, .waiting where isOnDemand: return change(to: .idle)
    case .connecting where isOnDemand: return change(to: .connecting(isWithdrawn: true))
    case .leaving where isOnDemand: return change(to: .leaving(thenWait: nil))
    case .absent, .waiting, .connecting, .awaitingServices, .subscribing, .leaving, .idle,
      .stopped:
      return []
    }
  }

  /// A device that is connected on demand is due for a visit, or a command waits for it.
  mutating func demanded(_ seen: Snapshot) -> [Action] {
    switch state {
    case .idle: return connectIfInRange(seen)
    case .leaving(thenWait: nil): return change(to: .leaving(thenWait: .zero))
    case .connecting: return change(to: .connecting(isWithdrawn: false))
    case .absent, .waiting, .awaitingServices, .subscribing, .live, .leaving, .stopped: return []
    }
  }

  /// Everything that was to be done on the link is done.
  mutating func visitEnded() -> [Action] {
    guard isOnDemand, state.isLive else { return [] }
    backOff.reset()
    return endLink(thenWait: nil)
  }

  /// Another device gets the link; this one waits for another link.
  mutating func turnEnded(_ seen: Snapshot) -> [Action] {
    guard state.isLive else { return [] }
    linkWasGood(until: seen.now)
    return endLink(thenWait: .zero)
  }

  /// A user requests a new link, now.
  mutating func reconnect(_ seen: Snapshot) -> [Action] {
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

  /// A user requests pairing: on a new link, before it is used.
  /// - Parameter mode: the configured one.
  mutating func pair(_ mode: Configuration.PairingMode, _ seen: Snapshot) -> [Action] {
    pairing.mode = mode
    pairing.isDue = true
    // The peripheral seems to have lost the bond.
    if case .waiting = state, seen.isPaired, pairing.refusedLinks > 0 { return forget(thenWait: .zero) }
    return reconnect(seen)
  }

  /// A user requests that the bond be deleted. From now on the session does not pair by itself.
  mutating func unpair() -> [Action] {
    pairing.mode = .ask
    pairing.isDue = false
    switch state {
    case .live where isOnDemand: return forget(thenWait: nil)
    case .waiting, .awaitingServices, .subscribing, .live: return forget(thenWait: backOff.next())
    // Makes an attempt to connect fail.
    case .absent, .connecting, .leaving, .idle, .stopped:
      pairing.refusedLinks = 0
      return [.unpair]
    }
  }

  /// There is a bond now, or one that could not be deleted: pairing is no longer due.
  mutating func pairingEnded() { pairing.isDue = false }

  /// Another mode is configured.
  mutating func setPairing(_ mode: Configuration.PairingMode) { pairing.mode = mode }

  mutating func stop() -> [Action] { change(to: .stopped) }
}
