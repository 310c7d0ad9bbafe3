/// A queue that also takes elements back at its front.
struct Deque<Element> {
  /// The first elements, the very first at the end.
  private var front: [Element] = []
  /// The elements that follow, in their order.
  private var back: [Element] = []

  var count: Int { front.count + back.count }
  var first: Element? { front.last ?? back.first }

  mutating func append(_ element: Element) { back.append(element) }

  mutating func prepend(_ element: Element) { front.append(element) }

  @discardableResult
  mutating func popFirst() -> Element? {
    if front.isEmpty {
      swap(&front, &back)
      front.reverse()
    }
    return front.popLast()
  }
}
