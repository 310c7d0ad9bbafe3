import DBus
import EventLoop

extension Central {
  /// Starts or stops scanning. Scanning is paused during connects: with discovery active, bluetoothd takes 11 s to
  /// connect instead of 2.
  public func scan(_ isRequested: Bool) {
    scanner.request(isRequested)
    reconcileScan()
  }

  /// The peripherals that bluetoothd knows on the adapter, in range or not.
  public var peripherals: [Peripheral] {
    tree.devices.keys.sorted().compactMap { tree.peripheral(at: $0) }
  }

  /// Reports every known peripheral as ``CentralEvent/seen(_:)`` again.
  public func replayPeripherals() {
    for peripheral in peripherals { handler(.seen(peripheral)) }
  }

  /// Starts or stops discovery as requested, one call at a time.
  func reconcileScan() {
    if let change = scanner.beginChange(isAllowed: isAvailable && (!queue.isBusy || scanner.isBriefScan)) {
      loop.task(of: self) { await $0.perform(change) }
    }
  }

  private func perform(_ change: Scanner.Change) async {
    let phase =
      switch change {
      case .start: await startDiscovery()
      case .stop: await stopDiscovery()
      }
    scanner.endChange(in: state.isOn ? phase : .off)
    switch scanner.phase {
    case .on:
      noteDiscovery()
      watchScan()
    case .failed: retryScanLater()
    case .off, .changing: break
    }
    reconcileScan()
    checkConditions()
  }

  private func startDiscovery() async -> Scanner.Phase {
    do throws(CentralError) {
      // Without a filter bluetoothd does not report peripherals that are not discoverable, such as bonded micro:bits.
      _ = try await call(
        "SetDiscoveryFilter", on: BlueZName.adapter, of: adapterPath,
        [.properties(["Transport": .string("le")])], timeout: limits.local)
      _ = try await call("StartDiscovery", on: BlueZName.adapter, of: adapterPath, timeout: limits.local)
    } catch {
      if case .busy = error {
        // An earlier StopDiscovery was not answered in time.
        if tree.adapter?.isDiscovering == true { return .on }
        // bluetoothd also answers so if the kernel refuses to scan (recorded with 5.66 and 5.82). A discovery that it
        // counts as started would be `InProgress` for ever.
        _ = await stopDiscovery()
      }
      // Not a failure if the adapter was turned off during the call.
      if state.isOn { scanFailed("\(error)") }
      return .failed
    }
    return .on
  }

  private func scanFailed(_ reason: String) {
    switch scanner.failed(reason, mayReset: mayResetForScan) {
    case .first: log.notice("scanning failed: trying again", ["adapter": adapterName, "error": reason])
    case .problem: log.warning("cannot scan: trying again", ["adapter": adapterName, "error": reason])
    case .retry: break
    case .reset:
      log.warning("still cannot scan: resetting the adapter", ["adapter": adapterName, "error": reason])
      loop.task(of: self) { try? await $0.resetAdapter() }
    }
  }

  /// Only the gateway's central resets the adapter (a command's may run beside it), and only without connects and
  /// links.
  private var mayResetForScan: Bool {
    isExclusive && !queue.isBusy && !tree.devices.values.contains(where: \.isConnected)
  }

  /// Why bluetoothd does not scan although it should, after several attempts; nil: it scans, or need not.
  public var scanProblem: String? { scanner.problem }

  /// Notices that discovery works again.
  func noteDiscovery() {
    if tree.adapter?.isDiscovering == true, scanner.discoveryBegan() {
      log.notice("scanning again", ["adapter": adapterName])
    }
  }

  private func stopDiscovery() async -> Scanner.Phase {
    do throws(CentralError) {
      _ = try await call("StopDiscovery", on: BlueZName.adapter, of: adapterPath, timeout: limits.local)
    } catch {
      log.debug("StopDiscovery", ["error": error])
    }
    return .off
  }

  private func retryScanLater() {
    let timer = loop.timer(after: limits.retry) { [weak self] in
      self?.assumeIsolated { central in
        central.scanner.retry()
        central.reconcileScan()
      }
    }
    scanner.schedule(timer)
  }

  /// Restarts discovery if bluetoothd stops it without a signal, as after a reset of the controller, or if no
  /// advertisement is received: `Discovering` stays true when the kernel can no longer scan, and only StartDiscovery
  /// shows it (recorded with 5.66 and 5.82).
  private func watchScan() {
    let advertisements = tree.advertisements
    let timer = loop.timer(after: limits.scanCheck) { [weak self] in
      self?.assumeIsolated { central in
        guard case .on = central.scanner.phase else { return }
        if central.tree.adapter?.isDiscovering != true {
          central.scanFailed("bluetoothd has stopped discovery")
        } else if central.tree.advertisements != advertisements {
          return central.watchScan()
        }
        central.scanner.beginRestart()
        central.loop.task(of: central) { await $0.perform(.stop) }
      }
    }
    scanner.schedule(timer)
  }

  /// Resumes scanning briefly when consecutive connects have paused it for long: peripherals that are not seen are not
  /// connected to.
  func scanBriefly() async {
    guard scanner.isPaused(for: limits.scanPause) else { return }
    scanner.beginBriefScan()
    reconcileScan()
    try? await loop.sleep(for: limits.briefScan)
    scanner.endBriefScan()
  }

  /// Pauses scanning, and waits until discovery has stopped.
  func pauseScan() async {
    reconcileScan()
    _ = await wait(limits.scanStop) { $0.scanner.isIdle }
  }
}
