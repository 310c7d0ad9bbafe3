/// A queue of two lanes.
struct Lanes<Element> {
  private var urgent = Deque<Element>()
  private var bulk = Deque<Element>()

  var count: Int { urgent.count + bulk.count }

  subscript(lane: Outbox.Lane) -> Deque<Element> {
    get {
      switch lane {
      case .urgent: urgent
      case .bulk: bulk
      }
    }
    // With `set`, each change would copy the whole lane.
    _modify {
      switch lane {
      case .urgent: yield &urgent
      case .bulk: yield &bulk
      }
    }
  }
}
