import DBus
import EventLoop

/// Where discovery stands. bluetoothd is told one thing at a time, and what is wanted meanwhile afterwards.
struct Scanner {
  enum Phase {
    /// bluetoothd is not scanning for us → changing.
    case off
    /// StartDiscovery or StopDiscovery is on its way → on, off, failed.
    case changing
    /// bluetoothd scans for us → changing; off when the adapter goes.
    case on
    /// bluetoothd would not start; it is asked again later → off.
    case failed
  }

  var phase = Phase.off
  /// Whether the owner of the central wants to see peripherals.
  var isWanted = false
  /// How often in a row it failed; told once.
  var failures = 0
  /// Looks whether discovery is still on.
  var health: LoopTimer?
  /// Since when it pauses for connects; nil when it does not.
  var pausedSince: Moment?
  /// It goes on for a moment although connects wait.
  var isBreathing = false

  var isIdle: Bool {
    switch phase {
    case .off, .failed: true
    case .on, .changing: false
    }
  }

  mutating func adapterWentAway() {
    switch phase {
    case .on, .failed: phase = .off
    case .off, .changing: break
    }
    health?.cancel()
  }
}

extension Central {
  /// Scans from now on, or no longer. While a connect is under way scanning pauses: beside a running scan
  /// bluetoothd takes 11 s for one instead of 2.
  public func scan(_ isWanted: Bool) {
    scanner.isWanted = isWanted
    reconcileScan()
  }

  /// Tells every peripheral that is known once more, as ``CentralEvent/seen(_:)``.
  public func retell() {
    for path in tree.devices.keys.sorted() {
      if tree.devices[path]?.adapter == adapterPath, let peripheral = tree.peripheral(at: path) {
        handler(.seen(peripheral))
      }
    }
  }

  /// Brings discovery to what is wanted, one call at a time.
  func reconcileScan() {
    let isFree = !connectTurn.isWanted || scanner.isBreathing
    let wanted = scanner.isWanted && state.isOn && isFree && !isStopping
    switch (scanner.phase, wanted) {
    case (.off, true): change { await $0.startDiscovery() }
    case (.on, false):
      if scanner.isWanted { scanner.pausedSince = .now }
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
      // Without a filter bluetoothd would not report peripherals that are not discoverable, among them
      // bonded micro:bits.
      _ = try await call(
        "SetDiscoveryFilter", on: BlueZName.adapter, of: adapterPath,
        [.properties(["Transport": .string("le")])], timeout: limits.local)
      _ = try await call("StartDiscovery", on: BlueZName.adapter, of: adapterPath, timeout: limits.local)
    } catch {
      if case .busy = error {
        // It is on already: a stop of ours that was not answered in time.
        return .on
      }
      if case .unavailable = error { return .off }
      scanner.failures += 1
      if scanner.failures == 1 { log.warning("cannot start scanning", ["error": error]) }
      return .failed
    }
    if scanner.failures > 0 { log.notice("scanning again") }
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

  /// bluetoothd can stop scanning without a word (a controller that resets itself); then start again.
  private func watchScan() {
    scanner.health = loop.timer(after: limits.scanCheck) { [weak self] in
      self?.assumeIsolated { central in
        guard case .on = central.scanner.phase else { return }
        if central.tree.adapters[central.adapterPath]?.isDiscovering == true {
          central.watchScan()
        } else {
          central.log.notice("bluetoothd has stopped scanning by itself: starting it again")
          central.change { await $0.stopDiscovery() }
        }
      }
    }
  }

  /// A queue of connects, each of which may take its full time, must not keep the scan off for ever: a peripheral that
  /// is not seen cannot be asked for. So it goes on for a moment before the next one.
  func letScanBreathe() async {
    guard let since = scanner.pausedSince, since.duration(to: .now) >= limits.scanPause else { return }
    scanner.isBreathing = true
    reconcileScan()
    try? await loop.sleep(for: limits.scanBreath)
    scanner.isBreathing = false
  }

  /// Waits until the adapter is free of our discovery.
  func pauseScan() async {
    reconcileScan()
    _ = await wait(.seconds(12)) { $0.scanner.isIdle }
  }
}
