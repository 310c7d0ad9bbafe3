import BlueZ
import EventLoop

/// The session's link, from the choice of the adapter to its end.
extension LinkSession {
  /// Chooses the adapter, and connects.
  func connect() {
    guard case .connecting(let isWithdrawn) = machine.state else { return adapters.stopWaiting() }
    if isWithdrawn {
      adapters.stopWaiting()
      return feed(.connected(.failed(.gone)))
    }
    let before = adapters.chosen
    let again: @LoopActor () -> Void = { [weak self] in self?.connect() }
    switch adapters.choose(freeLinks: context.scheduler.free(for: device), orWait: again) {
    case .use(let index):
      context.scheduler.occupy(device, on: index)
      if let before, index != before {
        context.log.info("switching to adapter \(central.adapterName)", device.fields)
      }
      connectNow()
    case .full(let adapters): context.scheduler.wait(device, on: adapters, isUrgent: isUrgent)
    case .wait: break
    case .none: feed(.connected(.failed(.gone)))
    }
  }

  private func connectNow() {
    guard let peripheral else { return feed(.connected(.failed(.gone))) }
    context.log.debug("connecting", ["device": device.id, "adapter": central.adapterName])
    let isPreferred = !device.hasNoStoredID && adapters.isReceived
    let isWanted: @LoopActor () -> Bool = { [self] in machine.state.published == .connecting }
    device.task { [self] central in
      let connection: LinkMachine.Connection
      do throws(CentralError) {
        if let failure = await pairFirst(peripheral, on: central, while: isWanted) {
          connection = .notPaired(failure)
        } else {
          let characteristics = try await central.connect(
            peripheral, isPreferred: isPreferred, while: isWanted)
          // The device was removed or disabled meanwhile: nothing else would end the link.
          guard isWanted() else { return await central.disconnect(peripheral) }
          connection = begin(characteristics)
        }
      } catch {
        connection = .failed(error)
      }
      feed(.connected(connection))
    }
  }

  func begin(_ characteristics: [Characteristic]) -> LinkMachine.Connection {
    let connection = services.begin(characteristics)
    // Noted also for a link that is then ended as unsuitable: the option `log` would make it suitable.
    noteLog()
    expectReadings()
    return connection
  }

  private func expectReadings() { feed(.readingsExpected(services.alive != nil)) }

  func becameLive() {
    adapters.becameLive()
    // A request that came during the attempt to connect, to a peripheral that has a bond.
    if adapters.isPaired { endPairing(.success(.paired)) }
    context.scheduler.becameLive(device)
    feedPresence { $0.visited(at: .now) }
    services.up()
    device.updateLEDs()
    // Last, as nothing depends on it.
    if services.hasInformation { device.task { [services] in await services.readInformation(on: $0) } }
    requests.resume(nil)
    device.collectLog()
    if let changedServices { liveServicesChanged(to: changedServices) }
    changedServices = nil
    noteFirstValues()
  }

  func liveServicesChanged(to characteristics: [Characteristic]) {
    guard let changed = services.replace(with: characteristics) else {
      device.offerChanged(to: services.offered)
      return feed(.servicesLost)
    }
    expectReadings()
    device.task { [self] central in
      let isUsed = await services.use(changed, on: central)
      // Reported last, when commands for the added properties can be carried out.
      if isUsed { device.offerChanged(to: services.offered) }
      device.collectLog()
    }
  }

  /// Resets the state that belongs to a link.
  func resetLink() {
    services.end()
    changedServices = nil
  }
}
