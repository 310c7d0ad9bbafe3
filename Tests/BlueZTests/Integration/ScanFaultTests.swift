import DBus
import EventLoop
import TestSupport
import Testing

@testable import BlueZ

/// A bluetoothd, or an adapter, that does not scan as it should.
@Suite struct ScanFaultTests {
  private static let failed = FakeBlueZ.error("org.bluez.Error.Failed", "Failed")

  @Test func refusedScanIsRetried() async throws {
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        if fake.count("StartDiscovery") < 3 {
          fake.refuse(call, "org.bluez.Error.Failed", "Failed")
        } else {
          fake.reply(call)
        }
      }
    ]) { $0.retry = .milliseconds(10) }
    await faults.central.scan(true)
    for _ in 0..<3 { try await faults.fake.called("StartDiscovery") }
    // It is on now: what follows is its end.
    await faults.central.scan(false)
    try await faults.fake.called("StopDiscovery")
    #expect(faults.fake.count("StartDiscovery") == 3)
    #expect(faults.fake.count("SetDiscoveryFilter") == 3)
    try await faults.tested.end()
  }

  /// An earlier call may have had its effect late.
  @Test func discoveryAlreadyOnIsRestarted() async throws {
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        if fake.count("StopDiscovery") > 0 { return fake.reply(call) }
        fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
        fake.refuse(call, "org.bluez.Error.InProgress", "Operation already in progress")
      }
    ]) { $0.retry = .milliseconds(10) }
    await faults.central.scan(true)
    try await faults.fake.called("StopDiscovery")
    #expect(await faults.central.wait(patience) { $0.isScanning })
    #expect(faults.fake.count("StartDiscovery") == 2)
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  /// StartDiscovery is not answered, and not tried again.
  private static func unanswered() async throws -> Faults {
    try await Faults(answers: ["StartDiscovery": FakeBlueZ.never]) {
      $0.local = .seconds(1)
      $0.retry = .seconds(3600)
    }
  }

  /// It might have its effect later, during a connect.
  @Test func aStartWithoutAnAnswerIsUndone() async throws {
    let faults = try await Self.unanswered()
    await faults.central.scan(true)
    try await faults.fake.called("StopDiscovery")
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
    try await faults.tested.end()
  }

  @Test func failureOfACancelledScanDoesNotCount() async throws {
    let faults = try await Self.unanswered()
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    await faults.central.scan(false)
    #expect(await faults.central.wait(patience) { $0.scanner.isIdle })
    await faults.fake.answer("StartDiscovery", Self.failed)
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  /// The next attempt mostly succeeds.
  @Test func oneFailureIsNotReported() async throws {
    let faults = try await Faults(answers: ["StartDiscovery": Self.failed]) { $0.retry = .seconds(3600) }
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  @Test func anAdapterWithALinkIsNotReset() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(answers: [
      "StartDiscovery": Self.failed, "Set": ResetFaultTests.power(asked),
    ]) {
      $0.retry = .milliseconds(1)
      $0.scanReset = BackOff(first: .milliseconds(1), longest: .seconds(3600))
    }
    // Another program's.
    await faults.fake.signal(Recorded.device(["Connected": .boolean(true)]))
    #expect(await faults.central.wait(patience) { $0.isConnected(Recorded.id) })
    await faults.central.scan(true)
    for _ in 0..<10 { try await faults.fake.called("StartDiscovery") }
    #expect(asked.elements == [])
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await faults.fake.called("Set")
    try await faults.tested.end()
  }

  @Test func aProblemEndsWithTheAdapter() async throws {
    let faults = try await Faults(answers: ["StartDiscovery": Self.failed]) { $0.retry = .milliseconds(1) }
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { $0.recovery?.reason == "Failed: Failed" })
    await faults.fake.answer("StartDiscovery", FakeBlueZ.never)
    await faults.fake.signal(Recorded.adapter(["Powered": .boolean(false)]))
    #expect(await faults.central.wait(patience) { !$0.state.isOn })
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  @Test func anAdapterThatIsTurnedOffMeanwhileIsNoFailure() async throws {
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        fake.signal(Recorded.adapter(["Powered": .boolean(false)]))
        fake.refuse(call, "org.bluez.Error.Failed", "Failed")
      }
    ]) { $0.retry = .seconds(3600) }
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { !$0.state.isOn && $0.scanner.isIdle })
    await faults.fake.answer("StartDiscovery", Self.failed)
    await faults.fake.signal(Recorded.adapter(["Powered": .boolean(true)]))
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  /// Without a connection every call fails at once.
  @Test func aCancelledCentralDoesNotTryAgainAndAgain() async throws {
    let faults = try await Faults(answers: ["StartDiscovery": FakeBlueZ.never])
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    try await faults.tested.end()
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
  }

  @Test func restartedBluetoothdIsScannedWithAgain() async throws {
    let faults = try await Faults(answers: ["StartDiscovery": FakeBlueZ.never])
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    try await faults.fake.leave()
    let fake = try await FakeBlueZ.start(bus: faults.bus.address)
    try await fake.called("StartDiscovery")
    #expect(await faults.central.wait(patience) { $0.tree.adapter?.isDiscovering == true })
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  /// Each pause begins a new attempt, and the one that was due is not made as well.
  @Test func pausesDoNotMultiplyTheAttempts() async throws {
    let retry = Duration.milliseconds(200)
    let faults = try await Faults(answers: ["StartDiscovery": Self.failed]) { $0.retry = retry }
    for _ in 0..<20 {
      await faults.central.scan(true)
      #expect(await faults.central.wait(patience) { $0.hasScanFailed })
      await faults.central.scan(false)
    }
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { $0.hasScanFailed })
    let begin = Moment.now
    faults.fake.calls.skip()
    for _ in 0..<3 { try await faults.fake.called("StartDiscovery") }
    #expect(begin.duration(to: .now) > retry * 2)
    try await faults.tested.end()
  }

  /// bluetoothd before 5.65 removes such a peripheral when discovery stops, unless Connect or Pair was called.
  @Test(arguments: [true, false])
  func aPeripheralThatGoesWithTheScanIsConnectedBeforeItsEnd(isPairing: Bool) async throws {
    let faults = try await Faults(answers: [
      "Pair": { fake, call in
        fake.signal(Recorded.device(["Connected": .boolean(true)]))
        fake.reply(call)
      }, "RegisterAgent": FakeBlueZ.ok, "UnregisterAgent": FakeBlueZ.ok,
      "StopDiscovery": { fake, call in
        fake.reply(call)
        if fake.count("Connect") + fake.count("Pair") == 0 {
          for event in Recorded.deviceRemoved { fake.signal(event) }
        }
        fake.signal(Recorded.adapter(["Discovering": .boolean(false)]))
      },
    ])
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    func attempt() async throws {
      if isPairing {
        try await faults.central.pair(Recorded.id, passkey: nil) {}
      } else {
        _ = try await faults.connect()
      }
    }
    await #expect(throws: (any Error).self) { try await attempt() }
    #expect(faults.fake.count("Connect") + faults.fake.count("Pair") == 0)
    try await faults.fake.called("StartDiscovery")
    await faults.fake.signal(Recorded.deviceAdded)
    _ = try await faults.tested.seen()
    try await attempt()
    // The scan pauses all the same.
    #expect(faults.fake.count("StopDiscovery") == 2)
    try await faults.tested.end()
  }

  /// As just after a reset of the adapter.
  @Test func aPeripheralThatWasGoneBeforeIsConnectedWithoutAScan() async throws {
    let faults = try await Faults()
    await faults.fake.signal(Recorded.removed(Recorded.device, "org.bluez.Device1"))
    #expect(await faults.central.wait(patience) { $0.peripherals.isEmpty })
    await #expect(throws: CentralError.gone) { try await faults.connect() }
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    await faults.fake.signal(Recorded.deviceAdded)
    #expect(await faults.central.wait(patience) { !$0.peripherals.isEmpty })
    _ = try await faults.connect()
    let calls = faults.fake.calls.elements.filter { ["StopDiscovery", "Connect"].contains($0) }
    #expect(calls == ["StopDiscovery", "Connect"])
    // What was gone is of no use to the next bluetoothd.
    await faults.central.scanner.noteGone(Recorded.id)
    try await faults.fake.leave()
    #expect(await faults.central.wait(patience) { $0.peripherals.isEmpty })
    #expect(await !faults.central.scanner.takeGone(Recorded.id))
    try await faults.tested.end()
  }

  /// As of an adapter without LE, which a reset does not change.
  @Test func refusedFilterIsAProblemWithoutAReset() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(answers: [
      "SetDiscoveryFilter": FakeBlueZ.error("org.bluez.Error.NotSupported", "Operation is not supported"),
      "Set": ResetFaultTests.power(asked),
    ]) {
      $0.retry = .milliseconds(1)
      $0.scanReset = BackOff(first: .milliseconds(1), longest: .seconds(3600))
    }
    await faults.central.scan(true)
    #expect(
      await faults.central.wait(patience) {
        $0.recovery?.reason == "NotSupported: Operation is not supported"
      })
    for _ in 0..<10 { try await faults.fake.called("SetDiscoveryFilter") }
    #expect(asked.elements == [])
    #expect(faults.fake.count("StartDiscovery") == 0)
    try await faults.tested.end()
  }
}

extension Central {
  fileprivate var isScanning: Bool { if case .on = scanner.phase { true } else { false } }
  fileprivate var hasScanFailed: Bool { if case .failed = scanner.phase { true } else { false } }
}
