import GATT
import Glibc

/// What a device is called in topics: `[a-z0-9_-]{1,64}`, and none of the names that topics use themselves.
package struct DeviceID: Hashable, Sendable, CustomStringConvertible {
  /// The id itself.
  package let description: String

  /// The words that have another meaning in the place of a device's name.
  static let reserved = ["bridge", "all", "area", "fleet"]

  /// Why a text cannot be an id.
  package enum Problem: Error, Equatable {
    case characters
    case reserved
  }

  /// - Throws: why the text is not an id.
  package init(_ text: String) throws(Problem) {
    guard TopicWord.isValid(text) else { throw .characters }
    guard !Self.reserved.contains(text) else { throw .reserved }
    description = text
  }

  /// The id of a device that has none by configuration: `c5a1b2c3d4e5`.
  package init(_ address: BluetoothAddress) {
    description = address.compact
  }
}

/// What this gateway is called in topics: `[a-z0-9_-]{1,64}`.
package struct GatewayID: Hashable, Sendable, CustomStringConvertible {
  /// The id itself.
  package let description: String

  /// Nil for anything but a valid id.
  package init?(_ text: String) {
    guard TopicWord.isValid(text) else { return nil }
    description = text
  }

  /// The id of a gateway that has none by configuration: the host's name, with what an id cannot hold
  /// replaced by `-`.
  package init(hostName: String) {
    let characters = hostName.lowercased().unicodeScalars.map { scalar in
      TopicWord.isAllowed(scalar) ? Character(scalar) : "-"
    }
    let text = String(characters.prefix(TopicWord.longest))
    description = text.allSatisfy { $0 == "-" } ? "gateway" : text
  }

  /// The id by the name of the host that this runs on.
  package static var ofThisHost: GatewayID {
    var name = [CChar](repeating: 0, count: 256)
    let failed = gethostname(&name, name.count - 1) != 0
    let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return GatewayID(hostName: failed ? "" : String(decoding: text, as: UTF8.self))
  }
}

/// A level of a topic that is a name: no separators, no wildcards, no case to mistake.
package enum TopicWord {
  /// In characters.
  package static let longest = 64

  /// Whether a text can be such a level.
  package static func isValid(_ text: some StringProtocol) -> Bool {
    (1...longest).contains(text.utf8.count) && text.utf8.allSatisfy { isAllowed(Unicode.Scalar($0)) }
  }

  /// `living-room` for `Living room`, `kueche` for `Küche`; nil if no reasonable id results.
  package static func similar(to text: String) -> String? {
    let text = text.lowercased().map { plain[$0] ?? String($0) }.joined()
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let words = text.unicodeScalars.split { !isAllowed($0) }
    let word = words.map { String($0) }.joined(separator: "-")
    return isValid(word) && !DeviceID.reserved.contains(word) ? word : nil
  }

  /// How letters with accents and ligatures are written without them.
  private static let plain: [Character: String] = {
    var letters: [Character: String] = [
      "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe", "ł": "l", "đ": "d",
    ]
    for (accented, letter) in [
      ("àáâãåāăą", "a"), ("çćč", "c"), ("ď", "d"), ("èéêëēėęě", "e"), ("ğ", "g"), ("ìíîïīįı", "i"),
      ("ñńň", "n"), ("òóôõōő", "o"), ("řŕ", "r"), ("śşšș", "s"), ("ťțţ", "t"), ("ùúûūůűų", "u"),
      ("ýÿ", "y"), ("źżž", "z"),
    ] {
      for character in accented { letters[character] = letter }
    }
    return letters
  }()

  /// Whether the character may be in such a level: `[a-z0-9_-]`.
  package static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "0"..."9", "_", "-": true
    default: false
    }
  }
}
