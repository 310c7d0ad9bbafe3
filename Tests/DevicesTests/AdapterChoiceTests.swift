import EventLoop
import Testing

@testable import Devices

@Suite struct AdapterChoiceTests {
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  private let free = [true, true]

  /// Two adapters that are on and receive the device with these strengths.
  private func choice(_ first: Int?, _ second: Int?, pinned: Int? = nil) -> AdapterChoice {
    var choice = AdapterChoice(isOn: [true, true], pinned: pinned, bondLimit: .seconds(60))
    for (index, rssi) in [first, second].enumerated() {
      if let rssi { see(&choice, index, rssi) }
    }
    return choice
  }

  private func see(
    _ choice: inout AdapterChoice, _ adapter: Int, _ rssi: Int?, isConnected: Bool = false,
    isPaired: Bool = false, at seconds: Int = 0
  ) {
    choice.seen(
      by: adapter, rssi: rssi, advertisement: seconds, isConnected: isConnected, isPaired: isPaired,
      at: at(seconds))
  }

  @Test func oneAdapterIsUsedWithoutWaiting() {
    var choice = AdapterChoice(isOn: [true], pinned: nil, bondLimit: .seconds(60))
    #expect(choice.choose(freeLinks: [true], at: start) == .none)
    #expect(!choice.isInRange(at: start))
    see(&choice, 0, -90)
    #expect(choice.isInRange(at: start))
    for second in 0..<5 { #expect(choice.choose(freeLinks: [false], at: at(second)) == .full([0])) }
  }

  @Test(arguments: [(-50, -60, 0), (-60, -50, 1), (-50, -50, 0)])
  func adapterWithStrongestSignalIsUsed(first: Int, second: Int, best: Int) {
    var choice = choice(first, second)
    #expect(choice.choose(freeLinks: free, at: start) == .use(best))
    #expect(choice.current == best)
  }

  @Test func choiceWaitsForOtherAdaptersToReceiveTheDevice() {
    var choice = choice(-80, nil)
    #expect(choice.choose(freeLinks: free, at: start) == .wait(.seconds(2)))
    #expect(choice.choose(freeLinks: free, at: at(1)) == .wait(.seconds(1)))
    var other = choice
    see(&other, 1, -50, at: 1)
    #expect(other.choose(freeLinks: free, at: at(1)) == .use(1))
    #expect(choice.choose(freeLinks: free, at: at(2)) == .use(0))
  }

  @Test func choiceDoesNotWaitForAdapterThatIsOff() {
    var choice = choice(-80, nil)
    choice.adapterChanged(1, isOn: false, at: start)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    choice.adapterChanged(0, isOn: false, at: start)
    #expect(!choice.isInRange(at: start))
    #expect(choice.choose(freeLinks: free, at: at(1)) == .none)
    // When it is on again, it has to receive the device again.
    choice.adapterChanged(0, isOn: true, at: start)
    #expect(!choice.isInRange(at: start))
  }

  @Test(arguments: [(-58, 0), (-59, 0), (-57, 0), (-51, 0), (-49, 1), (-30, 1)])
  func lastUsedAdapterIsPreferredByAMargin(other: Int, expected: Int) {
    var choice = choice(-58, -70)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    choice.becameLive()
    see(&choice, 0, -58, at: 100)
    see(&choice, 1, other, at: 100)
    #expect(choice.choose(freeLinks: free, at: at(100)) == .use(expected))
  }

  @Test func adapterIsNotChangedBackWithinAMinute() {
    var choice = choice(-50, -80)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    choice.becameLive()
    see(&choice, 1, -30, at: 10)
    #expect(choice.choose(freeLinks: free, at: at(10)) == .use(1))
    choice.becameLive()
    see(&choice, 0, -20, at: 20)
    see(&choice, 1, -80, at: 20)
    #expect(choice.choose(freeLinks: free, at: at(20)) == .use(1))
    choice.becameLive()
    #expect(choice.choose(freeLinks: free, at: at(69)) == .use(1))
    choice.becameLive()
    #expect(choice.choose(freeLinks: free, at: at(70)) == .use(0))
  }

  @Test func failedAttemptsCountAgainstTheAdapter() {
    var choice = choice(-50, -70)
    // Three failed attempts outweigh the difference of 20 dB and the margin.
    var used: [AdapterChoice.Decision] = []
    for second in 0..<4 { used.append(choice.choose(freeLinks: free, at: at(second))) }
    #expect(used == [.use(0), .use(0), .use(0), .use(1)])
    choice.becameLive()
    // Old failures no longer count.
    see(&choice, 0, -50, at: 100)
    see(&choice, 1, -70, at: 100)
    #expect(choice.choose(freeLinks: free, at: at(100)) == .use(1))
    choice.becameLive()
    see(&choice, 0, -50, at: 400)
    see(&choice, 1, -70, at: 400)
    #expect(choice.choose(freeLinks: free, at: at(400)) == .use(0))
  }

  @Test func failuresChangeTheAdapterWithinAMinute() {
    var choice = choice(-50, -50)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    see(&choice, 1, -30, at: 1)
    choice.becameLive()
    #expect(choice.choose(freeLinks: free, at: at(1)) == .use(1))
    for second in 2..<5 { _ = choice.choose(freeLinks: free, at: at(second)) }
    #expect(choice.current == 0)
  }

  @Test func fullAdapterIsNotUsed() {
    var choice = choice(-50, -80)
    #expect(choice.choose(freeLinks: [false, true], at: start) == .use(1))
    choice.becameLive()
    var full = self.choice(-50, -80)
    #expect(full.choose(freeLinks: [false, false], at: start) == .full([0, 1]))
  }

  @Test func signalStrengthIsKeptWhileScanningIsPaused() {
    var choice = choice(-50, -80)
    see(&choice, 0, nil, at: 10)
    #expect(choice.choose(freeLinks: free, at: at(20)) == .use(0))
    choice.becameLive()
    // The first adapter has not received the device for too long.
    see(&choice, 1, -80, at: 50)
    #expect(choice.choose(freeLinks: free, at: at(60)) == .wait(.seconds(2)))
    #expect(choice.choose(freeLinks: free, at: at(62)) == .use(1))
  }

  /// bluetoothd keeps the last signal strength as long as it scans, so during a link it can be hours old.
  @Test func outdatedSignalStrengthIsIgnored() {
    var choice = choice(-50, -30)
    #expect(choice.choose(freeLinks: free, at: start) == .use(1))
    choice.becameLive()
    see(&choice, 0, -60, at: 1000)
    // Reported again for another reason, without a new advertisement.
    choice.seen(by: 1, rssi: -30, advertisement: 0, isConnected: false, isPaired: false, at: at(1000))
    #expect(choice.choose(freeLinks: free, at: at(1000)) == .wait(.seconds(2)))
    #expect(choice.choose(freeLinks: free, at: at(1002)) == .use(0))
  }

  @Test func outdatedSignalSufficesForTheOnlyAdapter() {
    var choice = AdapterChoice(isOn: [true], pinned: nil, bondLimit: .seconds(60))
    see(&choice, 0, -90)
    #expect(choice.choose(freeLinks: [true], at: at(1000)) == .use(0))
  }

  @Test func choiceWaitsForAdapterThatIsNotUpAtStart() {
    var choice = AdapterChoice(isOn: [true, false], pinned: nil, bondLimit: .seconds(60))
    see(&choice, 0, -80)
    let decision = choice.choose(freeLinks: free, startDeadline: at(5), at: start)
    #expect(decision == .wait(.seconds(5)))
    var late = choice
    #expect(late.choose(freeLinks: free, startDeadline: at(5), at: at(5)) == .use(0))
    choice.adapterChanged(1, isOn: true, at: at(1))
    #expect(choice.choose(freeLinks: free, startDeadline: at(5), at: at(1)) == .wait(.seconds(2)))
    see(&choice, 1, -50, at: 2)
    #expect(choice.choose(freeLinks: free, startDeadline: at(5), at: at(2)) == .use(1))
  }

  @Test func pinnedDeviceDoesNotWaitForOtherAdapters() {
    var choice = AdapterChoice(isOn: [true, false], pinned: 0, bondLimit: .seconds(60))
    see(&choice, 0, -80)
    #expect(choice.choose(freeLinks: free, startDeadline: at(5), at: start) == .use(0))
  }

  @Test func anExistingLinkIsUsed() {
    var choice = choice(-30, nil)
    see(&choice, 1, nil, isConnected: true)
    #expect(choice.choose(freeLinks: [true, false], at: start) == .use(1))
  }

  @Test func onlyThePinnedAdapterIsUsed() {
    var choice = choice(-30, -90, pinned: 1)
    #expect(choice.choose(freeLinks: [true, false], at: start) == .full([1]))
    choice.adapterChanged(1, isOn: false, at: start)
    #expect(!choice.isInRange(at: start))
    #expect(choice.choose(freeLinks: free, at: at(1)) == .none)
    choice.pin(nil)
    #expect(choice.isInRange(at: start))
    #expect(choice.choose(freeLinks: free, at: at(1)) == .use(0))
  }

  @Test func aBondedDeviceIsInRangeEvenIfItIsNotReceived() {
    var choice = AdapterChoice(isOn: [true], pinned: nil, bondLimit: .seconds(60))
    see(&choice, 0, nil, isPaired: true)
    #expect(choice.isInRange(at: start) && !choice.isReceived(at: start))
    see(&choice, 0, -50, isPaired: true, at: 1)
    #expect(choice.isReceived(at: at(1)))
    // While scanning is paused bluetoothd reports no strength.
    see(&choice, 0, nil, isPaired: true, at: 2)
    #expect(choice.isReceived(at: at(2)) && !choice.isReceived(at: at(70)))
    see(&choice, 0, nil, isConnected: true, isPaired: true, at: 70)
    #expect(choice.isReceived(at: at(70)))
  }

  @Test func aBondedDeviceStaysWithItsAdapter() {
    var choice = choice(-90, -30)
    see(&choice, 0, -90, isPaired: true)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    #expect(choice.isPaired)
    // The adapter is unplugged: its objects go first.
    choice.lost(by: 0)
    choice.adapterChanged(0, isOn: false, at: start)
    #expect(!choice.isInRange(at: start))
    #expect(choice.choose(freeLinks: free, at: at(1)) == .none)
    // The adapter is back.
    choice.adapterChanged(0, isOn: true, at: start)
    see(&choice, 0, nil, isPaired: true, at: 2)
    #expect(choice.choose(freeLinks: free, at: at(2)) == .use(0))
    // The bond is deleted.
    choice.lost(by: 0)
    #expect(choice.isInRange(at: start))
    see(&choice, 0, -90, at: 400)
    see(&choice, 1, -30, at: 400)
    #expect(choice.choose(freeLinks: free, at: at(400)) == .use(1))
  }

  @Test func adapterThatDeviceWasRemovedFromIsNotUsed() {
    var choice = choice(-30, -80)
    see(&choice, 0, -30, isPaired: true)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    // The bond was lost. The first adapter cannot connect until it has found the device again.
    choice.removed(from: 0)
    #expect(choice.isInRange(at: start))
    _ = choice.choose(freeLinks: free, at: start)
    #expect(choice.choose(freeLinks: free, at: at(2)) == .use(1))
  }

  @Test func bondOfAnAbsentAdapterHoldsForAMinute() {
    var choice = choice(-30, -80)
    see(&choice, 0, -30, isPaired: true)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    choice.lost(by: 0)
    choice.adapterChanged(0, isOn: false, at: at(10))
    // When it is plugged in again, it is off at first, without its devices.
    choice.adapterChanged(0, isOn: false, at: at(30))
    see(&choice, 1, -80, at: 60)
    #expect(!choice.isInRange(at: at(69)))
    #expect(choice.isInRange(at: at(70)))
    #expect(choice.choose(freeLinks: free, at: at(70)) == .use(1))
    #expect(!choice.isPaired)
    // The adapter is back, with the bond.
    choice.adapterChanged(0, isOn: true, at: at(80))
    see(&choice, 0, -30, isPaired: true, at: 80)
    #expect(choice.choose(freeLinks: free, at: at(80)) == .use(0))
  }

  @Test func bondsOfAbsentAdaptersAreDropped() {
    var choice = choice(-30, -80)
    see(&choice, 0, -30, isPaired: true)
    choice.adapterChanged(0, isOn: false, at: start)
    #expect(!choice.isInRange(at: start))
    choice.dropBondsOfAbsentAdapters()
    #expect(choice.isInRange(at: start))
  }

  @Test func adaptersToRemoveTheDeviceFrom() {
    var choice = choice(-30, -80)
    #expect(choice.choose(freeLinks: free, at: start) == .use(0))
    // To discard outdated services.
    #expect(choice.adaptersToRemove(isUnpairing: false) == [0, 1])
    #expect(choice.adaptersToRemove(isUnpairing: true) == [0])
    see(&choice, 1, -80, isPaired: true)
    #expect(choice.adaptersToRemove(isUnpairing: false) == [0])
    #expect(choice.adaptersToRemove(isUnpairing: true) == [0, 1])
    // To discard an outdated bond.
    see(&choice, 0, -30, isPaired: true)
    see(&choice, 1, -80)
    #expect(choice.adaptersToRemove(isUnpairing: false) == [0])
    // Another program has removed the device, with its bond.
    choice.lost(by: 0)
    #expect(choice.adaptersToRemove(isUnpairing: true) == [])
    #expect(!choice.isPaired)
    // The adapter was removed, and still has its bond.
    choice.adapterChanged(0, isOn: false, at: start)
    #expect(choice.isPaired)
    #expect(choice.adaptersToRemove(isUnpairing: false) == [])
    #expect(choice.adaptersToRemove(isUnpairing: true) == [0])
  }

  @Test func theBondedAdapterIsChosenToDeleteTheBond() {
    var choice = choice(-30, -90)
    see(&choice, 1, -90, isPaired: true)
    choice.chooseBonded(at: start)
    #expect(choice.current == 1)
  }
}
