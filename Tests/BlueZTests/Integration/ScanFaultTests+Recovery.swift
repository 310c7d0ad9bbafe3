import DBus
import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import BlueZ

/// Discovery that ends, receives nothing, or is refused again and again.
extension ScanFaultTests {
  private static let soon = BackOff(first: .milliseconds(20), longest: .milliseconds(20), spread: 0)

  @Test func persistentScanFailureLeadsToAReset() async throws {
    let asked = Record<Bool>()
    // While it is reset.
    let recoveries = Record<Recovery?>()
    let central = Mutex<Central?>(nil)
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        // A power cycle helps.
        if asked.elements != [false, true] { return fake.refuse(call, "org.bluez.Error.Failed", "Failed") }
        fake.reply(call)
        fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
        fake.signal(Recorded.device(["RSSI": .int16(-51)]))
      },
      "Set": ResetFaultTests.power(asked) { _, _ in
        recoveries.append(central.withLock { $0 }?.recovery)
        return nil
      },
    ]) {
      $0.retry = .milliseconds(10)
      $0.scanReset = BackOff(first: .milliseconds(50), longest: .seconds(60))
      // What is received may come before discovery counts as started: then the first check ends the recovery.
      $0.scanCheck = BackOff(first: .seconds(1), longest: .seconds(3600), spread: 0)
    }
    central.withLock { $0 = faults.central }
    await faults.central.scan(true)
    for _ in 0..<2 { try await faults.fake.called("Set") }
    let recovery = try #require(recoveries.elements[0])
    #expect(recovery.step == .resetAdapter && recovery.reason == "Failed: Failed" && recovery.count > 2)
    #expect(
      await faults.central.wait(patience) {
        $0.recovery == nil && $0.tree.adapter?.isDiscovering == true
      })
    #expect(asked.elements == [false, true])
    try await faults.tested.end()
  }

  /// Discovery that starts and stops as it should; what is received with it is another matter.
  private static func discovery(
    _ power: @escaping FakeBlueZ.Answer, isReceiving: @escaping @LoopActor (FakeBlueZ) -> Bool
  ) -> [String: FakeBlueZ.Answer] {
    [
      "StartDiscovery": { fake, call in
        fake.reply(call)
        fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
        if isReceiving(fake) { fake.signal(Recorded.device(["RSSI": .int16(-51)])) }
      },
      "StopDiscovery": { fake, call in
        fake.reply(call)
        fake.signal(Recorded.adapter(["Discovering": .boolean(false)]))
      },
      "Set": power,
    ]
  }

  /// StartDiscovery succeeds, `Discovering` is true, and nothing is received any more. The reset is due while another program
  /// has a link, and is made after that.
  @Test func adapterThatReceivesNothingAnyMoreIsReset() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(
      answers: Self.discovery(ResetFaultTests.power(asked)) { fake in
        let count = fake.count("StartDiscovery")
        if [1, 7].contains(count) { fake.signal(Recorded.device(["Connected": .boolean(count == 1)])) }
        return count == 1 || asked.elements == [false, true]
      }
    ) { $0.scanCheck = Self.soon }
    await faults.central.scan(true)
    for _ in 0..<9 { try await faults.fake.called("StartDiscovery") }
    #expect(asked.elements == [false, true])
    try await faults.tested.end()
  }

  /// The controller is stuck: it receives nothing, and cannot be powered off either.
  @Test func discoveryIsRestartedAlsoAfterAResetThatFails() async throws {
    let asked = Record<Bool>()
    let power = ResetFaultTests.power(asked) { isOn, _ in isOn ? nil : "no" }
    let faults = try await Faults(
      answers: Self.discovery(power) { $0.count("StartDiscovery") == 1 }
    ) { $0.scanCheck = Self.soon }
    await faults.central.scan(true)
    for _ in 0..<8 { try await faults.fake.called("StartDiscovery") }
    #expect(asked.elements == [false, true])
    try await faults.tested.end()
  }

  /// bluetoothd answers `InProgress` also if the kernel refuses to scan.
  @Test func repeatedInProgressIsAProblem() async throws {
    let faults = try await Faults(answers: [
      "StartDiscovery": FakeBlueZ.error("org.bluez.Error.InProgress", "Operation already in progress")
    ]) { $0.retry = .milliseconds(10) }
    // Another program's discovery.
    await faults.fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
    await faults.central.scan(true)
    #expect(
      await faults.central.wait(patience) {
        $0.recovery?.reason == "InProgress: Operation already in progress"
      })
    #expect(faults.fake.count("StopDiscovery") >= 2)
    try await faults.tested.end()
  }

  @Test func scanThatEndsWithoutASignalIsRestarted() async throws {
    let faults = try await Faults { $0.scanCheck = Self.soon }
    await faults.central.scan(true)
    try await faults.fake.called("StartDiscovery")
    await faults.fake.signal(Recorded.adapter(["Discovering": .boolean(false)]))
    try await faults.fake.called("StopDiscovery")
    try await faults.fake.called("StartDiscovery")
    // From now on without a discovery.
    await faults.fake.answer("StartDiscovery", FakeBlueZ.ok)
    #expect(await faults.central.wait(patience) { $0.recovery?.reason == "bluetoothd has stopped discovery" })
    try await faults.tested.end()
  }

  @Test func scanThatEndsRepeatedlyIsAProblem() async throws {
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        fake.reply(call)
        fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
        fake.signal(Recorded.adapter(["Discovering": .boolean(false)]))
      }
    ]) { $0.scanCheck = Self.soon }
    await faults.central.scan(true)
    #expect(await faults.central.wait(patience) { $0.recovery?.reason == "bluetoothd has stopped discovery" })
    try await faults.tested.end()
  }

  @Test func aScanWithoutAdvertisementsIsStartedAgain() async throws {
    let faults = try await Faults { $0.scanCheck = Self.soon }
    await faults.central.scan(true)
    for _ in 0..<3 { try await faults.fake.called("StartDiscovery") }
    #expect(await faults.central.recovery == nil)
    try await faults.tested.end()
  }

  @Test func aScanWithAdvertisementsGoesOn() async throws {
    let check = Duration.seconds(3)
    let faults = try await Faults(answers: [
      "StartDiscovery": { fake, call in
        fake.reply(call)
        fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
        fake.later(check / 2) { fake.signal(Recorded.device(["RSSI": .int16(-51)])) }
      }
    ]) { $0.scanCheck = BackOff(first: check, longest: check, spread: 0) }
    let begin = Moment.now
    await faults.central.scan(true)
    try await faults.fake.called("StopDiscovery")
    #expect(begin.duration(to: .now) > check * 2)
    try await faults.tested.end()
  }
}
