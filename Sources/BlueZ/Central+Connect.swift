import DBus
import EventLoop

extension Central {
  /// Connects, and waits until the services are resolved. Links are made one at a time, with scanning paused; an existing
  /// link is adopted. Of a link that is up, others wait for the services for a few seconds only.
  /// - Parameter isPreferred: preferred connects alternate with the others that wait: peripherals that were connected
  ///   before and are received now are not delayed by many that may be unreachable.
  /// - Parameter isNeeded: called before connecting, which may be long after the call.
  /// - Returns: the characteristics; empty if the peripheral does not report its services.
  public func connect(
    _ id: PeripheralID, isPreferred: Bool = false, while isNeeded: @LoopActor () -> Bool = { true }
  ) async throws(CentralError) -> [Characteristic] {
    let attempt = Attempt(id)
    guard await begin(attempt, isPreferred: isPreferred, while: isNeeded) else { throw .disconnected }
    defer { endAttempt(attempt) }
    do throws(CentralError) {
      return try await connectNow(attempt, isPreferred: isPreferred)
    } catch {
      let explained = explain(error, attempt)
      noteGone(error == .gone, attempt)
      let isAnothers = noteBusy(error.isBusy, id)
      // A link to a refused peripheral that is not in use is another program's.
      if error != .gone, error != .unavailable, error != .inputDevice || links[id] != nil, !isAnothers {
        // End a link that is partly established.
        await disconnect(id)
      }
      // By now bluetoothd has told why the link ended.
      let failure = explained == .disconnected && wasNotEncrypted(attempt) ? .keyMissing : explained
      if unwantedBonds.contains(id) { await removeBond(id) }
      throw failure
    }
  }

  /// Notes since when attempts have failed because of another program's, or that the last one has not.
  /// - Returns: whether the other one still has the time that a passkey takes: Disconnect would end it. bluetoothd may keep the
  ///   Connect of a program that was killed until Disconnect.
  func noteBusy(_ isBusy: Bool, _ id: PeripheralID) -> Bool {
    guard isBusy else {
      links.busySince[id] = nil
      return false
    }
    let since = links.busySince[id] ?? .now
    let hasTime = since.duration(to: .now) < limits.pair
    links.busySince[id] = hasTime ? since : nil
    return hasTime
  }

  /// Waits until it is the attempt's turn.
  /// - Returns: whether the attempt is still needed, and has begun.
  func begin(
    _ attempt: Attempt, isPreferred: Bool, while isNeeded: @LoopActor () -> Bool
  ) async -> Bool {
    let id = attempt.peripheral
    // The last attempt may hang: others have their turn meanwhile.
    _ = await wait(limits.disconnect) { !self.links.isEnding(id) && !self.queue.isResolving(id) }
    await queue.begin(attempt, isPreferred: isPreferred)
    if isNeeded() { return true }
    endAttempt(attempt)
    return false
  }

  func endAttempt(_ attempt: Attempt) {
    queue.end(attempt)
    reconcileScan()
    checkConditions()
  }

  /// The error with what follows from a link that ended at once, although bluetoothd has a bond with the peripheral. This
  /// happens if the peripheral has lost its part of the bond: Connect succeeds (recorded with 5.66 and 5.82), or fails
  /// (5.66 with kernel 7.2). A Connect that fails proves nothing: a weak radio signal ends as short a link.
  private func explain(_ error: CentralError, _ attempt: Attempt) -> CentralError {
    guard isPaired(attempt.peripheral), let lasted = attempt.shortestLink, lasted < limits.shortLink
    else { return error }
    return switch error {
    case .disconnected: .keyMissing
    case .transient(let text): .cutShort(text)
    default: error
    }
  }

  /// Whether bluetoothd has ended the link to a paired peripheral, as 5.87 does if the kernel has lost the key.
  private func wasNotEncrypted(_ attempt: Attempt) -> Bool {
    guard isPaired(attempt.peripheral), let lasted = attempt.shortestLink else { return false }
    return attempt.wasEndedLocally && lasted < limits.unencryptedLink
  }

  /// Why services were not resolved. The link to a paired peripheral lasts without being encrypted if the kernel has lost
  /// the key, as by another program's CancelPairing (recorded with 5.66 and 5.82).
  private func unresolved(_ id: PeripheralID) async -> CentralError {
    let isResolved = try? await get("ServicesResolved", on: BlueZName.device, of: id.path)
    // Otherwise it is bluetoothd that does not go on.
    guard isResolved?.bool == false, isConnected(id), isPaired(id) else {
      return .timedOut("the services were not resolved in time")
    }
    return .keyMissing
  }

