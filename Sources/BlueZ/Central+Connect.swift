import DBus
import EventLoop

extension Central {
  /// Connects, and waits until the services are known. One at a time, in the order of asking, while scanning
  /// pauses; a link that is there already is adopted.
  /// - Parameter isPreferred: it was connected to before: it goes before newcomers, of which there may be a crowd
  ///   that cannot be connected to.
  /// - Parameter isWanted: asked on the loop when it is its turn, which may be long after.
  /// - Returns: the characteristics; none when the peripheral does not tell its services.
  public func connect(
    _ id: PeripheralID, isPreferred: Bool = false, while isWanted: @Sendable () -> Bool = { true }
  ) async throws(CentralError) -> [Characteristic] {
    await connectTurn.take(isPreferred: isPreferred)
    guard isWanted() else {
      connectTurn.pass()
      reconcileScan()
      throw .disconnected
    }
    connecting = id
    let result: Result<[Characteristic], CentralError>
    do throws(CentralError) {
      result = .success(try await attempt(id))
    } catch {
      result = .failure(error)
      if error != .gone, error != .unavailable {
        // Whatever half of a link there is must not outlive the attempt.
        await disconnect(id)
      }
    }
    connecting = nil
    connectTurn.pass()
    reconcileScan()
    checkConditions()
    return try result.get()
  }

  private func attempt(_ id: PeripheralID) async throws(CentralError) -> [Characteristic] {
    // A Connect beside a Disconnect says ok, and then the link goes all the same.
    _ = await wait(limits.disconnect) { !$0.leaving.contains(id) }
    try check(id)
    if !isConnected(id) {
      await letScanBreathe()
      await pauseScan()
      try check(id)
      _ = try await call("Connect", on: BlueZName.device, of: id.path, timeout: limits.connect)
      try await confirmConnected(id)
      // Asked here: what another function has found may be out of date when it returns.
      guard isConnected(id) else { throw .disconnected }
    }
    let link = links[id] ?? Link(values)
    links[id] = link
    guard await wait(limits.resolve, until: { link.hasEnded || $0.isResolved(id) }) else {
      throw .timedOut("the services were not resolved in time")
    }
    // They may be exported a little after they are said to be resolved, and come one by one.
    if tree.characteristics(of: id).isEmpty,
      await wait(limits.export, until: { link.hasEnded || !$0.tree.characteristics(of: id).isEmpty })
    {
      _ = await wait(limits.exportRest) { _ in link.hasEnded }
    }
    guard !link.hasEnded else { throw .disconnected }
    return tree.characteristics(of: id)
  }

  private func check(_ id: PeripheralID) throws(CentralError) {
    guard state.isOn, !isStopping else { throw .unavailable }
    guard tree.devices[id.path] != nil else { throw .gone }
  }

  private func isConnected(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.isConnected == true }
  private func isResolved(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.servicesResolved == true }

  /// Whether there is a link, or an attempt at one.
  func isLinked(_ id: PeripheralID) -> Bool { isConnected(id) || connecting == id }

  /// Makes sure, when Connect is answered, that the tree knows of the link.
  ///
  /// A link that comes up instantly may be answered before `Connected` is true, and then no signal tells: the
  /// property has to be asked for.
  private func confirmConnected(_ id: PeripheralID) async throws(CentralError) {
    if isConnected(id) { return }
    let told = tree.devices[id.path]?.linkChanges
    let reply = try await call(
      "Get", on: DBusName.properties, of: id.path, [.string(BlueZName.device), .string("Connected")],
      timeout: limits.local)
    // A signal that came meanwhile is newer than the answer.
    if reply.first?.bool == true, tree.devices[id.path]?.linkChanges == told {
      learn(["Connected": .boolean(true)], of: id)
    } else {
      _ = await wait(limits.settle) { $0.isConnected(id) }
    }
  }

