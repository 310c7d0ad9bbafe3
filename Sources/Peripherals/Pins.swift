/// The pins of a micro:bit V2's edge connector (`MicroBitIOPinService.cpp`): 0 to 18, the last two P19 and P20.
struct Pins: Sendable {
  private static let count = 19
  private var values = [UInt8](repeating: 0, count: count)

  /// A pair for each input pin.
  func inputs(_ mask: [UInt8]) -> [UInt8] {
    (0..<Self.count).filter { Self.contains(mask, $0) }.flatMap { [UInt8($0), values[$0]] }
  }

  /// A central writes pairs. Values for input pins are ignored, and a pin that does not exist is P0.
  mutating func write(_ pairs: [UInt8], inputs mask: [UInt8]) {
    set(pairs) { !Self.contains(mask, $0) }
  }

  /// What is connected to the pins changes.
  mutating func set(_ pairs: [UInt8], where condition: (Int) -> Bool = { _ in true }) {
    for at in stride(from: 0, to: pairs.count - 1, by: 2) {
      let pin = Int(pairs[at]) < Self.count ? Int(pairs[at]) : 0
      if condition(pin) { values[pin] = pairs[at + 1] }
    }
  }

  private static func contains(_ mask: [UInt8], _ pin: Int) -> Bool {
    mask.indices.contains(pin / 8) && mask[pin / 8] & 1 << (pin % 8) != 0
  }
}
