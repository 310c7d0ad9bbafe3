import DBus
import EventLoop

extension Central {
  /// Beyond it an attempt is called off, for the sake of the others that wait. (bluetoothd itself gives up
  /// after 40 s.)
  private static let connectLimit = Duration.seconds(20)
  /// A peripheral that answers nothing is dropped by bluetoothd after 30 s.
  private static let resolveLimit = Duration.seconds(35)

  /// Connects, and waits until the services are known. One at a time, in the order of asking, while scanning
  /// pauses; a link that is there already is adopted.
  /// - Returns: the characteristics; none when the peripheral does not tell its services.
  public func connect(_ id: PeripheralID) async throws(CentralError) -> [Characteristic] {
    await connectTurn.take()
    connecting = id
    let result: Result<[Characteristic], CentralError>
    do throws(CentralError) {
      result = .success(try await attempt(id))
    } catch {
      result = .failure(error)
      if error != .gone, error != .unavailable {
        // Whatever half of a link there is must not outlive the attempt.
        await disconnect(id, within: .seconds(6))
      }
    }
    connecting = nil
    connectTurn.pass()
    reconcileScan()
    return try result.get()
  }

  private func attempt(_ id: PeripheralID) async throws(CentralError) -> [Characteristic] {
    try check(id)
    if !isConnected(id) {
      await pauseScan()
      try check(id)
      _ = try await call("Connect", on: BlueZName.device, of: id.path, timeout: Self.connectLimit)
    }
    try await confirmConnected(id)
    let link = links[id] ?? Link()
    links[id] = link
    guard await wait(Self.resolveLimit, until: { link.hasEnded || $0.isResolved(id) }) else {
      throw .timedOut("the services were not resolved in time")
    }
    // They may be exported a little after they are said to be resolved.
    _ = await wait(.seconds(5)) { link.hasEnded || !$0.tree.characteristics(of: id).isEmpty }
    guard !link.hasEnded else { throw .disconnected }
    return tree.characteristics(of: id)
  }

  private func check(_ id: PeripheralID) throws(CentralError) {
    guard state.isOn, !isStopping else { throw .unavailable }
    guard tree.devices[id.path] != nil else { throw .gone }
  }

  private func isConnected(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.isConnected == true }
  private func isResolved(_ id: PeripheralID) -> Bool { tree.devices[id.path]?.servicesResolved == true }

  /// A link that comes up instantly may be answered before `Connected` is true, and then no signal tells:
  /// ask for the property.
  private func confirmConnected(_ id: PeripheralID) async throws(CentralError) {
    if isConnected(id) { return }
    let reply = try await call(
      "Get", on: DBusName.properties, of: id.path, [.string(BlueZName.device), .string("Connected")],
      timeout: .seconds(5))
    if reply.first?.bool == true {
      learn(["Connected": .boolean(true)], of: id)
    } else if await !wait(.seconds(2), until: { $0.isConnected(id) }) {
      throw .disconnected
    }
  }

  /// Ends the link, or the attempt to get one. Returns when it is gone, or after `limit`.
  public func disconnect(_ id: PeripheralID, within limit: Duration = .seconds(6)) async {
    // bluetoothd takes 2 s over it, and notifications would go on meanwhile.
    links.removeValue(forKey: id)?.end()
    checkConditions()
    let deadline = ContinuousClock.now + limit
    do throws(CentralError) {
      _ = try await call("Disconnect", on: BlueZName.device, of: id.path, timeout: limit)
    } catch {
      log.debug("Disconnect", ["error": error])
    }
    _ = await wait(min(.seconds(1), ContinuousClock.now.duration(to: deadline))) { !$0.isConnected(id) }
  }
}
