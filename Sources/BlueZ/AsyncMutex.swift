import EventLoop

/// A mutual exclusion lock whose waiters are suspended: first come, first served within each of two groups, which
/// alternate.
@LoopActor final class AsyncMutex {
  private(set) var isLocked = false
  private var preferred: [CheckedContinuation<Void, Never>] = []
  private var others: [CheckedContinuation<Void, Never>] = []
  private var wasPreferred = false

  /// Waits for the lock. Every call must be paired with ``unlock()``.
  ///
  /// - Parameter isPreferred: preferred waiters alternate with the others, so that neither group starves.
  func lock(isPreferred: Bool = false) async {
    // `isLocked` is checked inside the closure: another job may run between this call and the closure.
    await withCheckedContinuation { continuation in
      if !isLocked {
        isLocked = true
        continuation.resume()
      } else if isPreferred {
        preferred.append(continuation)
      } else {
        others.append(continuation)
      }
    }
  }

  func unlock() {
    if preferred.isEmpty, others.isEmpty {
      isLocked = false
    } else if others.isEmpty || !wasPreferred && !preferred.isEmpty {
      wasPreferred = true
      preferred.removeFirst().resume()
    } else {
      wasPreferred = false
      others.removeFirst().resume()
    }
  }
}
