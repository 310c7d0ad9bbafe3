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

  /// Reads `0000180a-0000-1000-8000-00805f9b34fb`, `180a`, `0x180a` or `0000180a`, in any case; nil for anything else.
  public init?(_ text: String) {
    var digits = Array(text.utf8)
    if text.hasPrefix("0x"), digits.count < 36 { digits.removeFirst(2) }
    switch digits.count {
    case 4, 8:
      guard let short = Hexadecimal.number(digits) else { return nil }
      self.init(short: UInt32(truncatingIfNeeded: short))
    case 36:
      // The last first, as each removal shifts what follows.
      for hyphen in [23, 18, 13, 8] {
        guard digits.remove(at: hyphen) == UInt8(ascii: "-") else { return nil }
      }
      guard let high = Hexadecimal.number(digits[..<16]), let low = Hexadecimal.number(digits[16...])
      else { return nil }
      self.init(high: high, low: low)
    default:
      return nil
    }
  }
}

extension BluetoothUUID {
  /// `180a` for an assigned number of 16 bits, else all 128 bits.
  package var short: String {
    let number = UInt32(truncatingIfNeeded: high >> 32)
    return number <= 0xFFFF && self == BluetoothUUID(short: number)
      ? Hexadecimal.text(number, bytes: 2) : description
  }
}

extension BluetoothUUID: CustomStringConvertible {
  /// All 128 bits in lower case: the form that BlueZ writes and compares.
  public var description: String {
    [
      Hexadecimal.text(high >> 32, bytes: 4), Hexadecimal.text(high >> 16, bytes: 2),
      Hexadecimal.text(high, bytes: 2), Hexadecimal.text(low >> 48, bytes: 2),
      Hexadecimal.text(low, bytes: 6),
    ].joined(separator: "-")
  }
}
