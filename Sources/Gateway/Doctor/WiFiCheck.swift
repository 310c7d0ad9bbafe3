import Configuration
import EventLoop
import Findings
import GATT

/// Whether Wi-Fi disturbs the Bluetooth that is built into a Raspberry Pi: both use one antenna on 2.4 GHz. Blocks.
struct WiFiCheck {
  /// Its name: `hci0`.
  let adapter: String
  /// `/sys` and `/proc` below another folder, for tests.
  var root = ""
  /// The frequency in MHz; nil: not connected, or not known.
  var frequency: (_ interface: String) -> Int? = { interface in
    Self.frequency(SystemProgram.run("iw dev \(interface.shellWord) info 2> /dev/null").output)
  }

  /// - Parameter info: as iw(8) prints it: `channel 6 (2437 MHz), width: 20 MHz, center1: 2437 MHz`.
  static func frequency(_ info: String) -> Int? {
    let words = info.split { $0 == " " || $0 == "\n" || $0 == "\t" }
    guard let word = words.firstIndex(of: "channel"), word + 2 < words.count else { return nil }
    return Int(words[word + 2].dropFirst())
  }

  func run() -> Finding? {
    guard isBuiltIntoRaspberryPi,
      let interface = interfaces.first(where: { frequency($0).map { $0 < 3000 } ?? false })
    else { return nil }
    return .warning(
      .wifi, "\(interface) uses Wi-Fi on 2.4 GHz, which disturbs the Bluetooth of a Raspberry Pi",
      remedy: "use Wi-Fi on 5 GHz or a network cable, or a USB Bluetooth adapter on a short extension cable")
  }

  private var isBuiltIntoRaspberryPi: Bool {
    guard let model = try? FileProblem.read("\(root)/proc/device-tree/model", limit: 1 << 10),
      model.starts(with: "Raspberry Pi".utf8)
    else { return false }
    // The built-in one is on a serial line, others are on USB.
    let adapter = "\(root)/sys/class/bluetooth/\(adapter)"
    return !Folder.matches("\(adapter)/device/tty*").isEmpty
      || ServiceAccess.real(adapter)?.hasOccurrence(of: "serial") == true
  }

  private var interfaces: [String] {
    Folder.matches("\(root)/sys/class/net/*/wireless").compactMap { path in
      path.split(separator: "/").dropLast().last.map(String.init)
    }
  }
}