  private func connectNow(
    _ attempt: Attempt, isPreferred: Bool
  ) async throws(CentralError) -> [Characteristic] {
    let id = attempt.peripheral
    await waitForEnd(of: id)
    try check(id)
    guard !isRefused(id) else { throw .inputDevice }
    if links.notEnded.contains(id) { throw .timedOut("the last link has not ended") }
    if !isConnected(id) {
      await scanBriefly(isPreferred: isPreferred)
      await pauseScan(before: attempt)
      try check(id)
      attempt.connects()
      try await callConnect(id)
      try await confirmConnected(id)
      // Checked here: the link may have ended since `confirmConnected` returned.
      guard isConnected(id) else { throw .disconnected }
    }
    let link = links.use(id)
    let turnTimer = loop.timer(after: limits.turn) { [weak self] in
      self?.queue.endTurn(of: attempt)
      self?.reconcileScan()
      self?.checkConditions()
    }
    defer { turnTimer.cancel() }
    let isDone = await wait(limits.resolve) {
      link.hasEnded || self.isResolved(id) || self.isRefused(id)
    }
    guard isDone else { throw await unresolved(id) }
    // An input device is refused before bluetoothd uses its services.
    guard !isRefused(id) else { throw .inputDevice }
    // The objects may be exported a little after `ServicesResolved`, one by one.
    if tree.characteristics(of: id).isEmpty,
      await wait(limits.export, until: { link.hasEnded || !self.tree.characteristics(of: id).isEmpty })
    {
      _ = await wait(limits.exportRest) { link.hasEnded }
    }
    guard !link.hasEnded else { throw .disconnected }
    guard tree.devices[id.path]?.services.isTooLarge != true else {
      throw .refused(
        "it has more than \(ServiceTable.mostAttributes) services, characteristics and descriptors")
    }
    guard !isRefused(id) else { throw .inputDevice }
    return tree.characteristics(of: id)
  }

  /// Waits until a link that is ending has ended, and the attempt that made it. A Connect during a Disconnect succeeds, and
  /// the link then ends all the same.
  func waitForEnd(of id: PeripheralID) async {
    _ = await wait(limits.disconnect) {
      !self.links.isEnding(id) && (self.links[id] != nil || !self.queue.isResolving(id))
    }
  }

  /// The reply to a call.
  @LoopActor private final class Reply {
    var answer: DBusAnswer?
  }

  /// Calls Connect. bluetoothd does not reply if another program removes the device meanwhile.
  private func callConnect(_ id: PeripheralID) async throws(CentralError) {
    let begin = Moment.now
    let reply = Reply()
    let connect = DBusCall("Connect", on: BlueZName.device, of: id.path)
    call(connect, timeout: limits.connect) { [weak self] answer in
      reply.answer = answer
      self?.checkConditions()
    }
    await pauseScan()
    _ = await wait(limits.connect) { reply.answer != nil || self.tree.devices[id.path] == nil }
    guard await wait(limits.treeUpdate, until: { reply.answer != nil }) else { throw .gone }
    do throws(CentralError) {
      _ = try reply.answer?.mapError { CentralError($0, during: "Connect") }.get()
    } catch .transient(let text) where isRefusal(text) && .now < begin + limits.refusal {
      throw .transient("\(text), \(CentralError.atOnce)")
    }
  }

  /// Whether the controller may have refused a further link: none came up, and there are others.
  private func isRefusal(_ text: String) -> Bool {
    text.hasSuffix("abort-by-local") && !links.peripherals.isEmpty && queue.current?.shortestLink == nil
  }

  /// Throws unless the adapter can be used, and bluetoothd knows the peripheral.
  func check(_ id: PeripheralID) throws(CentralError) {
    guard isAvailable else { throw .unavailable }
    guard tree.devices[id.path] != nil else { throw .gone }
  }

  func isConnected(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.isConnected == true }
  func isPaired(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.isPaired == true }
  private func isResolved(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.servicesResolved == true }

  /// Whether the peripheral is connected or being connected.
  func isLinked(_ id: PeripheralID) -> Bool { isConnected(id) || queue.current?.peripheral == id }

  /// Makes sure that the tree shows the link once Connect has been answered.
  ///
  /// If the link comes up instantly, bluetoothd may reply before it sets `Connected`, and never signal the change: the
  /// property has to be read.
  private func confirmConnected(_ id: PeripheralID) async throws(CentralError) {
    if isConnected(id) { return }
    let linkChanges = tree.devices[id.path]?.linkChanges
    let connected = try await get("Connected", on: BlueZName.device, of: id.path)
    // A signal received meanwhile is newer than the reply.
    if connected?.bool == true, tree.devices[id.path]?.linkChanges == linkChanges {
      update(["Connected": .boolean(true)], of: id)
    } else {
      _ = await wait(limits.treeUpdate) { self.isConnected(id) }
    }
  }

