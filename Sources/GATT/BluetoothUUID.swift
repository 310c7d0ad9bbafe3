/// A UUID as used by GATT: 128 bits. Assigned numbers (16 or 32 bits) are a short form of
/// UUIDs on the Bluetooth base UUID (Bluetooth Core Specification, volume 3, part B, section 2.5.1).
public struct BluetoothUUID: Hashable, Sendable {
  /// The first 64 bits, as written.
  public let high: UInt64
  /// The last 64 bits, as written.
  public let low: UInt64

  /// ``high`` and ``low`` as they are written: `hhhhhhhh-hhhh-hhhh-llll-llllllllllll`.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// An assigned number on the base UUID `0000xxxx-0000-1000-8000-00805f9b34fb`.
  public init(short: UInt32) {
    self.init(high: UInt64(short) << 32 | 0x1000, low: 0x8000_0080_5F9B_34FB)
  }

  /// Reads `0000180a-0000-1000-8000-00805f9b34fb`, `180a` or `0000180a`, in any case; nil for anything else.
  public init?(_ text: some StringProtocol) {
    let text = text.utf8
    switch text.count {
    case 4, 8:
      guard let short = Hexadecimal.number(text) else { return nil }
      self.init(short: UInt32(truncatingIfNeeded: short))
    case 36:
      var groups: [UInt64] = []
      for group in text.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false) {
        let lengths = [8, 4, 4, 4, 12]
        guard groups.count < lengths.count, group.count == lengths[groups.count],
          let number = Hexadecimal.number(group)
        else { return nil }
        groups.append(number)
      }
      // 36 characters in groups of these lengths cannot be fewer than five groups.
      guard groups.count == 5 else { return nil }
      self.init(high: groups[0] << 32 | groups[1] << 16 | groups[2], low: groups[3] << 48 | groups[4])
    default:
      return nil
    }
  }
}

extension BluetoothUUID: CustomStringConvertible {
  /// All 128 bits in lower case: the form that BlueZ writes and compares.
  public var description: String {
    let digits = Hexadecimal.text(high, bytes: 8) + Hexadecimal.text(low, bytes: 8)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }
}
