import EventLoop
import Synchronization
import TestSupport

/// Records events in order; a test can wait for a number of them.
final class Record<Element: Sendable>: Sendable {
  private let state = Mutex<(elements: [Element], enough: Int, waiter: Waiter<Void>?)>(([], 0, nil))

  func append(_ element: Element) {
    let waiter = state.withLock { state -> Waiter<Void>? in
      state.elements.append(element)
      return state.elements.count >= state.enough ? state.waiter : nil
    }
    waiter?.resume(.success(()))
  }

  var elements: [Element] { state.withLock { $0.elements } }

  /// The elements, once there are `count` of them.
  func first(_ count: Int) async throws -> [Element] {
    let waiter = Waiter<Void>()
    state.withLock { state in
      state.enough = count
      state.waiter = waiter
      if state.elements.count >= count { waiter.resume(.success(())) }
    }
    try await deadline(patience, "\(count) things to happen; there were \(self.elements)") {
      try await waiter.value()
    }
    return elements
  }
}

extension EventLoop {
  /// Runs `body` on the loop, and waits for it.
  func perform<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    await Task(executorPreference: self) { body() }.value
  }
}
