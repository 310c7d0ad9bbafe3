import EventLoop
import Testing

@testable import Bridge

@Suite struct DeviceReportPacingTests {
  private let start = Moment.now

  private func list(_ count: Int, _ byte: UInt8 = 0) -> [UInt8] { [UInt8](repeating: byte, count: count) }

  @Test func shortListCausesNoDelay() {
    var pacing = DeviceReportPacing()
    #expect(pacing.delay(at: start) == .zero)
    let isPublished = pacing.noteIfNew(list(300), at: start)
    #expect(isPublished)
    #expect(pacing.delay(at: start) < .milliseconds(10))
  }

  @Test func unchangedReportIsNotPublished() {
    var pacing = DeviceReportPacing()
    let later = start + .seconds(60)
    let published = [
      pacing.noteIfNew(list(300), at: start), pacing.noteIfNew(list(300), at: later),
      pacing.noteIfNew(list(300, 1), at: later),
    ]
    #expect(published == [true, false, true])
  }

  /// One change per millisecond, and each list has the full length.
  @Test(arguments: [(10, 2), (60, 8)])
  func continuousChangesOfAThousandDevicesGiveFewLists(_ seconds: Int, _ most: Int) {
    var pacing = DeviceReportPacing()
    var published = 0
    for millisecond in 0..<seconds * 1000 {
      let now = start + .milliseconds(millisecond)
      guard pacing.delay(at: now) == .zero else { continue }
      if pacing.noteIfNew(list(270_000, UInt8(truncatingIfNeeded: published)), at: now) { published += 1 }
    }
    #expect((1...most).contains(published), "\(published)")
    // The last change is published soon.
    #expect(pacing.delay(at: start + .seconds(seconds)) < .seconds(9))
  }
}
