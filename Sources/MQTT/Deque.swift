/// A queue that also takes elements back at its front: a ring buffer that doubles when it is full.
struct Deque<Element> {
  private var slots: [Element?] = []
  private var head = 0
  private(set) var count = 0

  var first: Element? { count == 0 ? nil : slots[head] }

  mutating func append(_ element: Element) {
    makeRoom()
    slots[slot(count)] = element
    count += 1
  }

  mutating func prepend(_ element: Element) {
    makeRoom()
    head = slot(slots.count - 1)
    slots[head] = element
    count += 1
  }

  @discardableResult
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head]
    slots[head] = nil
    head = slot(1)
    count -= 1
    return element
  }

  /// The slot of the element at `index`. The number of slots is a power of two, or 0.
  private func slot(_ index: Int) -> Int { (head &+ index) & (slots.count &- 1) }

  private mutating func makeRoom() {
    guard count == slots.count else { return }
    var larger: [Element?] = []
    larger.reserveCapacity(max(16, count * 2))
    for index in 0..<count { larger.append(slots[slot(index)]) }
    larger.append(contentsOf: repeatElement(nil, count: max(16, count * 2) - count))
    slots = larger
    head = 0
  }
}
