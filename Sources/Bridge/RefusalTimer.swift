import EventLoop

/// When what the broker has refused is published again: a quota may be exceeded for a moment, and an access control list is
/// corrected without an end of the connection.
@LoopActor final class RefusalTimer {
  /// Shorter only in tests.
  var delays = BackOff(first: .seconds(30), longest: Refusals.lasting - .seconds(60), spread: 0)
  private var timer: LoopTimer?

  /// - Parameter publishAgain: called once for all that is refused until then.
  func refused(_ publishAgain: @escaping @LoopActor () -> Void) {
    guard timer == nil else { return }
    timer = loop.timer(after: delays.next()) { [weak self] in
      self?.timer = nil
      publishAgain()
    }
  }

  /// Everything is published on a new connection.
  func connected() {
    timer?.cancel()
    timer = nil
    delays.reset()
  }
}
