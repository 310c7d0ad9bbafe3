import DBus
import EventLoop

extension Central {
  /// Pairs with a peripheral, with a bond; one that is paired already is left as it is. Runs like a connect: one at a
  /// time, with scanning paused. Leaves the link up after success, and ends it after a failure.
  ///
  /// - Parameters:
  ///   - passkey: the one that the peripheral displays or has, if it is known beforehand.
  ///   - endsLinks: whether a link of another program is ended at once, as by a request. Else that program, which may be pairing,
  ///     first gets the time that a passkey takes.
  ///   - isNeeded: called before pairing, which may be long after the call.
  ///   - passkeyRequested: called when the peripheral requires a passkey that is not known: it is awaited
  ///     from ``enter(passkey:for:)``, until the peripheral ends the link (30 s).
  public func pair(
    _ id: PeripheralID, passkey: Int?, endsLinks: Bool = true,
    while isNeeded: @LoopActor () -> Bool = { true },
    passkeyRequested: @escaping @LoopActor () -> Void
  ) async throws(PairingError) {
    let pairing = Pairing(passkey: passkey, passkeyRequested: passkeyRequested)
    let attempt = Attempt(id, pairing: pairing)
    guard await begin(attempt, isPreferred: true, while: isNeeded) else { throw .failed(.disconnected) }
    defer { endAttempt(attempt) }
    do throws(PairingError) {
      try await pairNow(attempt, pairing, endsLinks: endsLinks, while: isNeeded)
    } catch {
      noteGone(error == .failed(.gone), attempt)
      let isAnothers = noteBusy(error.isBusy, id)
      if error == .passkeyNotUsed || unwantedBonds.contains(id) {
        await removeBond(id)
      } else if tree.devices[id.path] != nil, state.isOn, error != .failed(.inputDevice), !isAnothers {
        await disconnect(id)
      }
      throw error
    }
  }

  /// Enters the passkey that a peripheral displays; false if it is not being paired with.
  @discardableResult
  public func enter(passkey: Int, for id: PeripheralID) -> Bool {
    guard let pairing = pairing(of: id) else { return false }
    if let request = pairing.enter(passkey) { reply(to: request, passkey) }
    return true
  }

  /// The pairing in progress, if it is with this peripheral.
  func pairing(of id: PeripheralID) -> Pairing? {
    guard let attempt = queue.current, attempt.peripheral == id else { return nil }
    return attempt.pairing
  }

  /// Ends the pairing in progress.
  public func cancelPairing(_ id: PeripheralID) async {
    guard pairing(of: id) != nil else { return }
    // bluetoothd may have paired, and answer Pair only when it has resolved the services: CancelPairing would then delete the
    // bond, and leave `Paired` as it is (5.66 to 5.87).
    if isConnected(id) { return await disconnect(id) }
    await callIgnoringFailure(DBusCall("CancelPairing", on: BlueZName.device, of: id.path))
  }

  /// Deletes the bond and everything else that bluetoothd knows of a peripheral, its services included. The next scan
  /// finds it again; until then it is reported as out of range.
  public func unpair(_ id: PeripheralID) async throws(CentralError) {
    try check(id)
    // bluetoothd 5.82 does not remove a device whose encryption has just failed, unless Disconnect was called.
    await disconnect(id)
    // Removal would crash bluetoothd before 5.84.
    guard await !isNotifyAcquired(id) else { throw .notifyAcquired }
    try await remove(id)
    guard await wait(limits.treeUpdate, until: { !self.isPaired(id) }) else {
      throw .timedOut("bluetoothd did not remove it in time")
    }
  }

  private func pairNow(
    _ attempt: Attempt, _ pairing: Pairing, endsLinks: Bool, while isNeeded: @LoopActor () -> Bool
  ) async throws(PairingError) {
    let id = attempt.peripheral
    await waitForEnd(of: id)
    guard isAvailable else { throw .failed(.unavailable) }
    guard let device = tree.devices[id.path] else { throw .failed(.gone) }
    guard !isRefused(id) else { throw .failed(.inputDevice) }
    // bluetoothd 5.66 never answers Pair for a paired device that is connected.
    if device.isPaired { return }
    if isConnected(id) {
      if !endsLinks, links[id] == nil, noteBusy(true, id) {
        throw .failed(.busy("another program is connected to it"))
      }
      // On a link of another program bluetoothd 5.81 and newer would pair without regard to this agent's capability.
      await disconnect(id)
    }
    try await registerAgent()
    await scanBriefly(isPreferred: true)
    await pauseScan(before: attempt)
    var result = Result<Void, PairingError>.failure(
      .failed(tree.devices[id.path] == nil ? .gone : .disconnected))
    if isNeeded(), isAvailable, tree.devices[id.path] != nil { result = await callPair(id, pairing) }
    await unregisterAgent()
    try result.get()
    if pairing.hasBypassedPasskey { throw .passkeyNotUsed }
    guard !isRefused(id) else { throw .failed(.inputDevice) }
    ownBonds.insert(id)
    // Counts the link as used, so that ``stop(within:)`` ends it.
    if isConnected(id) { _ = links.use(id) }
  }

  /// Deletes a bond that must not be.
  func removeBond(_ id: PeripheralID) async {
    do throws(CentralError) {
      try await unpair(id)
    } catch .gone {
    } catch {
      log.warning("cannot delete its pairing: \(error)", ["path": id.path])
    }
  }

  private func callPair(_ id: PeripheralID, _ pairing: Pairing) async -> Result<Void, PairingError> {
    let pair = DBusCall("Pair", on: BlueZName.device, of: id.path)
    call(pair, timeout: limits.pair + limits.connect) { [weak self] answer in
      pairing.finish(answer)
      self?.checkConditions()
    }
    await pauseScan()
    // bluetoothd waits for a peripheral that is out of range without a limit, and may not answer if its object is removed.
    let hasEnded = { @LoopActor in pairing.isAnswered || self.tree.devices[id.path] == nil }
    let isLinked = await wait(limits.connect) { hasEnded() || self.isConnected(id) }
    if isLinked, await wait(limits.pair, until: { hasEnded() || self.isRefused(id) }) {
      // A keyboard is refused before the reply to Pair: by then bluetoothd would use it.
      if isRefused(id) { return .failure(.failed(.inputDevice)) }
      // The answer may follow the removal.
      _ = await wait(limits.treeUpdate) { pairing.isAnswered }
      return pairing.result ?? .failure(.failed(.gone))
    }
    await cancelPairing(id)
    _ = await wait(limits.treeUpdate) { pairing.isAnswered }
    // Before Pair there was no bond. bluetoothd answers Pair with a failure if the link ends before the services are resolved.
    if isPaired(id) { return .success(()) }
    return .failure(isLinked ? .timedOut : .notInRange)
  }
}
