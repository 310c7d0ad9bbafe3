import EventLoop

/// Scheduled events: a binary heap, so that thousands of events need one timer of the loop.
struct Schedule<Event: Sendable>: Sendable {
  private struct Entry {
    let deadline: Moment
    /// Events of the same deadline occur in the order in which they were added.
    let sequence: UInt64
    let event: Event

    func precedes(_ other: Entry) -> Bool {
      deadline == other.deadline ? sequence < other.sequence : deadline < other.deadline
    }
  }

  private var heap: [Entry] = []
  private var sequence: UInt64 = 0

  /// The deadline of the next event.
  var next: Moment? { heap.first?.deadline }

  mutating func add(_ event: Event, at deadline: Moment) {
    heap.append(Entry(deadline: deadline, sequence: sequence, event: event))
    sequence += 1
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].precedes(heap[parent]) else { break }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes the next event that is due by `now`.
  mutating func pop(by now: Moment) -> (event: Event, deadline: Moment)? {
    guard let first = heap.first, first.deadline <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      var parent = 0
      while true {
        var least = parent
        for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
          if heap[child].precedes(heap[least]) { least = child }
        }
        guard least != parent else { break }
        heap.swapAt(parent, least)
        parent = least
      }
    }
    return (first.event, first.deadline)
  }
}
