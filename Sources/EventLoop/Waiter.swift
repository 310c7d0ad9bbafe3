import Synchronization

/// One value that somebody else will bring, once: the bridge from a callback to `await`.
///
/// The value may come before anyone waits. A cancelled wait ends with `CancellationError`; what comes
/// afterwards is dropped. At most one task waits.
public final class Waiter<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case waiting(CheckedContinuation<Value, any Error>)
    case arrived(Result<Value, any Error>)
    case done
  }

  private let state = Mutex<State>(.empty)

  /// With no value, and nobody waiting.
  public init() {}

  /// Brings the value. The first call counts, later ones do nothing and return false.
  @discardableResult
  public func resume(_ result: Result<Value, any Error>) -> Bool {
    let (continuation, first) = state.withLock { state -> (CheckedContinuation<Value, any Error>?, Bool) in
      switch state {
      case .empty:
        state = .arrived(result)
        return (nil, true)
      case .waiting(let continuation):
        state = .done
        return (continuation, true)
      case .arrived, .done:
        return (nil, false)
      }
    }
    continuation?.resume(with: result)
    return first
  }

  /// Waits for the value, where the caller is: without `isolation` the wait would begin with a hop to the
  /// global pool of threads, and end with one back.
  public func value(_ isolation: isolated (any Actor)? = #isolation) async throws -> Value {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let ready = state.withLock { state -> Result<Value, any Error>? in
          switch state {
          case .empty:
            state = .waiting(continuation)
            return nil
          case .arrived(let result):
            state = .done
            return result
          case .waiting, .done:
            preconditionFailure("two tasks wait for one value")
          }
        }
        if let ready { continuation.resume(with: ready) }
      }
    } onCancel: {
      resume(.failure(CancellationError()))
    }
  }
}
