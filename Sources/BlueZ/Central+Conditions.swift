import EventLoop

extension Central {
  /// A task that waits for a condition on the central's state.
  struct Wait {
    let isMet: @LoopActor () -> Bool
    let waiter: Waiter<Void>
  }

  /// Waits until `condition` holds, for at most `limit`; returns whether it does. What changes the state that it reads must
  /// call ``checkConditions()``.
  func wait(_ limit: Duration, until condition: @escaping @LoopActor () -> Bool) async -> Bool {
    if condition() { return true }
    let waiter = Waiter<Void>()
    waits.append(Wait(isMet: condition, waiter: waiter))
    defer { waits.removeAll { $0.waiter === waiter } }
    return (try? await waiter.value(within: limit)) != nil
  }

  /// Ends the waits whose conditions hold; called after each change of the state.
  func checkConditions() { for wait in waits where wait.isMet() { wait.waiter.resume(.success(())) } }
}
