import DBus
import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import BlueZ

/// The adapter is not left off, whatever goes wrong while it is switched off and on.
@Suite struct ResetFaultTests {
  /// Answers to `Set` of `Powered`: does so, or refuses where `refusal` says why.
  static func power(
    _ asked: Record<Bool>,
    refusal: @escaping @LoopActor (_ isOn: Bool, _ count: Int) -> String? = { _, _ in nil }
  ) -> FakeBlueZ.Answer {
    { fake, call in
      let isOn = call.arguments.last?.unwrapped.bool ?? false
      asked.append(isOn)
      if let reason = refusal(isOn, asked.elements.count) {
        return fake.refuse(call, "org.bluez.Error.Failed", reason)
      }
      fake.reply(call)
      fake.signal(Recorded.adapter(["Powered": .boolean(isOn)]))
    }
  }

  @Test func adapterIsPoweredOnEvenIfPowerOffFails() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(answers: ["Set": Self.power(asked) { isOn, _ in isOn ? nil : "no" }])
    await #expect(throws: CentralError.self) { try await faults.central.resetAdapter() }
    #expect(asked.elements == [false, true])
    try await faults.tested.end()
  }

  /// Nobody is to power on an adapter that is being reset.
  @Test func adapterIsShownAsOffOnlyIfItStaysOff() async throws {
    let (asked, states) = (Record<Bool>(), Record<[Bool]>())
    let central = Mutex<Central?>(nil)
    let faults = try await Faults(answers: [
      "Set": Self.power(asked) { isOn, count in
        if let central = central.withLock({ $0 }), isOn {
          states.append([central.state.isOn, central.shownState.isOn])
        }
        return count > 3 ? "no" : nil
      }
    ])
    central.withLock { $0 = faults.central }
    try await faults.central.resetAdapter()
    #expect(states.elements == [[false, true]])
    await #expect(throws: CentralError.self) { try await faults.central.resetAdapter() }
    #expect(await faults.central.shownState == .adapterOff)
    let reported = faults.tested.events.elements.compactMap { event in
      if case .state(let state) = event { state } else { nil }
    }
    #expect(reported.suffix(2) == [.adapterOff, .adapterOff], "it is reported again when it is shown")
    try await faults.tested.end()
  }

  @Test func failedPowerOnIsRetriedOnce() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(answers: ["Set": Self.power(asked) { _, count in count == 2 ? "no" : nil }])
    try await faults.central.resetAdapter()
    #expect(asked.elements == [false, true, true])
    try await faults.tested.end()
  }

  @Test func adapterThatStaysOffIsPoweredOnLater() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(
      answers: ["Set": Self.power(asked) { _, count in (2...4).contains(count) ? "no" : nil }]
    ) { $0.powerBackOff = BackOff(first: .milliseconds(10), longest: .milliseconds(10)) }
    await #expect(throws: CentralError.self) { try await faults.central.resetAdapter() }
    #expect(await faults.central.wait(patience) { $0.state.isOn })
    #expect(asked.elements == [false, true, true, true, true])
    try await faults.tested.end()
  }

  /// The controller hangs, and powers off later; meanwhile bluetoothd refuses another change (BlueZ, src/adapter.c).
  @Test func adapterThatPowersOffLateIsPoweredOnAgain() async throws {
    let (asked, isLate) = (Record<Bool>(), Record<Bool>())
    let faults = try await Faults(answers: [
      "Set": { fake, call in
        let isOn = call.arguments.last?.unwrapped.bool ?? false
        asked.append(isOn)
        if !isLate.elements.isEmpty { return Self.power(Record())(fake, call) }
        // The first call is never answered.
        if isOn { fake.refuse(call, "org.bluez.Error.Busy", "") }
      }
    ]) {
      $0.local = .milliseconds(100)
      $0.busyBackOff = BackOff(first: .milliseconds(1), longest: .milliseconds(1))
      $0.powerBackOff = BackOff(first: .milliseconds(10), longest: .milliseconds(10))
    }
    await #expect(throws: CentralError.self) { try await faults.central.resetAdapter() }
    #expect(asked.elements.first == false && asked.elements.dropFirst().allSatisfy { $0 })
    await faults.fake.signal(Recorded.adapter(["Powered": .boolean(false)]))
    #expect(await faults.central.wait(patience) { !$0.state.isOn })
    isLate.append(true)
    #expect(await faults.central.wait(patience) { $0.state.isOn })
    try await faults.tested.end()
  }

  @Test func aStopWaitsForItAndNoneBeginsAfterThat() async throws {
    let asked = Record<Bool>()
    let faults = try await Faults(answers: [
      "Set": { fake, call in
        fake.later(.seconds(1)) { Self.power(asked)(fake, call) }
      }
    ])
    let central = faults.central
    async let reset: Void = central.resetAdapter()
    try await faults.fake.called("Set")
    await #expect(throws: CentralError.busy("it is being reset")) { try await central.resetAdapter() }
    await central.stop(within: patience)
    #expect(asked.elements == [false, true])
    try await reset
    await #expect(throws: CentralError.unavailable) { try await central.resetAdapter() }
    try await faults.tested.end()
  }
}
