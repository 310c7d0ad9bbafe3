import Testing

@testable import MQTT

@Suite struct DequeTests {
  /// Compared with an array, while the ring grows and wraps around.
  @Test func behavesLikeAnArray() {
    var deque = Deque<Int>()
    var array: [Int] = []
    var random = SystemRandomNumberGenerator()
    for step in 0..<20_000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...3:
        deque.append(step)
        array.append(step)
      case 4...5:
        deque.prepend(step)
        array.insert(step, at: 0)
      case 6...7:
        #expect(deque.popFirst() == (array.isEmpty ? nil : array.removeFirst()))
      case 8:
        #expect(deque.popLast() == array.popLast())
      case _:
        guard !array.isEmpty else { continue }
        let index = Int.random(in: array.indices, using: &random)
        #expect(deque.remove(at: index) == array.remove(at: index))
      }
      #expect(deque.count == array.count)
      #expect(deque.first == array.first)
    }
    #expect((0..<deque.count).map { deque[$0] } == array)
  }
}
