import Findings
import GATT
import Glibc

/// Whether Wi-Fi disturbs the Bluetooth that is built into a Raspberry Pi: both use one antenna on 2.4 GHz.
struct WiFiCheck {
  /// The configured one: `hci0`.
  let adapter: String
  /// `/sys` and `/proc` below another folder, for tests.
  var root = ""
  /// In MHz; nil: not connected, or not known.
  var frequency: (_ interface: String) -> Int? = WirelessExtensions.frequency

  func run() -> [Finding] {
    guard isBuiltIntoRaspberryPi,
      let interface = interfaces.first(where: { frequency($0).map { $0 < 3000 } ?? false })
    else { return [] }
    return [
      .warning(
        .wifi, "\(interface) uses Wi-Fi on 2.4 GHz, which disturbs the Bluetooth of a Raspberry Pi",
        remedy: "use Wi-Fi on 5 GHz or a network cable, or a USB Bluetooth adapter on a short extension cable"
      )
    ]
  }

  private var isBuiltIntoRaspberryPi: Bool {
    guard let file = fopen("\(root)/proc/device-tree/model", "r") else { return false }
    defer { fclose(file) }
    var model = [CChar](repeating: 0, count: 256)
    guard fgets(&model, Int32(model.count), file) != nil,
      String(decoding: model.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix(
        "Raspberry Pi")
    else { return false }
    // The built-in one is on a serial line, others are on USB.
    return matches("\(root)/sys/class/bluetooth/\(adapter)/device/tty*").isEmpty == false
      || link("\(root)/sys/class/bluetooth/\(adapter)").hasOccurrence(of: "serial")
  }

  private var interfaces: [String] {
    matches("\(root)/sys/class/net/*/wireless").compactMap { path in
      path.split(separator: "/").dropLast().last.map(String.init)
    }
  }

  private func matches(_ pattern: String) -> [String] {
    var found = glob_t()
    defer { globfree(&found) }
    guard glob(pattern, 0, nil, &found) == 0 else { return [] }
    return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
  }

  private func link(_ path: String) -> String {
    guard let target = realpath(path, nil) else { return "" }
    defer { free(target) }
    return String(cString: target)
  }
}

/// The Linux Wireless Extensions (linux/wireless.h).
enum WirelessExtensions {
  private static let getFrequency: UInt = 0x8B05

  /// In MHz; nil if the interface is not connected, or does not say.
  static func frequency(_ interface: String) -> Int? {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // `struct iwreq`: a name of 16 bytes, then `struct iw_freq`: mantissa (4 bytes), exponent (2 bytes), ….
    var request = [UInt8](repeating: 0, count: 32)
    for (index, byte) in interface.utf8.prefix(15).enumerated() { request[index] = byte }
    guard ioctl(descriptor, getFrequency, &request) == 0 else { return nil }
    return request.withUnsafeBytes { bytes in
      megahertz(
        mantissa: Int(bytes.loadUnaligned(fromByteOffset: 16, as: Int32.self)),
        exponent: Int(bytes.loadUnaligned(fromByteOffset: 20, as: Int16.self)))
    }
  }

  /// Small numbers are channels.
  static func megahertz(mantissa: Int, exponent: Int) -> Int? {
    guard mantissa > 0, (0...9).contains(exponent) else { return nil }
    if exponent == 0, mantissa < 1000 { return mantissa <= 14 ? 2400 : 5000 }
    return (0..<exponent).reduce(mantissa) { value, _ in value * 10 } / 1_000_000
  }
}
