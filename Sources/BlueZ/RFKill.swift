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

  /// Whether the adapter (`hci0`) is blocked by software or by a hardware switch. bluetoothd 5.66 does not report it:
  /// it only shows the adapter as not powered.
  static func blocks(adapter: String) -> Bool {
    block(ofSwitches: "/sys/class/bluetooth/\(adapter)/rfkill*") != nil
  }

  /// What blocks any of the switches whose folders match `pattern` (glob(7)); nil: nothing does.
  package static func block(ofSwitches pattern: String) -> Block? {
    if isSet("\(pattern)/hard") { return .hardware }
    return isSet("\(pattern)/soft") ? .software : nil
  }

  private static func isSet(_ pattern: String) -> Bool {
    var found = glob_t()
    defer { globfree(&found) }
    guard glob(pattern, 0, nil, &found) == 0 else { return false }
    return (0..<Int(found.gl_pathc)).contains { index in
      guard let path = found.gl_pathv[index], let file = fopen(path, "r") else { return false }
      defer { fclose(file) }
      return fgetc(file) == Int32(UInt8(ascii: "1"))
    }
  }
}
