import EventLoop
import TestSupport
import Testing

@testable import Devices

@Suite struct AdapterChoiceTests {
  private let start = Moment.now
  private func at(_ seconds: Int) -> Moment { start + .seconds(seconds) }

  private let free = [true, true]

  /// Two adapters that are on and receive the device with these strengths.
  private func choice(_ first: Int?, _ second: Int?, pinned: Int? = nil) -> AdapterChoice {
    var choice = AdapterChoice(isOn: [true, true], pinned: pinned)
    for (index, rssi) in [first, second].enumerated() {
      if let rssi { see(&choice, index, rssi) }
    }
    return choice
  }

  private func see(
    _ choice: inout AdapterChoice, _ adapter: Int, _ rssi: Int?, isConnected: Bool = false,
    isPaired: Bool = false, at seconds: Int = 0
  ) {
    choice.seen(by: adapter, rssi: rssi, isConnected: isConnected, isPaired: isPaired, at: at(seconds))
  }

  @Test func oneAdapterIsUsedWithoutWaiting() {
    var choice = AdapterChoice(isOn: [true], pinned: nil)
    #expect(choice.choose(hasFreeLink: [true], at: start) == .none)
    #expect(!choice.isInRange)
    see(&choice, 0, -90)
    #expect(choice.isInRange)
    for second in 0..<5 { #expect(choice.choose(hasFreeLink: [false], at: at(second)) == .use(0)) }
  }

  @Test(arguments: [(-50, -60, 0), (-60, -50, 1), (-50, -50, 0)])
  func theStrongestIsUsed(first: Int, second: Int, best: Int) {
    var choice = choice(first, second)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(best))
    #expect(choice.current == best)
  }

  @Test func theOthersGetTimeToReceiveIt() {
    var choice = choice(-80, nil)
    #expect(choice.choose(hasFreeLink: free, at: start) == .wait(.seconds(2)))
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .wait(.seconds(1)))
    var other = choice
    see(&other, 1, -50, at: 1)
    #expect(other.choose(hasFreeLink: free, at: at(1)) == .use(1))
    #expect(choice.choose(hasFreeLink: free, at: at(2)) == .use(0))
  }

  @Test func anAdapterThatIsOffIsNotWaitedFor() {
    var choice = choice(-80, nil)
    choice.adapterChanged(1, isOn: false)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(0))
    choice.adapterChanged(0, isOn: false)
    #expect(!choice.isInRange)
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .none)
    // Back, it has to receive the device again.
    choice.adapterChanged(0, isOn: true)
    #expect(!choice.isInRange)
  }

  @Test(arguments: [(-58, 0), (-59, 0), (-57, 0), (-51, 0), (-49, 1), (-30, 1)])
  func theLastOneHasAMargin(other: Int, expected: Int) {
    var choice = choice(-58, -70)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(0))
    choice.becameLive()
    see(&choice, 1, other, at: 100)
    #expect(choice.choose(hasFreeLink: free, at: at(100)) == .use(expected))
  }

  @Test func aMoveIsNotUndoneWithinAMinute() {
    var choice = choice(-50, -80)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(0))
    choice.becameLive()
    see(&choice, 1, -30, at: 10)
    #expect(choice.choose(hasFreeLink: free, at: at(10)) == .use(1))
    choice.becameLive()
    see(&choice, 0, -20, at: 20)
    see(&choice, 1, -80, at: 20)
    #expect(choice.choose(hasFreeLink: free, at: at(20)) == .use(1))
    choice.becameLive()
    #expect(choice.choose(hasFreeLink: free, at: at(70)) == .use(0))
  }

  @Test func failedAttemptsWeigh() {
    var choice = choice(-50, -70)
    // 20 dB and the margin are made up for by three attempts.
    var used: [AdapterChoice.Decision] = []
    for second in 0..<4 { used.append(choice.choose(hasFreeLink: free, at: at(second))) }
    #expect(used == [.use(0), .use(0), .use(0), .use(1)])
    choice.becameLive()
    // They are forgotten after a while.
    #expect(choice.choose(hasFreeLink: free, at: at(100)) == .use(1))
    choice.becameLive()
    #expect(choice.choose(hasFreeLink: free, at: at(400)) == .use(0))
  }

  @Test func aFailingAdapterIsLeftWithinTheMinute() {
    var choice = choice(-50, -50)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(0))
    see(&choice, 1, -30, at: 1)
    choice.becameLive()
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .use(1))
    for second in 2..<5 { _ = choice.choose(hasFreeLink: free, at: at(second)) }
    #expect(choice.current == 0)
  }

  @Test func aFullAdapterIsUsedOnlyIfAllAre() {
    var choice = choice(-50, -80)
    #expect(choice.choose(hasFreeLink: [false, true], at: start) == .use(1))
    choice.becameLive()
    var full = self.choice(-50, -80)
    #expect(full.choose(hasFreeLink: [false, false], at: start) == .use(0))
  }

  @Test func theSignalIsRememberedWhileScanningIsPaused() {
    var choice = choice(-50, -80)
    see(&choice, 0, nil, at: 10)
    #expect(choice.choose(hasFreeLink: free, at: at(20)) == .use(0))
    choice.becameLive()
    // It has been out of range of the first one for too long.
    #expect(choice.choose(hasFreeLink: free, at: at(41)) == .wait(.seconds(2)))
    #expect(choice.choose(hasFreeLink: free, at: at(43)) == .use(1))
  }

  @Test func anExistingLinkIsUsed() {
    var choice = choice(-30, nil)
    see(&choice, 1, nil, isConnected: true)
    #expect(choice.choose(hasFreeLink: [true, false], at: start) == .use(1))
  }

  @Test func onlyThePinnedAdapterCounts() {
    var choice = choice(-30, -90, pinned: 1)
    #expect(choice.choose(hasFreeLink: [true, false], at: start) == .use(1))
    choice.adapterChanged(1, isOn: false)
    #expect(!choice.isInRange)
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .none)
    choice.pin(nil)
    #expect(choice.isInRange)
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .use(0))
  }

  @Test func aBondedDeviceStaysWithItsAdapter() {
    var choice = choice(-90, -30)
    see(&choice, 0, -90, isPaired: true)
    #expect(choice.choose(hasFreeLink: free, at: start) == .use(0))
    #expect(choice.isPaired)
    // The adapter is unplugged: its objects go first.
    choice.lost(by: 0)
    choice.adapterChanged(0, isOn: false)
    #expect(!choice.isInRange)
    #expect(choice.choose(hasFreeLink: free, at: at(1)) == .none)
    // It is back.
    choice.adapterChanged(0, isOn: true)
    see(&choice, 0, nil, isPaired: true, at: 2)
    #expect(choice.choose(hasFreeLink: free, at: at(2)) == .use(0))
    // The bond is deleted.
    choice.lost(by: 0)
    #expect(choice.isInRange)
    see(&choice, 0, -90, at: 100)
    #expect(choice.choose(hasFreeLink: free, at: at(400)) == .use(1))
  }

  @Test func theBondedAdapterIsChosenToDeleteTheBond() {
    var choice = choice(-30, -90)
    see(&choice, 1, -90, isPaired: true)
    choice.chooseBonded()
    #expect(choice.current == 1)
  }
}
