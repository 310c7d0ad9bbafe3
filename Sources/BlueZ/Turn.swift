/// One at a time, in the order of asking. Confined to the actor that holds it.
final class Turn {
  private var isTaken = false
  private var preferred: [CheckedContinuation<Void, Never>] = []
  private var others: [CheckedContinuation<Void, Never>] = []
  private var wasPreferred = false

  /// Whether somebody has the turn or waits for it.
  var isWanted: Bool { isTaken }

  var waitingCount: Int { preferred.count + others.count }

  /// Waits for the turn. Give it back by ``pass()``, whatever happens meanwhile.
  ///
  /// - Parameter isPreferred: before those who are not; where both wait they alternate, so that nobody waits for ever.
  func take(isPreferred: Bool = false, _ isolation: isolated (any Actor)? = #isolation) async {
    // Asked inside: between this call and the body another job of the actor may run, and pass the turn to
    // nobody.
    await withCheckedContinuation { continuation in
      if !isTaken {
        isTaken = true
        continuation.resume()
      } else if isPreferred {
        preferred.append(continuation)
      } else {
        others.append(continuation)
      }
    }
  }

  func pass() {
    if preferred.isEmpty, others.isEmpty {
      isTaken = false
    } else if others.isEmpty || !wasPreferred && !preferred.isEmpty {
      wasPreferred = true
      preferred.removeFirst().resume()
    } else {
      wasPreferred = false
      others.removeFirst().resume()
    }
  }
}
