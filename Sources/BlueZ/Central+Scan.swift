import DBus
import EventLoop

/// The state of discovery. Calls are made one at a time; changes requested meanwhile follow.
struct Scanner {
  enum Phase {
    /// No discovery → changing.
    case off
    /// StartDiscovery or StopDiscovery is in progress → on, off, failed.
    case changing
    /// Discovering → changing; off when the adapter goes.
    case on
    /// StartDiscovery failed; to be retried → off.
    case failed
  }

  var phase = Phase.off
  /// Whether the user of the central wants to scan.
  var isRequested = false
  /// How often StartDiscovery failed in succession; only the first failure is logged.
  var failures = 0
  /// Checks that discovery is still active.
  var health: LoopTimer?
  /// Since when scanning has been paused for connects; nil when it is not.
  var pausedSince: Moment?
  /// Scanning is resumed briefly although connects are waiting.
  var isBriefScan = false

  var isIdle: Bool {
    switch phase {
    case .off, .failed: true
    case .on, .changing: false
    }
  }

  mutating func adapterTurnedOff() {
    switch phase {
    case .on, .failed: phase = .off
    case .off, .changing: break
    }
    health?.cancel()
  }
}

extension Central {
  /// Starts or stops scanning. Scanning is paused during connects: with discovery active, bluetoothd takes 11 s to
  /// connect instead of 2.
  public func scan(_ isRequested: Bool) {
    scanner.isRequested = isRequested
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
    let isAllowed = !connectMutex.isLocked || scanner.isBriefScan
    let desired = scanner.isRequested && state.isOn && isAllowed && !isStopping
    switch (scanner.phase, desired) {
    case (.off, true): change { await $0.startDiscovery() }
    case (.on, false):
      if scanner.isRequested { scanner.pausedSince = .now }
      change { await $0.stopDiscovery() }
    case (.failed, false): scanner.phase = .off
    case (.off, false), (.on, true), (.changing, _), (.failed, true): break
    }
  }

  private func change(_ body: @escaping @Sendable (isolated Central) async -> Scanner.Phase) {
    scanner.phase = .changing
    scanner.health?.cancel()
    loop.task(of: self) { await $0.finishChange(body) }
  }

  private func finishChange(_ body: @Sendable (isolated Central) async -> Scanner.Phase) async {
    let phase = await body(self)
    scanner.phase = state.isOn ? phase : .off
    switch phase {
    case .on:
      scanner.pausedSince = nil
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
      // Discovery is active already: an earlier StopDiscovery was not answered in time.
      if case .busy = error { return .on }
      if case .unavailable = error { return .off }
      scanner.failures += 1
      if scanner.failures == 1 {
        log.warning("cannot start scanning", ["adapter": adapterName, "error": error])
      }
      return .failed
    }
    if scanner.failures > 0 { log.notice("scanning again", ["adapter": adapterName]) }
    scanner.failures = 0
    return .on
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
    loop.timer(after: limits.retry) { [weak self] in
      self?.assumeIsolated { central in
        guard case .failed = central.scanner.phase else { return }
        central.scanner.phase = .off
        central.reconcileScan()
      }
    }
  }

  /// Restarts discovery if bluetoothd stops it without a signal, as after a reset of the controller.
  private func watchScan() {
    scanner.health = loop.timer(after: limits.scanCheck) { [weak self] in
      self?.assumeIsolated { central in
        guard case .on = central.scanner.phase else { return }
        if central.tree.adapter?.isDiscovering == true {
          central.watchScan()
        } else {
          central.log.notice(
            "bluetoothd has stopped scanning: restarting", ["adapter": central.adapterName])
          central.change { await $0.stopDiscovery() }
        }
      }
    }
  }

  /// Resumes scanning briefly when consecutive connects have paused it for long: peripherals that are not seen are not
  /// connected to.
  func scanBriefly() async {
    guard let since = scanner.pausedSince, since.duration(to: .now) >= limits.scanPause else { return }
    scanner.isBriefScan = true
    reconcileScan()
    try? await loop.sleep(for: limits.briefScan)
    scanner.isBriefScan = false
  }

  /// Pauses scanning, and waits until discovery has stopped.
  func pauseScan() async {
    reconcileScan()
    _ = await wait(.seconds(12)) { $0.scanner.isIdle }
  }
}
