import BlueZ
import EventLoop

/// The session's link, from the choice of the adapter to its end.
extension LinkSession {
  /// Chooses the adapter, and connects.
  func connect() {
    guard case .connecting(let isWithdrawn) = machine.state else { return adapters.stopWaiting() }
    if isWithdrawn {
      adapters.stopWaiting()
      return feed { $0.connected(.failed(.gone), $1) }
    }
    let before = adapters.chosen
    let again: @LoopActor () -> Void = { [weak self] in self?.connect() }
    switch adapters.choose(hasFreeLink: context.turns.free(for: device), orWait: again) {
    case .use(let index):
      context.turns.occupy(device, on: index)
      if let before, index != before {
        context.log.info("switching to adapter \(adapter.name)", device.fields)
      }
      connectNow()
    case .full(let adapters): context.turns.wait(device, on: adapters, isUrgent: isUrgent)
    case .wait: break
    case .none: feed { $0.connected(.failed(.gone), $1) }
    }
  }

  private func connectNow() {
    guard let peripheral else { return feed { $0.connected(.failed(.gone), $1) } }
    context.log.debug("connecting", ["device": device.id, "adapter": adapter.name])
    let isPreferred = device.record.id != nil && adapters.isReceived
    let isWanted: @LoopActor () -> Bool = { [self] in machine.state.published == .connecting }
    device.task { [self] central in
      let connection: PeripheralSession.Connection
      do throws(CentralError) {
        if let failure = await pairFirst(peripheral, on: central, while: isWanted) {
          connection = .notPaired(failure)
        } else {
          let characteristics = try await central.connect(
            peripheral, isPreferred: isPreferred, while: isWanted)
          // The device was removed or disabled meanwhile: nothing else would end the link.
          guard isWanted() else { return await central.disconnect(peripheral) }
          connection = begin(characteristics) ? .connected : .unsuitable
        }
      } catch {
        connection = .failed(error)
      }
      feed { $0.connected(connection, $1) }
    }
  }

  /// - Returns: whether the link offers what the profile requires.
  func begin(_ characteristics: [Characteristic]) -> Bool {
    let isSuitable = link.begin(characteristics)
    expectReadings()
    return isSuitable
  }

  private func expectReadings() {
    let isExpected = link.alive != nil
    feed { $0.expectReadings(isExpected, $1) }
  }

  func becameLive() {
    adapters.becameLive()
    // A request that came during the attempt to connect, to a peripheral that has a bond.
    if adapters.isPaired { endPairing(.success(.paired)) }
    context.turns.becameLive(device)
    visits.visited()
    link.up()
    device.restoreLEDsOfLastLink()
    readInformation()
    visits.resume(nil)
    if let changedServices { servicesChanged(changedServices) }
    changedServices = nil
  }

  func becameOnline() { device.handle(.online(hasInformation: link.hasInformation)) }

  /// Reads the device information last, as nothing depends on it.
  private func readInformation() {
    guard link.hasInformation else { return }
    device.task { [self] central in
      if await !link.readInformation(on: central) { unresponsive() }
    }
  }

  func servicesChanged(_ characteristics: [Characteristic]) {
    guard let changed = link.changeServices(to: characteristics) else {
      device.handle(.offered(link.offered))
      return feed { session, _ in session.servicesLost() }
    }
    expectReadings()
    device.task { [self] central in
      let isUsed = await link.use(changed, on: central) { self.machine.state.isLive }
      // Reported last, when commands for the added properties can be carried out.
      if isUsed { device.handle(.offered(link.offered)) }
    }
  }

  /// Resets the state that belongs to a link.
  func resetLink() {
    link.end()
    changedServices = nil
  }
}
