import Synchronization

/// A value that is delivered once, by a callback, to a task that awaits it.
///
/// The value may be delivered before it is awaited. A cancelled wait throws `CancellationError`, and a value delivered
/// later is dropped. At most one task may wait.
public final class Waiter<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case waiting(CheckedContinuation<Value, any Error>)
    case arrived(Result<Value, any Error>)
    case done
  }
  private struct TimeIsOver: Error {}

  private let state = Mutex<State>(.empty)

  /// Creates a waiter without a value.
  public init() {}

  /// Delivers the value. Only the first call has an effect; later ones return false.
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

  /// Waits for the value in the caller's isolation, which avoids two hops through the global thread pool.
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

  /// Waits as ``value(_:)`` does, for at most `limit`; nil: the time is over, and a value that is delivered later is
  /// dropped.
  @LoopActor public func value(within limit: Duration) async throws -> Value? {
    let timer = loop.timer(after: limit) { self.resume(.failure(TimeIsOver())) }
    // Also after a cancelled wait, as the deadline may be hours away.
    defer { timer.cancel() }
    do {
      return try await value()
    } catch is TimeIsOver {
      return nil
    }
  }
}
