import EventLoop
import Log

/// When rows of a data log were measured, as far as that is certain: of rows that were written between two answers on one link.
/// A micro:bit knows no date, and nothing in the log shows a restart in which its time has not gone back.
struct LogClock {
  /// When the length was answered before, on this link; every row that is new was written later.
  private var previous: Timestamp?
  private var answered: Timestamp?
  private var answeredAt: Moment?
  private var run: Int?
  /// The gateway's time at which the program's was 0, in ms: the smallest that was possible for any row of the run.
  private var start: Double?

  /// The length was answered.
  /// - Parameter isWhole: whether the log was read up to the length that was answered before.
  mutating func answered(at now: Timestamp, _ moment: Moment, isWhole: Bool) {
    // The clock may have been set since: earlier times are others.
    if let answered, let answeredAt {
      let passed = answeredAt.duration(to: moment) / .milliseconds(1)
      if abs(Double(now.milliseconds - answered.milliseconds) - passed) > 1000 {
        (self.answered, start) = (nil, nil)
      }
    }
    (previous, answered, answeredAt) = (isWhole ? answered : nil, now, moment)
  }

  mutating func measured(_ row: LogRow) -> Timestamp? {
    guard let previous, let answered, previous <= answered, let time = row.time else { return nil }
    let latest = Double(answered.milliseconds) - time.milliseconds
    let start = row.run == run ? min(self.start ?? latest, latest) : latest
    (self.start, run) = (start, row.run)
    // The start has the precision of the program's time; the two answers are certain.
    let measured = max(
      Double(previous.milliseconds), min(start + time.milliseconds, Double(answered.milliseconds)))
    return Timestamp(milliseconds: Int64(measured.rounded()))
  }
}
