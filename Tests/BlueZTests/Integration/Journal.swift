import EventLoop
import Synchronization
import TestSupport

/// What happened, in order. A test waits for the next thing of a kind; things before it are passed over.
final class Journal<Entry: Sendable>: Sendable {
  private struct State {
    var entries: [Entry] = []
    var looked = 0
    var search: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  func add(_ entry: Entry) {
    let search = state.withLock { state in
      state.entries.append(entry)
      return state.search
    }
    search?()
  }

  var entries: [Entry] { state.withLock { $0.entries } }

  /// From here on: what has happened before is not looked at any more.
  func skip() { state.withLock { $0.looked = $0.entries.count } }

  /// What `pick` makes of the next entry that it makes something of.
  func next<T: Sendable>(
    _ what: String, within limit: Duration = patience, _ pick: @escaping @Sendable (Entry) -> T?
  ) async throws -> T {
    let waiter = Waiter<T>()
    let search: @Sendable () -> Void = {
      self.state.withLock { state in
        while state.search != nil, state.looked < state.entries.count {
          let entry = state.entries[state.looked]
          state.looked += 1
          if let found = pick(entry) {
            state.search = nil
            waiter.resume(.success(found))
          }
        }
      }
    }
    state.withLock { $0.search = search }
    search()
    return try await deadline(limit, "\(what); there was \(self.entries)") { try await waiter.value() }
  }
}
