import DBus

/// Connect, Disconnect and the loss of links.
extension Bluetoothd {
  // MARK: Connect

  mutating func connect(
    _ request: Request, _ index: Int, at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard adapter == .on else { throw .failed("Input/output error") }
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting, .linking, .linked: throw .failed("Operation already in progress")
    // While a Disconnect waits the link is up: the answer is ok, and the link goes all the same.
    case .resolving, .up, .leaving: return emit(.reply(request.id, []))
    case .none: break
    }
    let attempt = beginAttempt(index)
    devices[index]?.link = .waiting(request.id)
    connecting.append(index)
    schedule.add(.connectTimesOut(peripheral: index, attempt: attempt), at: now + timing.connectTimeout)
    pursueConnects(at: now)
  }

  /// What was planned for the device's link so far no longer counts.
  @discardableResult
  mutating func beginAttempt(_ index: Int) -> UInt64 {
    attempts += 1
    devices[index]?.attempt = attempts
    return attempts
  }

  /// Makes a link to the first of those waited for that can be heard. The radio makes one at a time.
  mutating func pursueConnects(at now: ContinuousClock.Instant, betweenScans: Bool = false) {
    while linking == nil, !isDiscovering || betweenScans {
      let next = connecting.first { index in
        if case .waiting = devices[index]?.link { peripherals[index].isAudible } else { false }
      }
      guard let next, let device = devices[next], case .waiting(let call) = device.link else { return }
      devices[next]?.link = .linking(call)
      linking = next
      // The exchange of features, after Connected is true, is the last eighth.
      let delay = timing.connect * 7 / 8
      if delay > .zero {
        schedule.add(.linked(peripheral: next, attempt: device.attempt), at: now + delay)
      } else {
        linked(next, device.attempt, at: now)
      }
    }
  }

  mutating func linked(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt, case .linking(let call) = device.link else {
      return
    }
    linking = nil
    guard peripherals[index].isAudible else {
      // It went meanwhile: wait for it again.
      devices[index]?.link = .waiting(call)
      return pursueConnects(at: now)
    }
    connecting.removeAll { $0 == index }
    peripherals[index].linked = true
    devices[index]?.link = .linked(call)
    devices[index]?.temporary = false
    stored.insert(index)
    change(device: index, [("Connected", .boolean(true))])
    if timing.connect > .zero {
      schedule.add(.featured(peripheral: index, attempt: attempt), at: now + timing.connect / 8)
      pursueConnects(at: now)
    } else {
      featured(index, attempt, at: now)
    }
  }

  mutating func featured(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt, case .linked(let call) = device.link else {
      return
    }
    devices[index]?.link = .resolving
    emit(.reply(call, []))
    // Short as it is, a caller that looks at once finds no services yet, as with the real one.
    if timing.connect > .zero {
      schedule.add(.resolved(peripheral: index, attempt: attempt), at: now + timing.connect / 100)
    } else {
      resolved(index, attempt, at: now)
    }
  }

  mutating func resolved(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt, case .resolving = device.link else {
      return
    }
    devices[index]?.link = .up
    withdrawServices(of: index)
    exportServices(of: index)
    let resolved: (String, DBusValue?) = ("ServicesResolved", .boolean(true))
    if device.discovered {
      change(device: index, [resolved])
    } else {
      devices[index]?.discovered = true
      change(device: index, [("UUIDs", .strings(peripherals[index].uuids)), resolved])
    }
    resubscribe(index, at: now)
  }

  mutating func connectTimesOut(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt else { return }
    cancelConnect(index, .abortByLocal, at: now)
  }

  /// Ends a Connect that has no link yet.
  mutating func cancelConnect(_ index: Int, _ error: BlueZError, at now: ContinuousClock.Instant) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .waiting(let call), .linking(let call):
      devices[index]?.link = .none
      devices[index]?.lastHeard = now
      connecting.removeAll { $0 == index }
      if linking == index { linking = nil }
      emit(.refuse(call, error))
      if adapter == .on { pursueConnects(at: now) }
    case .none, .linked, .resolving, .up, .leaving: break
    }
  }

  // MARK: Disconnect

  mutating func disconnect(_ request: Request, _ index: Int, at now: ContinuousClock.Instant) {
    guard let device = devices[index] else { return }
    switch device.link {
    case .none: emit(.reply(request.id, []))
    case .waiting, .linking:
      cancelConnect(index, .canceled, at: now)
      emit(.reply(request.id, []))
    case .linked, .resolving, .up, .leaving:
      leave(index, at: now) { $0.calls.append(request.id) }
    }
  }

  /// RemoveDevice on a device with a link: the link first, then the device.
  mutating func remove(connected index: Int, for call: CallID, at now: ContinuousClock.Instant) {
    leave(index, at: now) { $0.removal = call }
  }

  /// Begins to leave, or joins a leaving that is under way.
  private mutating func leave(
    _ index: Int, at now: ContinuousClock.Instant, _ note: (inout Device.Leaving) -> Void
  ) {
    guard let device = devices[index] else { return }
    var leaving: Device.Leaving
    switch device.link {
    case .none, .waiting, .linking: return
    case .leaving(let present):
      leaving = present
      note(&leaving)
      devices[index]?.link = .leaving(leaving)
      return
    case .linked(let call):
      emit(.refuse(call, .canceled))
      leaving = Device.Leaving(resolved: false)
    case .resolving:
      leaving = Device.Leaving(resolved: false)
    case .up:
      leaving = Device.Leaving(resolved: true)
    }
    note(&leaving)
    devices[index]?.link = .leaving(leaving)
    schedule.add(.leaves(peripheral: index, attempt: device.attempt), at: now + timing.disconnect)
    if timing.disconnect == .zero { leave(index, device.attempt, at: now) }
  }

  /// The wait of a Disconnect is over.
  mutating func leave(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt, case .leaving(let leaving) = device.link
    else { return }
    unlink(index, at: now)
    if leaving.resolved { change(device: index, [("ServicesResolved", .boolean(false))]) }
    hangUpChannels(of: index)
    for call in leaving.calls { emit(.reply(call, [])) }
    if let removal = leaving.removal { emit(.reply(removal, [])) }
    change(device: index, [("Connected", .boolean(false))])
    if leaving.removal != nil {
      forget(index)
    } else {
      failOperations(of: index)
    }
    pursueConnects(at: now)
  }

  // MARK: Loss

  /// The link ends from the other side, by the radio, or with the adapter's power.
  mutating func lose(_ index: Int, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.isConnected else { return }
    unlink(index, at: now)
    switch device.link {
    case .none, .waiting, .linking: break
    case .linked(let call):
      emit(.refuse(call, .abortByLocal))
      change(device: index, [("Connected", .boolean(false))])
    case .resolving: change(device: index, [("Connected", .boolean(false))])
    case .up: loseServices(of: index, resolved: true)
    case .leaving(let leaving):
      loseServices(of: index, resolved: leaving.resolved)
      for call in leaving.calls + [leaving.removal].compactMap({ $0 }) { emit(.reply(call, [])) }
      if leaving.removal != nil { return forget(index) }
    }
    failOperations(of: index)
  }

  private mutating func loseServices(of index: Int, resolved: Bool) {
    let connected: (String, DBusValue?) = ("Connected", .boolean(false))
    change(device: index, resolved ? [("ServicesResolved", .boolean(false)), connected] : [connected])
    hangUpChannels(of: index)
  }

  private mutating func unlink(_ index: Int, at now: ContinuousClock.Instant) {
    devices[index]?.link = .none
    for handle in devices[index]?.subscriptions.keys.sorted() ?? [] {
      devices[index]?.subscriptions[handle]?.isConfigured = false
    }
    beginAttempt(index)
    peripherals[index].linked = false
    listen(for: index, at: now)
  }

  /// The sockets of AcquireNotify do not outlive the link; StartNotify does.
  private mutating func hangUpChannels(of index: Int) {
    for (handle, subscription) in devices[index]?.subscriptions ?? [:] where subscription.channel != nil {
      releaseSocket(index, handle)
    }
  }

  private mutating func failOperations(of index: Int) {
    let operations = devices[index]?.operations ?? []
    devices[index]?.operations = []
    for operation in operations { fail(operation, .unlikely, index) }
  }

  /// The end of a link on which the peripheral has answered nothing.
  mutating func hangUp(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard devices[index]?.attempt == attempt else { return }
    lose(index, at: now)
    pursueConnects(at: now)
  }

  /// Nobody has confirmed the pairing: link and device go, and nothing is told but that the objects are gone.
  mutating func endPairing(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard devices[index]?.attempt == attempt else { return }
    stored.remove(index)
    unlink(index, at: now)
    forget(index)
    pursueConnects(at: now)
  }

  mutating func superviseLink(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt,
      // It may have been back meanwhile, and gone again.
      let since = peripherals[index].goneSince, since + timing.supervision <= now
    else { return }
    lose(index, at: now)
    pursueConnects(at: now)
  }
}
