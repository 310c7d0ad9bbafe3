import EventLoop

/// The conditions on the central's state that its tasks wait for.
@LoopActor final class Conditions {
  typealias Condition = @LoopActor (Central) -> Bool

  private var waiting: [(isMet: Condition, waiter: Waiter<Bool>)] = []

  /// Waits until `condition` holds, for at most `limit`; returns whether it does.
  func wait(_ limit: Duration, on central: Central, until condition: @escaping Condition) async -> Bool {
    if condition(central) { return true }
    let waiter = Waiter<Bool>()
    waiting.append((condition, waiter))
    let timer = loop.timer(after: limit) { waiter.resume(.success(false)) }
    let met = (try? await waiter.value()) ?? false
    timer.cancel()
    waiting.removeAll { $0.waiter === waiter }
    return met
  }

  /// Ends the waits whose conditions hold; called after each change of the state.
  func check(on central: Central) {
    for (isMet, waiter) in waiting where isMet(central) { waiter.resume(.success(true)) }
  }
}
