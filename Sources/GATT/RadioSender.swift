/// The five letters that name a micro:bit, made of its serial number (MicroBitDevice.cpp of codal-microbit-v2): of 3125 names,
/// so that two micro:bits may have the same.
public struct MicrobitName: Hashable, Sendable, CustomStringConvertible {
  /// The letters as digits of base 5, from the lowest; the last letter is the lowest digit.
  private static let letters = [Array("zvgpt".utf8), Array("uoiea".utf8)]
  /// How many names there are.
  public static let count: UInt32 = 3125

  /// Below ``count``.
  public let number: UInt32

  /// The name of the micro:bit with this serial number.
  public init(serial: UInt32) { number = serial % Self.count }

  /// Reads `zotut`; nil for anything that is no such name.
  public init?(_ text: some StringProtocol) {
    guard text.utf8.count == 5 else { return nil }
    var number: UInt32 = 0
    for (position, letter) in text.utf8.enumerated() {
      guard let digit = Self.letters[position % 2].firstIndex(of: letter) else { return nil }
      number = number * 5 + UInt32(digit)
    }
    self.number = number
  }

  /// `zotut`.
  public var description: String {
    var (text, rest) = ([UInt8](repeating: 0, count: 5), number)
    for position in (0..<5).reversed() {
      text[position] = Self.letters[position % 2][Int(rest % 5)]
      rest /= 5
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Who sends by MakeCode's radio. Anybody can claim to be anybody.
public enum RadioSender: Hashable, Sendable {
  /// A micro:bit that sends its serial number.
  case serial(UInt32)
  /// A micro:bit that sends its name alone.
  case name(MicrobitName)

  /// The five letters, of either.
  public var name: MicrobitName {
    switch self {
    case .serial(let serial): MicrobitName(serial: serial)
    case .name(let name): name
    }
  }
}
