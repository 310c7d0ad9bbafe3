import Log

/// When rows of a data log were measured, as far as that is certain: of rows that were written between two answers on one link.
/// A micro:bit knows no date, and nothing in the log shows a restart in which its time has not gone back.
struct LogClock {
  /// When the length was answered before, on this link; every row that is new was written later.
  private var previous: Timestamp?
  private var answered: Timestamp?
  private var run: Int?
  /// The gateway's time at which the program's was 0, in ms: the smallest that was possible for any row of the run.
  private var start: Double?

  /// The length was answered.
  /// - Parameter isWhole: whether the log was read up to the length that was answered before.
  mutating func answered(at now: Timestamp, isWhole: Bool) {
    (previous, answered) = (isWhole ? answered : nil, now)
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
