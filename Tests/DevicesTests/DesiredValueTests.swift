import Testing

@testable import Devices

@Suite struct DesiredValueTests {
  typealias Override = DesiredValue.Override

  @Test func nothingIsDesiredAtFirst() {
    let desired = DesiredValue()
    #expect(desired.effective == nil && desired.shown == nil)
    #expect(!desired.isConfigured)
  }

  @Test func configuredValueIsApplied() {
    let desired = DesiredValue(configured: 5)
    #expect(desired.effective == 5 && desired.shown == .integer(5))
    #expect(desired.isConfigured)
  }

  @Test(arguments: [ValueSource.command, .request])
  func anOverrideRanksAboveTheConfiguration(source: ValueSource) {
    var desired = DesiredValue(configured: 5, override: Override(value: 6, source: source))
    #expect(desired.effective == 6 && desired.shown == .integer(6))
    #expect(!desired.isConfigured)
    desired.configured = nil
    #expect(desired.effective == 6)
    desired = DesiredValue(configured: 5)
    #expect(desired.effective == 5, "the override was withdrawn")
  }

  /// A waiting command has not been carried out yet: it is shown, but the override is still what is applied.
  @Test func waitingCommandIsShown() {
    let waiting = DesiredValue.Waiting(value: 7, sender: nil)
    let desired = DesiredValue(
      configured: 5, override: Override(value: 6, source: .request), waiting: waiting)
    #expect(desired.effective == 6)
    #expect(desired.shown == 7)
    #expect(!DesiredValue(configured: 5, waiting: waiting).isConfigured)
  }

  @Test func newerHandoverReplacesTheValuesHere() {
    for (revision, isNewer) in [(4, false), (5, false), (6, true)] {
      #expect(Handover(revision: revision).isNewer(than: 5, isTakenOver: false) == isNewer)
    }
    #expect(Handover(revision: 5).isNewer(than: 5, isTakenOver: true), "the owner is online")
    #expect(!Handover(revision: 4).isNewer(than: 5, isTakenOver: true), "what was set here last is kept")
  }
}
