/// A queue of two lanes.
struct Lanes<Element> {
  private var urgent = Deque<Element>()
  private var bulk = Deque<Element>()

  var count: Int { urgent.count + bulk.count }
  var bulkCount: Int { bulk.count }

  func first(_ lane: Outbox.Lane) -> Element? {
    switch lane {
    case .urgent: urgent.first
    case .bulk: bulk.first
    }
  }

  mutating func append(_ element: Element, to lane: Outbox.Lane) {
    switch lane {
    case .urgent: urgent.append(element)
    case .bulk: bulk.append(element)
    }
  }

  mutating func prepend(_ element: Element, to lane: Outbox.Lane) {
    switch lane {
    case .urgent: urgent.prepend(element)
    case .bulk: bulk.prepend(element)
    }
  }

  @discardableResult
  mutating func popFirst(_ lane: Outbox.Lane) -> Element? {
    switch lane {
    case .urgent: urgent.popFirst()
    case .bulk: bulk.popFirst()
    }
  }
}
