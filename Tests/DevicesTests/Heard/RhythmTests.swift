import EventLoop
import Testing

@testable import Devices

/// How long a device that is only heard is online after it was heard.
@Suite struct RhythmTests {
  private static let start = Moment.now
  private static func at(_ seconds: Double) -> Moment { start + .milliseconds(Int(seconds * 1000)) }

  private static func heard(
    at times: some Sequence<Double>, span: Duration = HeardEvents.silence, learned: Int? = nil
  ) -> Rhythm {
    var rhythm = Rhythm(span: span, learned: learned)
    for time in times { rhythm.heard(at: at(time)) }
    return rhythm
  }

  /// Bursts of five seconds, every ten minutes; the third one is missed.
  @Test func deviceThatSleepsIsNeverOffline() {
    var rhythm = Rhythm(span: HeardEvents.silence)
    var presence = Presence(interval: nil)
    for burst in 0...30 where burst != 3 {
      for second in 0...5 {
        let now = Self.at(Double(burst * 600 + second))
        let actions = presence.timer(at: now)
        #expect(actions == [], "burst \(burst)")
        rhythm.heard(at: now)
        _ = presence.heard(for: rhythm.limit, at: now)
      }
    }
    #expect(rhythm.limit == .seconds(595 * 3) && rhythm.learned == 1800)
  }

  @Test func deviceThatSendsEachSecondIsOfflineAfterAMinute() {
    #expect(Self.heard(at: []).limit == Rhythm.initial)
    #expect(Self.heard(at: stride(from: 0, through: 100, by: 1)).limit == Rhythm.initial)
    #expect(Self.heard(at: stride(from: 0, through: 100, by: 1)).learned == nil)
    let known = Self.heard(at: stride(from: 0, through: 240, by: 1))
    #expect(known.limit == Rhythm.least && known.learned == 60)
    // It was off for a night, and is on again for four minutes.
    let night = [0.0] + Array(stride(from: 50_000, through: 50_200, by: 1))
    #expect(Self.heard(at: night).limit == .seconds(10_800))
    #expect(Self.heard(at: night + stride(from: 50_201, through: 50_250, by: 1)).limit == Rhythm.least)
  }

  @Test func whatWasLearntHoldsUntilMoreIsKnown() {
    #expect(Self.heard(at: [], learned: 1800).limit == .seconds(1800))
    #expect(Self.heard(at: [0, 1000], learned: 1800).limit == .seconds(3000))
    #expect(Self.heard(at: stride(from: 0, through: 240, by: 1), learned: 1800).limit == Rhythm.least)
  }

  @Test func anOutageOfTheAdapterIsNoSilence() {
    var rhythm = Self.heard(at: stride(from: 0, through: 100, by: 1))
    rhythm.interrupt()
    for time in stride(from: 50_000.0, through: 50_200, by: 1) { rhythm.heard(at: Self.at(time)) }
    #expect(rhythm.limit == Rhythm.least && rhythm.learned == 60)
  }

  /// By radio, each packet counts.
  @Test func senderByRadioIsKnownAfterSeconds() {
    let often = stride(from: 0, through: 12, by: 0.2)
    #expect(Self.heard(at: often, span: .seconds(1)).limit == Rhythm.least)
    let seldom = stride(from: 0.0, through: 8 * 30, by: 30)
    #expect(Self.heard(at: seldom, span: .seconds(1)).limit == .seconds(90))
  }
}
