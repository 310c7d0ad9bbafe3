import FoundationEssentials
import Testing

@testable import Log

@Suite struct TimestampTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00.000Z"),
    (951_782_399_999, "2000-02-28T23:59:59.999Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (951_868_800_000, "2000-03-01T00:00:00.000Z"),
    (1_763_661_662_345, "2025-11-20T18:01:02.345Z"),
    (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    (.max, "9999-12-31T23:59:59.999Z"),
    (-1, "1970-01-01T00:00:00.000Z"),
    (.min, "1970-01-01T00:00:00.000Z"),
  ])
  func isRFC3339(milliseconds: Int64, text: String) {
    #expect(Timestamp(milliseconds: milliseconds).description == text)
  }

  @Test(arguments: [0, 951_782_400_000, 951_868_799_999, 1_763_661_662_345, 253_402_300_799_999] as [Int64])
  func isReadAsItIsWritten(milliseconds: Int64) {
    let time = Timestamp(milliseconds: milliseconds)
    #expect(Timestamp(time.description) == time)
  }

  @Test(arguments: [
    "", "Z", "yesterday", "1000000000000000000", "2026-02-31T00:00:00.000Z", "2025-02-29T00:00:00.000Z",
    "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-01-00T00:00:00.000Z",
    "2026-01-01T24:00:00.000Z", "2026-01-01T00:60:00.000Z", "2026-01-01T00:00:60.000Z",
    "1969-12-31T23:59:59.999Z", "0000-01-01T00:00:00.000Z", "10000-01-01T00:00:00.000Z",
    "99999999999999999999-01-01T00:00:00.000Z", "-026-01-01T00:00:00.000Z", "+026-01-01T00:00:00.000Z",
    "2026-1-01T00:00:00.000Z", " 2026-01-01T00:00:00.000Z", "2026- 1-01T00:00:00.000Z",
    "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.+12Z", "2026-01-01T00:00:00.-12Z",
    "2026-01-01T00:00:00.0000Z", "2026-01-01T00:00:00.000", "2026-01-01T00:00:00.000+01:00",
    "2026-01-01 00:00:00.000Z", "2026-01-01T00:00:00.000Z\n", "2026-01-01T00:00:00.000Z\u{0}",
    "2026-01-01T00:00:00\u{0}.000Z", "２026-01-01T00:00:00.000Z",
  ])
  func anythingElseIsNoTime(text: String) {
    #expect(Timestamp(text) == nil)
  }

  /// Foundation's calendar agrees, every 31 hours or so over two centuries.
  @Test func agreesWithFoundation() {
    for seconds in stride(from: Int64(0), to: 6_400_000_000, by: 111_111 * 9) {
      let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
      #expect(Timestamp(milliseconds: seconds * 1000).description == text.dropLast() + ".000Z")
      #expect(Timestamp(String(text.dropLast()) + ".000Z")?.milliseconds == seconds * 1000)
    }
  }

  @Test func isCompactInFileNames() {
    #expect(Timestamp(milliseconds: 0).compact == "19700101T000000Z")
    #expect(Timestamp(milliseconds: 1_767_323_045_678).compact == "20260102T030405Z")
  }

  @Test func hasTheDateUnlessItIsTodays() {
    let now = Timestamp(milliseconds: 1_767_323_045_678)
    let (time, date) = (now.clock.prefix(8), now.localMinute.prefix(10))
    #expect(now.dated(on: now) == time)
    #expect(now.dated(on: now + .seconds(86_400)) == "\(date) \(time)")
    #expect(now.dated(on: nil) == "\(date) \(time)")
  }

  @Test func aDurationIsAddedWithItsMilliseconds() {
    for (milliseconds, sum) in [(1250, 3250), (-1250, 750)] as [(Int, Int64)] {
      #expect(Timestamp(milliseconds: 2000) + .milliseconds(milliseconds) == Timestamp(milliseconds: sum))
    }
  }

  @Test func nowIsTheCurrentTime() {
    let difference = Timestamp.now.milliseconds - Int64(Date().timeIntervalSince1970 * 1000)
    #expect(abs(difference) < 10_000)
  }
}
