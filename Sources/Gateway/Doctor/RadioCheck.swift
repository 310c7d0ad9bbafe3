import Configuration
import Findings
import Radio

/// The receivers on USB while no gateway reads them, as far as their ports show it. Blocks.
struct RadioCheck {
  let ports: Configuration.Radio.Ports
  /// Where the ports are; another folder only in tests.
  var folder = MicrobitPort.folder

  func run() -> [Finding] {
    let paths =
      switch ports {
      case .auto: MicrobitPort.all(in: folder).map(\.path)
      case .paths(let paths): paths
      }
    guard !paths.isEmpty else { return [.noReceiver] }
    return paths.map { path in
      SerialPort.Obstacle(at: path)?.finding(of: path) ?? .ok(.radio, "a receiver is plugged in (\(path))")
    }
  }
}
