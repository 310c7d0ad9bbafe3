import GATT
import Glibc

/// What a device is called in topics: letters and digits of any script in lower case, `_` and `-`, 64 at most, and none
/// of the names that topics use themselves.
package struct DeviceID: Hashable, Sendable, CustomStringConvertible {
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
  package init(_ address: BluetoothAddress) { description = address.compact }
}

/// What this gateway is called in topics: `[a-z0-9_-]{1,64}`.
package struct GatewayID: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  /// Reads an id; nil for anything but a valid one.
  package init?(_ text: String) {
    guard TopicWord.isPlain(text) else { return nil }
    description = text
  }

  /// The id of a gateway that has none by configuration: the host's name, with what an id cannot hold
  /// replaced by `-`.
  package init(hostName: String) {
    let characters = hostName.lowercased().unicodeScalars.map { scalar in
      TopicWord.isPlain(scalar) ? Character(scalar) : "-"
    }
    let text = String(characters.prefix(TopicWord.longest))
    description = text.allSatisfy { $0 == "-" } ? "gateway" : text
  }

  /// The id by the name of the host that this runs on.
  package static var ofThisHost: GatewayID { GatewayID(hostName: nameOfThisHost) }

  static var nameOfThisHost: String {
    var name = [CChar](repeating: 0, count: 256)
    let failed = gethostname(&name, name.count - 1) != 0
    let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return failed ? "" : String(decoding: text, as: UTF8.self)
  }
}
