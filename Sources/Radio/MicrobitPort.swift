import Configuration
import GATT

/// The serial port of a micro:bit on USB, by the name that udev gives it: `/dev/ttyACM0` may be another one tomorrow.
package struct MicrobitPort: Sendable, Hashable {
  /// Where udev has the serial ports by the names of what is plugged in.
  package static let folder = "/dev/serial/by-id"

  /// The file to open.
  package let path: String
  /// The kind of board: the first four of the 48 hexadecimal digits of its interface chip's serial number, `9904` for a V2.
  package let board: String

  /// Reads `usb-Arm_BBC_micro:bit_CMSIS-DAP_9904…-if01`; nil for a name that is not DAPLink's.
  package init?(_ name: String, in folder: String) {
    let parts = name.split(separator: "_").map(String.init)
    let end = "-if01"
    guard name.hasPrefix("usb-"), parts.count >= 4, parts[parts.count - 3] == "micro:bit",
      parts[parts.count - 4].hasSuffix("BBC"), parts[parts.count - 2] == "CMSIS-DAP",
      let last = parts.last, last.hasSuffix(end), last.utf8.count == 48 + end.utf8.count,
      last.hasPrefix("99"), Hexadecimal.bytes(String(last.dropLast(end.utf8.count))) != nil
    else { return nil }
    path = "\(folder)/\(name)"
    board = String(last.prefix(4))
  }

  /// The ports of all micro:bits that are plugged in, in the order of their names.
  package static func all(in folder: String = folder) -> [MicrobitPort] {
    let names = FolderNames.all(in: folder) ?? []
    return names.compactMap { MicrobitPort($0, in: folder) }.sorted { $0.path < $1.path }
  }
}
