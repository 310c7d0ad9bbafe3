import GATT

/// Default names and addresses of the virtual peripherals.
enum Identity {
  /// The random static address of micro:bit `index`: `D0:5A:00:00:C0:DE`, `D1:5A:00:01:C0:DE`, …; unique up to index
  /// 65535.
  static func address(ofMicroBit index: Int) -> String {
    text([0xD0 | index % 16, 0x5A + index / 256 % 256, index / 16 % 16, index % 256, 0xC0, 0xDE])
  }

  /// The random static address of decoy `index`.
  static func address(ofDecoy index: Int) -> String {
    text([0xE5, 0x7A, 0x00, index / 256, index, 0x01])
  }

  /// The random static address of a described peripheral without an address of its own.
  static func address(ofDescribed index: Int) -> String {
    text([0xE6, 0x7A, 0x00, index / 256, index, 0x02])
  }

  /// The address with the lowest byte of each number.
  private static func text(_ address: [Int]) -> String {
    address.map { Hexadecimal.text($0, bytes: 1).uppercased() }.joined(separator: ":")
  }

  /// The name in brackets after `BBC micro:bit`: alternating consonants and vowels, as the firmware derives it from the
  /// chip's serial number. Unique up to index 3124, unless the first one recurs.
  static func friendlyName(_ index: Int) -> String {
    let name = MicrobitName(serial: UInt32(truncatingIfNeeded: index &* 7919 &+ 1234))
    return index == 0 ? "zugev" : String(name.description.reversed())
  }

  /// The name of a peripheral that is not a micro:bit.
  static func decoyName(_ index: Int) -> String {
    let kinds = ["Polar H7", "Flower care", "LYWSD03MMC", "BBC iPlayer remote", "micro:bit clone"]
    return "\(kinds[index % kinds.count]) \(index + 1)"
  }
}
