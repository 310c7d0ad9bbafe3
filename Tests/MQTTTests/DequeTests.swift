import TestSupport
import Testing

@testable import MQTT

@Suite struct DequeTests {
  /// Compared with an array, also when elements are put back.
  @Test func behavesLikeAnArray() {
    var deque = Deque<Int>()
    var array: [Int] = []
    let seed = UInt64.random(in: 1...1_000_000)
    print("DequeTests: seed \(seed)")
    var random = SplitMix64(state: seed)
    for step in 0..<20_000 {
      switch Int.random(in: 0..<8, using: &random) {
      case 0...3:
        deque.append(step)
        array.append(step)
      case 4...5:
        deque.prepend(step)
        array.insert(step, at: 0)
      case _:
        #expect(deque.popFirst() == (array.isEmpty ? nil : array.removeFirst()))
      }
      #expect(deque.count == array.count)
      #expect(deque.first == array.first)
    }
    var rest: [Int] = []
    while let element = deque.popFirst() { rest.append(element) }
    #expect(rest == array)
  }
}
