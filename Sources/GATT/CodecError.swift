/// Why bytes cannot be decoded, or a value cannot be encoded.
public enum CodecError: Error, Sendable, Hashable {
  /// The number of bytes is not that of the value.
  case length(expected: Int, bytes: [UInt8])
  /// The bytes end too early: at least `needed` were expected.
  case tooShort(needed: Int, bytes: [UInt8])
  /// A text is not UTF-8.
  case notUTF8([UInt8])
  /// An Eddystone-URL has an unknown scheme, or a byte that stands for nothing.
  case notEddystoneURL([UInt8])
  /// A text has control characters other than tabs.
  case controlCharacters([UInt8])
  /// A text is not a number.
  case notANumber([UInt8])
  /// A uint64 that ``Value/integer(_:)`` cannot hold.
  case tooLarge(UInt64)

  /// The number does not fit.
  case range(value: Double, allowed: ClosedRange<Double>)
  /// A value of the wrong kind.
  case kind(expected: String, found: String)
  /// A word or number that the enumeration does not have.
  case word(String, known: [String])
  /// More bytes than the characteristic or the property's `max_length` allows.
  case tooLong(count: Int, most: Int)
  /// A record must have this field.
  case missingField
  /// No combination of flags matches the fields that the record has.
  case presence
  /// The advertisement is not of this kind, or does not have the value: another one may.
  case absent
  /// The advertisement is of BTHome, and cannot be read.
  case unreadable(BTHome.Obstacle)
  /// An error in a field of a record.
  indirect case field(String, CodecError)
}

extension CodecError: CustomStringConvertible {
  /// The text for the log and the sender of a command. Bytes are shown in hexadecimal, as they are untrusted.
  public var description: String {
    switch self {
    case .length(let expected, let bytes):
      "expected \(Self.count(expected)), got \(bytes.count)\(Self.excerpt(bytes))"
    case .tooShort(let needed, let bytes):
      "expected at least \(Self.count(needed)), got \(bytes.count)\(Self.excerpt(bytes))"
    case .notUTF8(let bytes): "not UTF-8\(Self.excerpt(bytes))"
    case .notEddystoneURL(let bytes): "not an address of Eddystone-URL\(Self.excerpt(bytes))"
    case .controlCharacters(let bytes): "control characters in a text\(Self.excerpt(bytes))"
    case .notANumber(let bytes): "not a number in plain digits\(Self.text(bytes))"
    case .tooLarge(let value): "\(value) is above \(Int.max)"
    case .range(let value, let allowed):
      "\(Self.plain(value)) is outside \(Self.plain(allowed.lowerBound))…\(Self.plain(allowed.upperBound))"
    case .kind(let expected, let found): "expected \(expected), got \(found)"
    case .word(let word, let known): "\"\(word)\" is not one of \(known.joined(separator: ", "))"
    case .tooLong(let count, let most): "\(Self.count(count)) are more than \(most)"
    case .missingField: "missing"
    case .presence: "these fields cannot be present and missing together"
    case .absent: "not in this advertisement"
    case .unreadable(.encrypted): "it is encrypted, and there is no key"
    case .unreadable(.notEncrypted): "it is not encrypted, although there is a key"
    case .unreadable(.wrongKey): "it is encrypted with another key"
    case .unreadable(.repeated): "its counter has gone back: it was sent before, or the device was reset"
    case .unreadable(.version(let version)): "it is of version \(version) of BTHome, not 2"
    case .field(let name, let error): "\(name): \(error)"
    }
  }

  /// The maximum of bytes shown: those of a notification at the smallest MTU.
  private static let shown = 20

  private static func excerpt(_ bytes: [UInt8]) -> String {
    guard !bytes.isEmpty else { return "" }
    let digits = bytes.prefix(shown).map { Hexadecimal.text($0, bytes: 1) }
    return ": \(digits.joined(separator: " "))\(bytes.count > shown ? " …" : "")"
  }

  /// A short text of plain characters as it is.
  private static func text(_ bytes: [UInt8]) -> String {
    bytes.count <= shown && bytes.allSatisfy { (0x20...0x7E).contains($0) }
      ? ": \"\(String(decoding: bytes, as: UTF8.self))\"" : excerpt(bytes)
  }

  private static func count(_ bytes: Int) -> String { bytes == 1 ? "1 byte" : "\(bytes) bytes" }

  /// A whole number without `.0`.
  private static func plain(_ number: Double) -> String {
    Int(exactly: number).map { "\($0)" } ?? "\(number)"
  }
}
