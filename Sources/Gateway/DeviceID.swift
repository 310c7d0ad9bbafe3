import GATT
import Glibc

/// What a device is called in topics: `[a-z0-9_-]{1,64}`, and none of the names that topics use themselves.
struct DeviceID: Hashable, Sendable, CustomStringConvertible {
  let description: String

  /// The names that stand where a device's would, with another meaning.
  static let reserved = ["bridge", "all", "area"]

  /// Why a text cannot be an id.
  enum Problem: Error, Equatable {
    case characters
    case reserved
  }

  init(_ text: String) throws(Problem) {
    guard TopicWord.isValid(text) else { throw .characters }
    guard !Self.reserved.contains(text) else { throw .reserved }
    description = text
  }

  /// The id of a device that has none by configuration: `c5a1b2c3d4e5`.
  init(_ address: BluetoothAddress) {
    description = address.compact
  }
}

/// What this gateway is called in topics: `[a-z0-9_-]{1,64}`.
struct GatewayID: Hashable, Sendable, CustomStringConvertible {
  let description: String

  /// Nil for anything but a valid id.
  init?(_ text: String) {
    guard TopicWord.isValid(text) else { return nil }
    description = text
  }

  /// The id of a gateway that has none by configuration: the host's name, with what an id cannot hold
  /// replaced by `-`.
  init(hostName: String) {
    let characters = hostName.lowercased().unicodeScalars.map { scalar in
      TopicWord.isAllowed(scalar) ? Character(scalar) : "-"
    }
    let text = String(characters.prefix(TopicWord.longest))
    description = text.allSatisfy { $0 == "-" } ? "gateway" : text
  }

  /// The id by the name of the host that this runs on.
  static var ofThisHost: GatewayID {
    var name = [CChar](repeating: 0, count: 256)
    let failed = gethostname(&name, name.count - 1) != 0
    let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return GatewayID(hostName: failed ? "" : String(decoding: text, as: UTF8.self))
  }
}

/// A level of a topic that is a name: no separators, no wildcards, no case to mistake.
enum TopicWord {
  static let longest = 64

  static func isValid(_ text: some StringProtocol) -> Bool {
    (1...longest).contains(text.utf8.count) && text.utf8.allSatisfy { isAllowed(Unicode.Scalar($0)) }
  }

  /// `living-room` for `Living room`; nil when nothing that one would choose comes of it.
  static func similar(to text: String) -> String? {
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let words = text.lowercased().unicodeScalars.split { !isAllowed($0) }
    let word = words.map { String($0) }.joined(separator: "-")
    return isValid(word) && !DeviceID.reserved.contains(word) ? word : nil
  }

  static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "0"..."9", "_", "-": true
    default: false
    }
  }
}
