/// One at a time, in the order of asking. Confined to the actor that holds it.
final class Turn {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Whether somebody has the turn or waits for it.
  var isWanted: Bool { isTaken }

  var waitingCount: Int { waiting.count }

  /// Waits for the turn. Give it back by ``pass()``, whatever happens meanwhile.
  func take(_ isolation: isolated (any Actor)? = #isolation) async {
    // Asked inside: between this call and the body another job of the actor may run, and pass the turn to
    // nobody.
    await withCheckedContinuation { continuation in
      if isTaken {
        waiting.append(continuation)
      } else {
        isTaken = true
        continuation.resume()
      }
    }
  }

  func pass() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
