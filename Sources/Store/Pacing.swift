/// How long the writer waits, and for what.
struct Pacing: Sendable, Equatable {
  /// From the first change to the transaction: what belongs together comes together.
  var gather: Duration = .milliseconds(20)
  /// From one transaction to the next: no stream of changes wears out a card.
  var apart: Duration = .seconds(1)
  /// After a transaction that failed; twice as long after each further one, up to `longestRetry`.
  var firstRetry: Duration = .seconds(1)
  var longestRetry: Duration = .seconds(60)

  /// The wait after so many transactions in a row that failed.
  func wait(afterFailures failures: Int) -> Duration {
    guard failures > 0 else { return apart }
    var wait = firstRetry
    var doublings = failures - 1
    while doublings > 0, wait < longestRetry {
      wait *= 2
      doublings -= 1
    }
    return min(wait, longestRetry)
  }
}