  /// A characteristic of a resolved link has come or gone: reported once the others have followed.
  func servicesChanged(_ id: PeripheralID) {
    guard let link = links[id], connecting != id else { return }
    link.servicesTimer?.cancel()
    link.servicesTimer = loop.timer(after: limits.servicesChange) { [weak self] in
      self?.assumeIsolated { central in
        guard !link.hasEnded else { return }
        link.end { !central.tree.contains($0) }
        central.handler(.servicesChanged(id, central.tree.characteristics(of: id)))
      }
    }
  }

  /// Ends the link, or the attempt to get one. Returns when it is gone, or when bluetoothd was given its time.
  public func disconnect(_ id: PeripheralID) async {
    // bluetoothd takes 2 s over it, and notifications would go on meanwhile.
    let link = links.removeValue(forKey: id)
    link?.end()
    leaving.insert(id)
    checkConditions()
    do throws(CentralError) {
      _ = try await call("Disconnect", on: BlueZName.device, of: id.path, timeout: limits.disconnect)
    } catch {
      log.debug("Disconnect", ["error": error])
    }
    _ = await wait(limits.settle) { !$0.isConnected(id) }
    if let link, link.unanswered > 0 { await removeUnlessAnswered(id, link) }
    leaving.remove(id)
    checkConditions()
  }

  /// The link has ended, not by ``disconnect(_:)``.
  func linkEnded(_ id: PeripheralID) {
    guard let link = links.removeValue(forKey: id) else { return }
    link.end()
    guard link.unanswered > 0, leaving.insert(id).inserted else { return }
    loop.task(of: self) { central in
      await central.removeUnlessAnswered(id, link)
      central.leaving.remove(id)
      central.checkConditions()
    }
  }

  /// Removes the peripheral's objects from bluetoothd where an operation on its last link stays without an answer; it
  /// is found anew by the next scan.
  ///
  /// bluetoothd since 5.67 frees, without an answer, a read that waits for pairing when the link ends (src/shared/att.c:
  /// what `handle_error_rsp` has put back into the channel's queue). The next read of that object uses the freed memory:
  /// it is never answered, or bluetoothd crashes (both seen with 5.82).
  private func removeUnlessAnswered(_ id: PeripheralID, _ link: Link) async {
    guard let ended = tree.devices[id.path]?.linkChanges else { return }
    try? await loop.sleep(for: limits.settle)
    guard link.unanswered > 0, let device = tree.devices[id.path], device.linkChanges == ended,
      !device.isConnected,
      // Its bond would go, too.
      !device.isPaired,
      // A bluetoothd before 5.84 would crash.
      await !isNotifyAcquired(id)
    else { return }
    await remove(id)
  }

  /// Its owner is told that it is out of range, and that it is lost only if it is not found again.
  private func remove(_ id: PeripheralID) async {
    guard let peripheral = tree.peripheral(at: id.path) else { return }
    log.debug("removing the peripheral from bluetoothd, which does not answer for it", ["path": id.path])
    removed.insert(id)
    do throws(CentralError) {
      _ = try await call(
        "RemoveDevice", on: BlueZName.adapter, of: adapterPath, [.objectPath(id.path)], timeout: limits.local)
      handler(.seen(peripheral.outOfRange))
    } catch {
      log.debug("RemoveDevice", ["error": error])
    }
    loop.task(of: self) { central in
      let isBack = await central.wait(central.limits.rediscovery) { $0.tree.devices[id.path] != nil }
      central.removed.remove(id)
      if !isBack { central.handler(.lost(id)) }
    }
  }

  /// Whether bluetoothd believes that a program has taken notifications of the peripheral by a socket.
  private func isNotifyAcquired(_ id: PeripheralID) async -> Bool {
    for characteristic in tree.characteristics(of: id) where characteristic.flags.contains(.notify) {
      let reply = try? await call(
        "Get", on: DBusName.properties, of: characteristic.path,
        [.string(BlueZName.characteristic), .string("NotifyAcquired")], timeout: limits.local)
      if reply?.first?.bool == true { return true }
    }
    return false
  }
}
