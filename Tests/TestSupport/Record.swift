import EventLoop
import Synchronization

/// What happened so far, in order, and ways to wait for what is still to happen.
public final class Record<Element: Sendable>: Sendable {
  private struct Wait {
    let start: Int
    let condition: @Sendable (Element) -> Bool
    let waiter: Waiter<Int>
  }

  private struct State {
    var elements: [Element] = []
    var waits: [Wait] = []
    /// Where ``next(_:within:_:)`` goes on.
    var cursor = 0
  }

  private let state = Mutex(State())

  /// With no elements; it is never emptied again.
  public init() {}

  /// All of it.
  public var elements: [Element] { state.withLock { $0.elements } }
  /// Where the next element goes: the `start` for waiting for what is still to come.
  public var count: Int { state.withLock { $0.elements.count } }

  /// Appends what `make` makes of its place, counted from 0.
  public func append(_ make: (_ index: Int) -> Element) {
    let (index, met) = state.withLock { state -> (Int, [Waiter<Int>]) in
      let index = state.elements.count
      let element = make(index)
      state.elements.append(element)
      let met = state.waits.filter { $0.start <= index && $0.condition(element) }.map(\.waiter)
      if !met.isEmpty { state.waits.removeAll { wait in met.contains { $0 === wait.waiter } } }
      return (index, met)
    }
    for waiter in met { waiter.resume(.success(index)) }
  }

  /// Appends `element`; a test that waits for one like it goes on.
  public func append(_ element: Element) { append { _ in element } }

  /// The first element from place `start` on that satisfies `condition`: at once when it is there already.
  public func first(
    from start: Int = 0, within limit: Duration = patience, _ what: String,
    where condition: @escaping @Sendable (Element) -> Bool
  ) async throws -> Element {
    let index = try await firstIndex(from: start, within: limit, what, where: condition)
    return state.withLock { $0.elements[index] }
  }

  /// All of it, once there are `count` elements.
  public func first(_ count: Int) async throws -> [Element] {
    _ = try await firstIndex(from: count - 1, within: patience, "\(count) elements") { _ in true }
    return elements
  }

  /// What `pick` makes of the next element that it makes something of. Elements before it are passed over, and so is it
  /// the next time.
  public func next<T>(
    _ what: String, within limit: Duration = patience, _ pick: @escaping @Sendable (Element) -> T?
  ) async throws -> T {
    let start = state.withLock { $0.cursor }
    let index = try await firstIndex(from: start, within: limit, what) { pick($0) != nil }
    let element = state.withLock { state in
      state.cursor = index + 1
      return state.elements[index]
    }
    guard let picked = pick(element) else { throw Failure("\(what): \(element) was another before") }
    return picked
  }

  /// ``next(_:within:_:)`` goes on after what is there now.
  public func skip() { state.withLock { $0.cursor = $0.elements.count } }

  private func firstIndex(
    from start: Int, within limit: Duration, _ what: String,
    where condition: @escaping @Sendable (Element) -> Bool
  ) async throws -> Int {
    let waiter = Waiter<Int>()
    var looked = start
    var isWaiting = false
    while !isWaiting {
      // Without the lock: a condition may take long for many elements, and whoever appends does not wait.
      let elements = self.elements
      if let index = elements.indices.dropFirst(looked).first(where: { condition(elements[$0]) }) {
        return index
      }
      looked = max(start, elements.count)
      isWaiting = state.withLock { state in
        guard state.elements.count <= looked else { return false }
        state.waits.append(Wait(start: start, condition: condition, waiter: waiter))
        return true
      }
    }
    defer { state.withLock { $0.waits.removeAll { $0.waiter === waiter } } }
    return try await deadline(limit, "\(what); there were \(self.count) elements") {
      try await waiter.value()
    }
  }
}