  /// A characteristic of a resolved link was added or removed: reported once no more changes follow.
  func servicesChanged(_ id: PeripheralID) {
    guard let link = links[id], queue.attempt(with: id) == nil else { return }
    link.servicesTimer.set(.now + limits.servicesChange) { [weak self] in
      guard let self, !link.hasEnded else { return }
      link.end { !self.tree.contains($0) }
      handler(.servicesChanged(id, tree.characteristics(of: id)))
    }
  }

  /// Ends the link or the connection attempt. Returns when it has ended, or when bluetoothd takes too long.
  public func disconnect(_ id: PeripheralID) async {
    // Ended first: bluetoothd takes 2 s to disconnect, and notifications would arrive until then.
    let link = endUse(of: id)
    links.beginEnding(id)
    checkConditions()
    await callIgnoringFailure(
      DBusCall("Disconnect", on: BlueZName.device, of: id.path), timeout: limits.disconnect)
    _ = await wait(limits.treeUpdate) { !self.isConnected(id) }
    if isConnected(id) { links.notEnded.insert(id) } else { links.notEnded.remove(id) }
    if let link, link.hasUnanswered { await removeUnlessAnswered(id, link) }
    links.finishEnding(id)
    checkConditions()
  }

  /// The link has ended, perhaps without a call to ``disconnect(_:)``.
  func linkEnded(_ id: PeripheralID) {
    links.notEnded.remove(id)
    guard let link = endUse(of: id), link.hasUnanswered else { return }
    links.beginEnding(id)
    loop.task {
      await self.removeUnlessAnswered(id, link)
      self.links.finishEnding(id)
      self.checkConditions()
    }
  }

  /// Ends the use of a link, and its notifications: on the next link bluetoothd would write to the handles that they have now,
  /// before it knows the services, and a bonded peripheral remembers them.
  private func endUse(of id: PeripheralID) -> Link? {
    if let link = links[id] { unsubscribe(link) }
    return links.end(id)
  }

  /// Removes the peripheral's device object from bluetoothd if an operation on its last link stays unanswered; the next
  /// scan finds it again.
  ///
  /// bluetoothd since 5.67 frees a read that waits for pairing when the link ends, without replying (src/shared/att.c:
  /// what `handle_error_rsp` has put back into the channel's queue). The next read of that object uses the freed
  /// memory: it is never answered, or bluetoothd crashes (both seen with 5.82).
  private func removeUnlessAnswered(_ id: PeripheralID, _ link: Link) async {
    guard let ended = tree.devices[id.path]?.linkChanges else { return }
    try? await loop.sleep(for: limits.treeUpdate)
    guard link.hasUnanswered, let device = tree.devices[id.path], device.linkChanges == ended,
      !device.isConnected,
      // Removal would delete the bond too.
      !device.isPaired,
      // Removal would crash bluetoothd before 5.84.
      await !isNotifyAcquired(id)
    else { return }
    log.debug("an operation was never answered", ["path": id.path])
    try? await remove(id)
  }

  /// Removes the peripheral from bluetoothd; reports it as out of range, and as lost only if it is not found again.
  func remove(_ id: PeripheralID) async throws(CentralError) {
    guard let peripheral = tree.peripheral(at: id.path) else { throw .gone }
    log.debug("removing the peripheral from bluetoothd", ["path": id.path])
    tree.expectRemoval(of: id.path, true)
    do throws(CentralError) {
      try await call(
        DBusCall("RemoveDevice", on: BlueZName.adapter, of: adapterPath, [.objectPath(id.path)]))
    } catch {
      tree.expectRemoval(of: id.path, false)
      log.debug("RemoveDevice", ["error": error])
      throw error
    }
    // The removal may be signalled after the reply, or the peripheral be found again before the reply is handled.
    let isBack = { @LoopActor in
      self.tree.devices[id.path] != nil && !self.tree.expectedRemovals.contains(id.path)
    }
    if !isBack() { handler(.seen(peripheral.removed)) }
    loop.task {
      _ = await self.wait(self.limits.rediscovery, until: isBack)
      self.tree.expectRemoval(of: id.path, false)
      if self.tree.devices[id.path] == nil { self.handler(.lost(id)) }
    }
  }

  /// Whether bluetoothd reports that a program has acquired notifications of the peripheral (`AcquireNotify`).
  func isNotifyAcquired(_ id: PeripheralID) async -> Bool {
    for characteristic in tree.characteristics(of: id) where characteristic.flags.contains(.notify) {
      let isAcquired = try? await get("NotifyAcquired", on: BlueZName.characteristic, of: characteristic.path)
      if isAcquired?.bool == true { return true }
    }
    return false
  }
}
