/// Which events of a micro:bit's message bus are notified: those that the central has named. A V2 takes one with each write
/// (`MicroBitEventService.cpp`).
struct MessageBus: Sendable {
  private static let most = 64
  /// Source and value, two bytes each.
  private var required: [[UInt8]] = []

  mutating func require(_ event: [UInt8]) {
    if required.count < Self.most, !required.contains(event) { required.append(event) }
  }

  /// A source or a value of 0 stands for any.
  func isRequired(_ event: [UInt8]) -> Bool {
    required.contains { wanted in
      [0, 2].allSatisfy { at in
        wanted[at..<(at + 2)] == [0, 0] || event.count == 4 && wanted[at..<(at + 2)] == event[at..<(at + 2)]
      }
    }
  }

  /// What a button (1: A, 2: B) raises that has this state now.
  static func events(ofButton button: UInt8, state: UInt8) -> [[UInt8]] {
    // Down; up and click; hold.
    let values: [UInt8] =
      switch state {
      case 1: [1]
      case 0: [2, 3]
      case 2: [5]
      default: []
      }
    return values.map { [button, 0, $0, 0] }
  }
}
