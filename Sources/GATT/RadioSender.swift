/// The five letters that name a micro:bit, made of its serial number (MicroBitDevice.cpp of codal-microbit-v2): of 3125 names,
/// so that two micro:bits may have the same.
public struct MicrobitName: Hashable, Sendable, CustomStringConvertible {
  /// The letters as digits of base 5, from the lowest; the last letter is the lowest digit.
  private static let letters = [Array("zvgpt".utf8), Array("uoiea".utf8)]
  /// How many names there are.
  public static let count: UInt32 = 3125

  /// The number of the name, less than ``count``.
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
  /// All senders whose packets a receiver passes on without a name, as one: a digest of the path of the receiver's port.
  case receiver(UInt32)

  /// The five letters; nil for a receiver.
  public var name: MicrobitName? {
    switch self {
    case .serial(let serial): MicrobitName(serial: serial)
    case .name(let name): name
    case .receiver: nil
    }
  }

  /// Reads ``description``, in either case; nil for anything else.
  public init?(_ text: some StringProtocol) {
    let text = text.lowercased()
    let receiver = "usb_"
    let digits = text.hasPrefix(receiver) ? text.dropFirst(receiver.count) : text[...]
    if digits.utf8.count == 8, let number = Hexadecimal.number(digits.utf8) {
      let number = UInt32(truncatingIfNeeded: number)
      self = text.hasPrefix(receiver) ? .receiver(number) : .serial(number)
    } else if let name = MicrobitName(text) {
      self = .name(name)
    } else {
      return nil
    }
  }
}

extension RadioSender: CustomStringConvertible {
  /// `9b4c2d1a`, `zotut` or `usb_9b4c2d1a`.
  public var description: String {
    switch self {
    case .serial(let serial): Hexadecimal.text(serial, bytes: 4)
    case .name(let name): name.description
    case .receiver(let digest): "usb_" + Hexadecimal.text(digest, bytes: 4)
    }
  }
}

/// A sender is identified as a Bluetooth device is by its address, in the 16 bits that no such address has.
extension BluetoothAddress {
  /// What identifies the sender as a device.
  public init(_ sender: RadioSender) {
    switch sender {
    case .serial(let serial): value = 1 << 48 | UInt64(serial)
    case .name(let name): value = 2 << 48 | UInt64(name.number)
    case .receiver(let digest): value = 3 << 48 | UInt64(digest)
    }
  }

  /// The sender by radio that this identifies; nil: it is a Bluetooth address.
  public var radioSender: RadioSender? {
    let number = UInt32(truncatingIfNeeded: value)
    return switch value >> 48 {
    case 1: .serial(number)
    case 2: .name(MicrobitName(serial: number))
    case 3: .receiver(number)
    case _: nil
    }
  }
}
