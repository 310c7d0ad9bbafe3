import Glibc

/// A moment by the wall clock, to the millisecond.
package struct Timestamp: Sendable, Hashable, Comparable {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  package let milliseconds: Int64

  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  package static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }

  /// The day in UTC, counted from 1970-01-01.
  package var day: Int { Int(milliseconds / 86_400_000) }

  /// The days of the years that four digits can write.
  package static let days = 0...2_932_896

  package static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

  package static func + (time: Timestamp, duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    return Timestamp(milliseconds: time.milliseconds + seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }

  /// Appends the time as RFC 3339 has it, in UTC: `2025-11-20T18:01:02.345Z`, always 24 bytes.
  package func append(to bytes: inout [UInt8]) {
    // The years that four digits can write; a clock that says otherwise is wrong anyway.
    let clamped = min(max(milliseconds, 0), 253_402_300_799_999)
    let (days, time) = clamped.quotientAndRemainder(dividingBy: 86_400_000)
    let (year, month, day) = Self.date(days)
    append(year, digits: 4, "-", to: &bytes)
    append(month, digits: 2, "-", to: &bytes)
    append(day, digits: 2, "T", to: &bytes)
    append(time / 3_600_000, digits: 2, ":", to: &bytes)
    append(time / 60_000 % 60, digits: 2, ":", to: &bytes)
    append(time / 1000 % 60, digits: 2, ".", to: &bytes)
    append(time % 1000, digits: 3, "Z", to: &bytes)
  }

  private func append(_ number: Int64, digits: Int, _ end: Unicode.Scalar, to bytes: inout [UInt8]) {
    var divisor: Int64 = digits == 4 ? 1000 : digits == 3 ? 100 : 10
    while divisor > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
      divisor /= 10
    }
    bytes.append(UInt8(ascii: end))
  }

  /// The Gregorian date of a day since 1970-01-01, which must not be before it.
  ///
  /// With gmtime_r, writing a time would take half as many instructions again, and each reading has one. Counted in eras of
  /// 400 years that begin on the first of March, so that a leap day is the last of its year
  /// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
  private static func date(_ daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let days = daysSince1970 + 719_468
    let (era, dayOfEra) = days.quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
  }
}

extension Timestamp: CustomStringConvertible {
  /// Reads what ``description`` writes; nil for anything else.
  package init?(_ text: String) {
    let numbers = text.split { "-T:.Z".contains($0) }.compactMap { $0.utf8.count < 5 ? Int32($0) : nil }
    guard numbers.count == 7 else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    self.init(milliseconds: Int64(timegm(&parts)) * 1000 + Int64(numbers[6]))
    // timegm takes the 31st of February for a day in March.
    if description != text { return nil }
  }

  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The form for file names: `20260102T030405Z`.
  package var compact: String { description.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z" }

  /// `12:34:56.789`, local time.
  package var clock: String { String(local.dropFirst(11).dropLast()) }

  /// `2026-01-02 12:34:56`, local time; on the day of `day` without the date.
  package func dated(on day: Timestamp? = .now) -> String {
    let (date, time) = (local.prefix(10), local.dropFirst(11).prefix(8))
    return day?.local.prefix(10) == date ? String(time) : "\(date) \(time)"
  }

  /// The form for names that people read: `2026-01-02-1504`, local time.
  package var localMinute: String {
    String(local.prefix(16).filter { $0 != ":" }.map { $0 == "T" ? "-" : $0 })
  }

  private var local: String {
    var (seconds, parts) = (time_t(milliseconds / 1000), tm())
    localtime_r(&seconds, &parts)
    return Timestamp(milliseconds: milliseconds + Int64(parts.tm_gmtoff) * 1000).description
  }
}
