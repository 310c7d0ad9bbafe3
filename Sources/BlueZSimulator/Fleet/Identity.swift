/// Names and addresses of the virtual peripherals, where the options name none.
enum Identity {
  /// The random static address of micro:bit `index`: `D0:5A:00:00:C0:DE`, `D1:5A:00:01:C0:DE`, …; all
  /// different up to index 65535.
  static func address(ofMicroBit index: Int) -> String {
    [0xD0 | index % 16, 0x5A + index / 256 % 256, index / 16 % 16, index % 256, 0xC0, 0xDE]
      .map { hex($0 & 0xFF, digits: 2) }.joined(separator: ":")
  }

  /// The random static address of stranger `index`.
  static func address(ofStranger index: Int) -> String {
    [0xE5, 0x7A, 0x00, index / 256, index, 0x01].map { hex($0 & 0xFF, digits: 2) }.joined(separator: ":")
  }

  /// The random static address of other peripheral `index`, where its description has none.
  static func address(ofOther index: Int) -> String {
    [0xE6, 0x7A, 0x00, index / 256, index, 0x02].map { hex($0 & 0xFF, digits: 2) }.joined(separator: ":")
  }

  /// What stands in brackets after `BBC micro:bit`: consonants and vowels in turn, as the firmware makes it
  /// of the chip's serial number. All different up to index 3124, unless the first one recurs.
  static func friendlyName(_ index: Int) -> String {
    if index == 0 { return "zugev" }
    let letters = [Array("zvgpt"), Array("uoiea")]
    var rest = index &* 7919 &+ 1234
    var name = ""
    for position in 0..<5 {
      name.append(letters[position % 2][rest % 5])
      rest /= 5
    }
    return name
  }

  /// Names of things that are no micro:bits.
  static func strangerName(_ index: Int) -> String {
    let kinds = ["Polar H7", "Flower care", "LYWSD03MMC", "BBC iPlayer remote", "micro:bit clone"]
    return "\(kinds[index % kinds.count]) \(index + 1)"
  }
}

/// `value` in upper-case hexadecimal with leading zeros.
func hex(_ value: Int, digits: Int) -> String {
  let text = String(value, radix: 16, uppercase: true)
  return String(repeating: "0", count: max(0, digits - text.count)) + text
}
