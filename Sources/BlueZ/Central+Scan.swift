import DBus
import EventLoop
import GATT

extension Central {
  /// Starts or stops scanning, which is paused during connects: with discovery active, bluetoothd takes 11 s to connect
  /// instead of 2.
  /// - Parameter forEach: whether each advertisement is reported as ``CentralEvent/seen(_:)``, not only what changes.
  public func scan(_ isRequested: Bool, forEach: Bool = false) {
    scanner.request(isRequested, forEach: forEach)
    reconcileScan()
    reconcileMonitor()
  }

  /// The peripherals that bluetoothd knows on the adapter, in range or not.
  public var peripherals: [Peripheral] {
    tree.devices.keys.sorted().compactMap { tree.peripheral(at: $0) }
  }

  /// The peripheral at `address`, if bluetoothd knows it on the adapter.
  public func peripheral(at address: BluetoothAddress) -> Peripheral? {
    tree.peripheral(at: BlueZName.devicePath(address.description, of: adapterPath))
  }

  /// Reports every known peripheral as ``CentralEvent/seen(_:)`` again.
  public func replayPeripherals() {
    for peripheral in peripherals { handler(.seen(peripheral)) }
  }

  /// Reports the peripheral at `address` as ``CentralEvent/seen(_:)`` again, if it is known.
  public func replayPeripheral(at address: BluetoothAddress) {
    if let peripheral = peripheral(at: address) { handler(.seen(peripheral)) }
  }

  /// Starts or stops discovery as requested, one call at a time.
  func reconcileScan() {
    if scanner.needsRestart { return restartScan() }
    let isAllowed = isAvailable && (!queue.isBusy || scanner.pauses.isBriefScan)
    if let change = scanner.beginChange(isAllowed: isAllowed) {
      loop.task { await self.perform(change) }
    }
  }

  private func restartScan() {
    scanner.beginChange()
    loop.task { await self.perform(.stop) }
  }

  private func perform(_ change: Scanner.Change) async {
    var phase = Scanner.Phase.off
    switch change {
    case .start: phase = await startDiscovery() ? .on : .failed
    case .stop: await stopDiscovery()
    }
    scanner.endChange(in: state.isOn ? phase : .off)
    switch scanner.phase {
    case .on: watchScan()
    case .failed: retryScanLater()
    case .off, .changing: break
    }
    reconcileScan()
    checkConditions()
  }

  private func startDiscovery() async -> Bool {
    let (data, strength) = scanner.takeFilter()
    // With the pattern of another program alone, bluetoothd would report only what has that in its name or address.
    var filter: [(String, DBusValue)] = [
      ("Transport", .string("le")), ("DuplicateData", .boolean(data)), ("Pattern", .string("")),
    ]
    if strength { filter.append(("RSSI", .int16(-127))) }
    do throws(CentralError) {
      // Peripherals that are not discoverable, such as bonded micro:bits, are only reported with a filter.
      try await call(
        DBusCall("SetDiscoveryFilter", on: BlueZName.adapter, of: adapterPath, [.properties(filter)]))
      try await call(DBusCall("StartDiscovery", on: BlueZName.adapter, of: adapterPath))
    } catch {
      switch error {
      // bluetoothd counts a discovery as started and answers `InProgress` from then on, although the kernel refuses to
      // scan (recorded with 5.66 and 5.82); and it may start one after its answer was no longer awaited.
      case .busy, .timedOut: await stopDiscovery()
      default: break
      }
      // The error is no failure if scanning was called off, or the adapter turned off, during the call.
      if state.isOn, scanner.isRequested { scanFailed(error) }
      return false
    }
    return true
  }

  private func scanFailed(_ error: CentralError) {
    // An adapter that cannot do what is required, as one without LE, cannot do it after a reset either.
    let isRefused = if case .refused = error { true } else { false }
    switch scanner.failures.noteFailure("\(error)", mayReset: mayReset && !isRefused) {
    case .first: log.notice("scanning failed: trying again", ["adapter": adapterName, "error": error])
    case .problem:
      log.warning("cannot scan: trying again", ["adapter": adapterName, "error": error])
      handler(.recovery)
    case .retry: break
    case .reset:
      log.warning("still cannot scan: resetting the adapter", ["adapter": adapterName, "error": error])
      handler(.recovery)
      loop.task { await self.resetForScan() }
    }
  }

