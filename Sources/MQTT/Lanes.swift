/// A queue of two lanes.
struct Lanes<Element> {
  private var queues = Outbox.Lane.allCases.map { _ in Deque<Element>() }

  var count: Int { queues[0].count + queues[1].count }

  subscript(lane: Outbox.Lane) -> Deque<Element> {
    get { queues[lane.rawValue] }
    // With `set`, each change would copy the whole lane.
    _modify { yield &queues[lane.rawValue] }
  }
}
