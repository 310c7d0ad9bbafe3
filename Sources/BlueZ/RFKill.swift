import Glibc

/// The kernel's switch that blocks radios (Linux, Documentation/driver-api/rfkill.rst).
enum RFKill {
  /// Whether the adapter (`hci0`) is blocked by software or by a hardware switch. bluetoothd 5.66 does not report it:
  /// it only shows the adapter as not powered.
  static func blocks(adapter: String) -> Bool {
    var found = glob_t()
    defer { globfree(&found) }
    guard glob("/sys/class/bluetooth/\(adapter)/rfkill*/[sh][oa][fr][td]", 0, nil, &found) == 0 else {
      return false
    }
    return (0..<Int(found.gl_pathc)).contains { index in
      guard let path = found.gl_pathv[index], let file = fopen(path, "r") else { return false }
      defer { fclose(file) }
      return fgetc(file) == Int32(UInt8(ascii: "1"))
    }
  }
}
