import EventLoop

/// The times of transactions.
struct Pacing: Sendable, Equatable {
  /// The time from a change to the transaction, which writes related changes together; also the time between transactions
  /// of urgent changes.
  var gather = Duration.milliseconds(50)
  /// The time between other transactions, to limit the wear of a memory card.
  var apart = Duration.seconds(1)
  /// The number of urgent transactions in a row that do not wait for `apart`; each `apart` without one allows one more.
  var early = 20
  /// The delays between attempts after a transaction has failed.
  var retry = BackOff(first: .seconds(1), longest: .seconds(60), spread: 0)
  /// The most time for a transaction until it is reported that the disk does not answer.
  var patience = Duration.seconds(20)
}
