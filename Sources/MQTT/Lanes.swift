/// A queue of two lanes.
struct Lanes<Element> {
  private var live = Deque<Element>()
  private var bulk = Deque<Element>()

  var count: Int { live.count + bulk.count }
  var bulkCount: Int { bulk.count }

  func first(_ lane: Outbox.Lane) -> Element? {
    switch lane {
    case .live: live.first
    case .bulk: bulk.first
    }
  }

  mutating func append(_ element: Element, to lane: Outbox.Lane) {
    switch lane {
    case .live: live.append(element)
    case .bulk: bulk.append(element)
    }
  }

  mutating func prepend(_ element: Element, to lane: Outbox.Lane) {
    switch lane {
    case .live: live.prepend(element)
    case .bulk: bulk.prepend(element)
    }
  }

  @discardableResult
  mutating func popFirst(_ lane: Outbox.Lane) -> Element? {
    switch lane {
    case .live: live.popFirst()
    case .bulk: bulk.popFirst()
    }
  }
}