  /// Only the gateway's central resets the adapter (a command's may run beside it), and only without connects and links.
  private var mayReset: Bool { isExclusive && !queue.isBusy && !hasAnyLink }

  /// Whether any program has a link on the adapter.
  public var hasAnyLink: Bool { tree.devices.values.contains(where: \.isConnected) }

  private func resetForScan() async {
    do throws(CentralError) {
      try await resetAdapter()
    } catch {
      log.warning("cannot reset the adapter", ["adapter": adapterName, "error": error])
      // The adapter was not off: discovery goes on as it was, and is watched again.
      if scanner.phase == .on { restartScan() }
    }
  }

  /// Bluetoothd does not scan although it should, after several attempts; nil: it scans, or need not.
  public var recovery: Recovery? { scanner.failures.recovery }

  private func stopDiscovery() async {
    await callIgnoringFailure(DBusCall("StopDiscovery", on: BlueZName.adapter, of: adapterPath))
  }

  /// Discovery has yielded an advertisement, or has lasted.
  func noteScan() {
    if scanner.worked() {
      log.notice("scanning again", ["adapter": adapterName])
      handler(.recovery)
    }
  }

  private func retryScanLater() {
    scanner.timer = loop.timer(after: limits.retry) { [weak self] in
      self?.scanner.retry()
      self?.reconcileScan()
    }
  }

  /// Restarts discovery if bluetoothd stops it without a signal, as after a reset of the controller, or if no
  /// advertisement is received: `Discovering` stays true when the kernel can no longer scan, and only StartDiscovery
  /// shows it (recorded with 5.66 and 5.82).
  private func watchScan() {
    let advertisements = tree.advertisements
    scanner.timer = loop.timer(after: scanner.silence.longestSilence) { [weak self] in
      self?.checkScan(since: advertisements)
    }
  }

  private func checkScan(since advertisements: Int) {
    guard scanner.phase == .on else { return }
    if tree.adapter?.isDiscovering == true {
      noteScan()
      if tree.advertisements != advertisements {
        scanner.silence.heard()
        return watchScan()
      }
      if scanner.silence.heardNothing(mayReset: tree.advertisements > 0 && mayReset) {
        log.write(
          scanner.silence.wasResetInVain ? .info : .notice,
          "nothing was received for long: resetting the adapter, which may be stuck", ["adapter": adapterName]
        )
        loop.task { await self.resetForScan() }
        return
      }
    } else {
      scanFailed(.transient("bluetoothd has stopped discovery"))
    }
    restartScan()
  }

  /// Resumes scanning briefly when connects have paused it for long: peripherals that are not seen are not connected to.
  func scanBriefly(isPreferred: Bool) async {
    guard scanner.pauses.needsBriefScan(after: limits.scanPause, isPreferred: isPreferred) else { return }
    scanner.pauses.beginBriefScan()
    reconcileScan()
    try? await loop.sleep(for: limits.briefScan)
    scanner.pauses.endBriefScan()
  }

  /// Pauses scanning before Connect or Pair. bluetoothd before 5.65 removes a peripheral that is not discoverable as soon as
  /// discovery stops, unless it was called before: after one attempt to a peripheral that is gone, scanning is paused
  /// after the call.
  func pauseScan(before attempt: Attempt) async {
    attempt.pausesScan = true
    let wasGone = scanner.takeGone(attempt.peripheral)
    if !wasGone || tree.devices[attempt.peripheral.path] == nil { await pauseScan() }
  }

  /// Notes that an attempt has failed as the peripheral was gone, perhaps with discovery.
  func noteGone(_ isGone: Bool, _ attempt: Attempt) {
    if isGone, attempt.pausesScan { scanner.noteGone(attempt.peripheral) }
  }

  /// Pauses scanning, and waits until discovery has stopped.
  func pauseScan() async {
    scanner.pause()
    reconcileScan()
    _ = await wait(limits.scanStop) { self.scanner.isIdle }
  }
}
