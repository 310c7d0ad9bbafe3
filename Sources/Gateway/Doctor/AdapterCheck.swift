import BlueZ
import Devices
import Findings
import GATT

/// The bus, bluetoothd and the adapter, by what they report. Pure.
struct AdapterCheck {
  let report: HostReport
  /// The configured one: `hci0`.
  let adapter: String
  /// Nil: not known.
  let version: BluetoothdVersion?
  let notify: NotificationMethod
  /// What blocks the adapter.
  let block: RFKill.Block?
  /// Whether the gateway runs, which may scan and hold notifications itself.
  let isGatewayRunning: Bool

  /// Many adapters have no more links.
  private static let mostLinks = 7

  func run() -> [Finding] {
    if let problem = report.busProblem { return [CentralState.noBus(problem).finding(adapter: adapter)] }
    let bus = Finding.ok(.bus, "the system bus answers")
    guard report.bluetoothd != nil else { return [bus, CentralState.noBluetoothd.finding(adapter: adapter)] }
    if let refusal = report.refusal { return [bus, refused(refusal)] }
    return [bus, bluetoothd] + ofAdapter
  }

  private var bluetoothd: Finding { version?.finding(notify) ?? .ok(.bluetoothd, "bluetoothd is running") }

  private func refused(_ reason: String) -> Finding {
    let isDenied = reason.contains("AccessDenied")
    return .fault(
      .bluetoothd,
      isDenied ? "you may not use bluetoothd: \(reason)" : "bluetoothd does not answer: \(reason)",
      remedy: isDenied
        ? "sudo usermod -aG bluetooth $USER, then log in again" : "sudo systemctl restart bluetooth")
  }

  private var ofAdapter: [Finding] {
    guard let found = report.adapters.first(where: { $0.name == adapter }) else { return [absent] }
    if let block, !found.isPowered { return [blocked(by: block)] }
    guard found.isPowered else { return [CentralState.adapterOff.finding(adapter: adapter)] }
    return [on(found)] + (isGatewayRunning ? [] : otherPrograms(found))
  }

  private var absent: Finding {
    let others = report.adapters.map(\.name)
    let finding = CentralState.adapterAbsent.finding(adapter: adapter)
    guard let first = others.first else { return finding }
    return .fault(
      .adapter, "\(finding.text); there is \(others.joined(separator: ", "))",
      remedy: "set bluetooth.adapters to [\"\(first)\"] in the configuration, or plug the other one in")
  }

  private func blocked(by block: RFKill.Block) -> Finding {
    switch block {
    case .software: CentralState.adapterBlocked.finding(adapter: adapter)
    case .hardware:
      .fault(
        .adapter, "the adapter \(adapter) is blocked by a switch of this machine",
        remedy: "turn on the switch or key for radio or airplane mode")
    }
  }

  private func on(_ found: HostReport.Adapter) -> Finding {
    let links = found.links == 1 ? "1 link is in use" : "\(found.links) links are in use"
    if found.links >= Self.mostLinks {
      return .warning(
        .adapter, "\(links) on \(adapter): many adapters have no more than \(Self.mostLinks)",
        remedy: #"connect some devices on demand ("connect": "on_demand"), or use another adapter for them"#)
    }
    let state = CentralState.on(adapter: adapter, address: found.address).finding(adapter: adapter)
    return .ok(.adapter, "\(state.text); \(links)")
  }

  private func otherPrograms(_ found: HostReport.Adapter) -> [Finding] {
    let scanning = Finding.warning(
      .adapter, "another program scans with \(adapter): connecting takes longer",
      remedy: "end it (bluetoothctl scan off, or close the Bluetooth settings); if there is none: "
        + "sudo systemctl restart bluetooth")
    return (found.isDiscovering ? [scanning] : [])
      + report.acquired.filter { $0.adapter == adapter }.map { acquired in
        let property = Profile.microbit.properties.first { $0.characteristic == acquired.characteristic }
        return .notificationsTaken(
          of: property?.name ?? acquired.characteristic.description, device: acquired.device.description)
      }
  }
}
