/// What identifies a device: a Bluetooth address of six bytes, written with the most significant first; or a ``RadioSender``.
///
/// The address identifies a micro:bit. The name does not: there are few names, and a paired micro:bit advertises none.
public struct BluetoothAddress: Hashable, Sendable {
  /// The six bytes in the lower 48 bits; above them zeros, unless it is a ``radioSender``.
  public let value: UInt64

  private static let radio = "radio:"
  private static let compactRadio = "radio_"

  /// Reads `C5:A1:B2:C3:D4:E5` or `radio:9b4c2d1a`, in any case; nil for anything else.
  public init?(_ text: some StringProtocol) {
    if text.lowercased().hasPrefix(Self.radio) {
      guard let sender = RadioSender(text.dropFirst(Self.radio.count)) else { return nil }
      self = BluetoothAddress(sender)
      return
    }
    let groups = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard groups.count == 6 else { return nil }
    var value: UInt64 = 0
    for group in groups {
      guard group.count == 2, let byte = Hexadecimal.number(group) else { return nil }
      value = value << 8 | byte
    }
    self.value = value
  }

  /// Reads `c5a1b2c3d4e5`, in any case, or `radio_9b4c2d1a`; nil for anything else.
  public init?(compact text: some StringProtocol) {
    if text.hasPrefix(Self.compactRadio), let sender = RadioSender(text.dropFirst(Self.compactRadio.count)) {
      self = BluetoothAddress(sender)
      return
    }
    guard text.utf8.count == 12, let value = Hexadecimal.number(text.utf8) else { return nil }
    self.value = value
  }

  /// The address whose six bytes are the lower 48 bits of `value`; the other bits are ignored.
  public init(truncating value: UInt64) { self.value = value & 0xFFFF_FFFF_FFFF }

  /// Whether the peripheral may change it every few minutes: a random address that is not static begins with a bit of 0, as a
  /// public one may, too (Core Specification, volume 6, part B, 1.3).
  public var mayBePrivate: Bool { radioSender == nil && value >> 47 == 0 }

  /// `c5a1b2c3d4e5` or `radio_9b4c2d1a`: lower case without colons, as used in topics.
  public var compact: String {
    radioSender.map { "\(Self.compactRadio)\($0)" } ?? Hexadecimal.text(value, bytes: 6)
  }
}

extension BluetoothAddress: CustomStringConvertible {
  /// `C5:A1:B2:C3:D4:E5`, the form that BlueZ writes; or `radio:9b4c2d1a`.
  public var description: String {
    if let radioSender { return "\(Self.radio)\(radioSender)" }
    return stride(from: 40, through: 0, by: -8)
      .map { Hexadecimal.text(value >> $0, bytes: 1).uppercased() }.joined(separator: ":")
  }
}
