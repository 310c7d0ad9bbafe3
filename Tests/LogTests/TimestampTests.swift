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

  /// Foundation's calendar agrees, every 31 hours or so over two centuries.
  @Test func agreesWithFoundation() {
    for seconds in stride(from: Int64(0), to: 6_400_000_000, by: 111_111 * 9) {
      let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
      #expect(Timestamp(milliseconds: seconds * 1000).description == text.dropLast() + ".000Z")
    }
  }

  @Test func isCompactInFileNames() {
    #expect(Timestamp(milliseconds: 0).compact == "19700101T000000Z")
    #expect(Timestamp(milliseconds: 1_767_323_045_678).compact == "20260102T030405Z")
  }

  @Test func nowIsTheCurrentTime() {
    let difference = Timestamp.now.milliseconds - Int64(Date().timeIntervalSince1970 * 1000)
    #expect(abs(difference) < 10_000)
  }
}
