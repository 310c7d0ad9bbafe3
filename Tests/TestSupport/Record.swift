import EventLoop
import Synchronization

/// What happened so far, in order, and a way to wait for what is still to happen.
public final class Record<Element: Sendable>: Sendable {
  private struct Wait {
    let start: Int
    let condition: @Sendable (Element) -> Bool
    let waiter: Waiter<Element>
  }

  private struct State {
    var elements: [Element] = []
    var waits: [Wait] = []
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
    let (element, met) = state.withLock { state -> (Element, [Waiter<Element>]) in
      let element = make(state.elements.count)
      state.elements.append(element)
      let met = state.waits.filter { $0.start < state.elements.count && $0.condition(element) }.map(\.waiter)
      if !met.isEmpty { state.waits.removeAll { wait in met.contains { $0 === wait.waiter } } }
      return (element, met)
    }
    for waiter in met { waiter.resume(.success(element)) }
  }

  /// Appends `element`; whoever waits for one like it goes on.
  public func append(_ element: Element) { append { _ in element } }

  /// The first element from place `start` on that satisfies `condition`: at once when it is there already.
  public func first(
    from start: Int = 0, within limit: Duration, _ what: String,
    where condition: @escaping @Sendable (Element) -> Bool
  ) async throws -> Element {
    let waiter = Waiter<Element>()
    state.withLock { state in
      if let element = state.elements.dropFirst(start).first(where: condition) {
        waiter.resume(.success(element))
      } else {
        state.waits.append(Wait(start: start, condition: condition, waiter: waiter))
      }
    }
    defer { state.withLock { $0.waits.removeAll { $0.waiter === waiter } } }
    return try await deadline(limit, what) { try await waiter.value() }
  }
}
