import BlueZ
import EventLoop

extension LinkSession {
  /// The time limit of a request to pair: a few attempts to connect to other peripherals may come first.
  private static let pairingLimit = Duration.seconds(120)
  /// How long the peripheral may take to come into range. After its removal, bluetoothd may not report it before the kernel's
  /// next scan: up to 10 s of the present one, and 5 s between the two (seen with 5.82).
  private static let rangeLimit = Duration.seconds(25)

  /// Pairs on a new link. If the peripheral displays a passkey, another call gives it.
  func pair(passkey: Int?, reply: @escaping PairingReply) {
    if pairingRequest.isPasskeyDisplayed {
      guard let passkey, let peripheral else {
        return reply(
          .failure(RequestError(.invalid, "it displays a passkey: repeat the request with passkey")))
      }
      begin(passkey, reply)
      _ = central.enter(passkey: passkey, for: peripheral)
      return
    }
    guard !pairingRequest.isRequested else {
      return reply(.failure(RequestError("pairing is already in progress")))
    }
    if !context.scheduler.hasLink(device) { adapters.dropBondsOfAbsentAdapters() }
    if adapters.isPaired, !machine.pairing.mayBeLost { return reply(.success(.paired)) }
    begin(passkey, reply)
    feed(.pair(device.settings.pairing))
    rangeChanged()
    needsLinkNow()
  }

  private func begin(_ passkey: Int?, _ reply: @escaping PairingReply) {
    pairingRequest = .requested(passkey: passkey, reply)
    pairingTimer.set(.now + Self.rangeLimit) { [weak self] in
      guard let self else { return }
      if machine.state == .absent { return giveUpPairing(RequestError(.notInRange)) }
      pairingTimer.set(.now + Self.pairingLimit) { [weak self] in
        self?.giveUpPairing(RequestError(.failed, "not paired within \(Self.pairingLimit)"))
      }
    }
  }

  /// The request to pair has failed: the device is not paired with later, when nobody expects it.
  func giveUpPairing(_ error: RequestError) {
    pairingEnded()
    endPairing(.failure(error))
    chooseAgain()
  }

  /// Answers the request to pair, if there is one.
  /// - Parameter next: what is awaited then.
  func endPairing(_ result: Result<PairingProgress, RequestError>, next: PairingRequest = .none) {
    let ended = pairingRequest
    pairingRequest = next
    pairingTimer.set(nil) {}
    if case .requested(_, let reply) = ended { reply(result) }
  }

  /// Pairs before connecting, if that is due.
  /// - Returns: why it failed.
  func pairFirst(
    _ peripheral: PeripheralID, on central: Central, while isWanted: @escaping @LoopActor () -> Bool
  ) async -> PairingError? {
    if adapters.isPaired {
      // The adapter that was chosen has a bond already; if it may be lost, the link shows it.
      if !machine.pairing.mayBeLost { endPairing(.success(.paired)) }
      return nil
    }
    guard machine.pairing.pairsFirst else { return nil }
    context.log.notice("pairing", device.fields)
    do throws(PairingError) {
      try await central.pair(
        peripheral, passkey: pairingRequest.passkey ?? device.settings.passkey,
        endsLinks: pairingRequest.isRequested,
        while: { [self] in isWanted() && machine.pairing.pairsFirst },
        passkeyRequested: { [weak self] in self?.passkeyRequested(peripheral) })
      context.log.notice("paired", device.fields)
      if central.ownBonds.contains(peripheral) {
        context.store.change(device.address) { $0.bond = central.address }
      }
      endPairing(.success(.paired))
      if isWanted() {
        pairingEnded()
      } else {
        // The device was removed or disabled meanwhile: nothing else would end the link.
        await central.disconnect(peripheral)
      }
      return nil
    } catch {
      context.log.info("not paired: \(error)", device.fields)
      // One that has gone is paired with when it is back, but no longer displays its passkey.
      if error != .failed(.gone) || pairingRequest.isPasskeyDisplayed {
        endPairing(.failure(RequestError(error)))
      }
      return error
    }
  }

  /// Tells the central of a bond that an earlier run has made, or notes that it is gone.
  func noteBond(of seen: Peripheral, on central: Central) {
    guard let bond = device.record.bond, bond == central.address else { return }
    if seen.isPaired {
      central.keepsOwnBond(seen.id)
    } else {
      context.store.change(device.address) { $0.bond = nil }
    }
  }

  private func passkeyRequested(_ peripheral: PeripheralID) {
    guard pairingRequest.isRequested else {
      // Nobody would enter it.
      loop.task { [central] in await central.cancelPairing(peripheral) }
      return
    }
    context.log.notice("displays a passkey: it is awaited from the request device/pair", device.fields)
    endPairing(.success(.passkeyRequired), next: .passkeyDisplayed)
  }
}

extension RequestError {
  fileprivate init(_ error: PairingError) {
    self.init(error == .notInRange ? .unavailable : .failed, error.description)
  }
}
