import EventLoop

/// Scheduled events in the order of their deadlines, the next one last, so that thousands need one timer of the loop.
struct Schedule<Event: Sendable>: Sendable {
  private var events: [(event: Event, deadline: Moment)] = []

  /// The deadline of the next event.
  var next: Moment? { events.last?.deadline }

  mutating func add(_ event: Event, at deadline: Moment) {
    var (low, high) = (0, events.count)
    while low < high {
      let middle = (low + high) / 2
      // Events of the same deadline occur in the order in which they were added.
      if events[middle].deadline > deadline { low = middle + 1 } else { high = middle }
    }
    events.insert((event, deadline), at: low)
  }

  /// Removes the next event that is due by `now`.
  mutating func pop(by now: Moment) -> Event? {
    guard let next, next <= now else { return nil }
    return events.removeLast().event
  }
}
