import EventLoop
import Glibc

/// The kernel's switches that block radios (Linux, Documentation/driver-api/rfkill.rst).
package enum RFKill {
  /// What blocks a radio.
  package enum Block: Sendable, Equatable {
    /// A program: `rfkill unblock` ends it.
    case software
    /// A switch or a key of the machine.
    case hardware
  }

  /// What blocks the adapter (`hci0`); nil: nothing does. bluetoothd 5.66 does not report it: it only shows the adapter as
  /// not powered.
  package static func block(ofAdapter adapter: String) -> Block? {
    block(ofSwitches: "/sys/class/bluetooth/\(adapter)/rfkill*")
  }

  /// What blocks any of the switches whose folders match `pattern` (glob(7)); nil: nothing does.
  static func block(ofSwitches pattern: String) -> Block? {
    if isSet("\(pattern)/hard") { return .hardware }
    return isSet("\(pattern)/soft") ? .software : nil
  }

  /// Ends what programs block of all Bluetooth, as `rfkill unblock bluetooth` does. systemd keeps it over restarts.
  /// - Returns: why it cannot be ended; nil: it has.
  package static func unblockBluetooth(by device: String = device) -> String? {
    // struct rfkill_event: no index, RFKILL_TYPE_BLUETOOTH, RFKILL_OP_CHANGE_ALL, neither soft nor hard.
    let event: [UInt8] = [0, 0, 0, 0, 2, 3, 0, 0]
    let file = open(device, O_WRONLY | O_CLOEXEC)
    defer { if file >= 0 { close(file) } }
    guard file >= 0, write(file, event, event.count) == event.count else {
      return String(cString: strerror(errno))
    }
    return nil
  }

  /// Whether this process may end what programs block.
  package static var mayUnblock: Bool { access(device, W_OK) == 0 }

  package static let device = "/dev/rfkill"

  private static func isSet(_ pattern: String) -> Bool {
    Folder.matches(pattern).contains { Folder.content(ofFile: $0)?.first == UInt8(ascii: "1") }
  }
}
