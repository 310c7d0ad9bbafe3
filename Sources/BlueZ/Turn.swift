/// One at a time, in the order of asking. Confined to the actor that holds it.
final class Turn {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Whether somebody has the turn or waits for it.
  var isWanted: Bool { isTaken }

  var waitingCount: Int { waiting.count }

  /// Waits for the turn. Give it back by ``pass()``, whatever happens meanwhile.
  func take(_ isolation: isolated (any Actor)? = #isolation) async {
    if !isTaken {
      isTaken = true
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  func pass() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
