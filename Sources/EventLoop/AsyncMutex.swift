/// A mutual exclusion lock whose waiters are suspended: first come, first served within each of two groups, which
/// alternate.
@LoopActor public final class AsyncMutex {
  /// Whether somebody has the lock.
  public private(set) var isLocked = false
  private var preferred: [CheckedContinuation<Void, Never>] = []
  private var others: [CheckedContinuation<Void, Never>] = []
  private var wasPreferred = false

  /// Creates a mutex that is free.
  public nonisolated init() {}

  /// Waits for the lock. Every call must be paired with ``unlock()``.
  ///
  /// - Parameter isPreferred: preferred waiters alternate with the others, so that neither group starves.
  public func lock(isPreferred: Bool = false) async {
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

  /// Passes the lock on to the next waiter.
  public func unlock() {
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
