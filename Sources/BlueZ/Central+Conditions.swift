import EventLoop

extension Central {
  /// A task that waits for a condition on the central's state.
  struct Wait {
    let isMet: @LoopActor () -> Bool
    let waiter: Waiter<Bool>
  }

  /// Waits until `condition` holds, for at most `limit`; returns whether it does. What changes the state that it reads must
  /// call ``checkConditions()``.
  func wait(_ limit: Duration, until condition: @escaping @LoopActor () -> Bool) async -> Bool {
    if condition() { return true }
    let waiter = Waiter<Bool>()
    waits.append(Wait(isMet: condition, waiter: waiter))
    let timer = loop.timer(after: limit) { waiter.resume(.success(false)) }
    let met = (try? await waiter.value()) ?? false
    timer.cancel()
    waits.removeAll { $0.waiter === waiter }
    return met
  }

  /// Ends the waits whose conditions hold; called after each change of the state.
  func checkConditions() { for wait in waits where wait.isMet() { wait.waiter.resume(.success(true)) } }
}
