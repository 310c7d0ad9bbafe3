import BlueZ
import Devices
import Findings
import GATT

extension HostReport {
  /// The address of the adapter that a gateway has locked, and that has none of the configured `names`, for each of them: it
  /// had one of them before, if the state database, which tells which, is closed to this user.
  func held(as names: [String]) -> [String: [UInt8]] {
    let held = adapters.filter { $0.gateway != nil && !names.contains($0.name) }
    guard held.count == 1 else { return [:] }
    return names.reduce(into: [:]) { $0[$1] = Array(held[0].address.utf8) }
  }
}

/// The bus, bluetoothd and the adapters, by what they report. Pure.
struct AdapterCheck {
  let report: HostReport
  let adapters: [AdapterSelection]
  /// The version of bluetoothd; nil: not known.
  let version: BluetoothdVersion?
  /// What blocks adapters, by the names that they have now.
  let blocks: [String: RFKill.Block]
  /// The configured `bluetooth.links`.
  let mostLinks: Int
  /// Whether the gateway runs, which may scan and hold notifications itself.
  let isGatewayRunning: Bool

  func run() -> [Finding] {
    if let problem = report.busProblem { return [CentralState.noBus(problem).finding(adapter: "")] }
    let bus = Finding.ok(.bus, "the system bus answers")
    if let refusal = report.refusal { return (report.bluetoothd == nil ? [] : [bus]) + [refused(refusal)] }
    guard report.bluetoothd != nil else { return [bus, CentralState.noBluetoothd.finding(adapter: "")] }
    return [bus, version?.finding ?? .ok(.bluetoothd, "bluetoothd is running")] + adapters.flatMap(findings)
  }

  private func refused(_ reason: String) -> Finding {
    report.isDenied
      ? CentralState.unauthorized.finding(adapter: "")
      : .fault(
        .bluetoothd, "bluetoothd does not answer: \(reason)", remedy: "sudo systemctl restart bluetooth")
  }

  private func findings(_ selection: AdapterSelection) -> [Finding] {
    let adapter = selection.choose(from: report.addresses)
    guard let found = report.adapters.first(where: { $0.name == adapter }) else { return [absent(adapter)] }
    guard found.isCentral else { return [CentralState.adapterUnsupported.finding(adapter: adapter)] }
    if let block = blocks[adapter], !found.isPowered { return [blocked(adapter, by: block)] }
    guard found.isPowered else { return [CentralState.adapterOff.finding(adapter: adapter)] }
    return [on(found, as: selection.name)] + (isGatewayRunning ? [] : otherPrograms(found))
  }

  private func absent(_ adapter: String) -> Finding {
    let used = adapters.map(\.name) + adapters.map { $0.choose(from: report.addresses) }
    let others = report.adapters.map(\.name).filter { !used.contains($0) }
    return CentralState.adapterAbsent.finding(adapter: adapter, others: others)
  }

  private func blocked(_ adapter: String, by block: RFKill.Block) -> Finding {
    switch block {
    case .software: CentralState.adapterBlocked.finding(adapter: adapter)
    case .hardware:
      .fault(
        .adapter, "the adapter \(adapter) is blocked by a switch of this machine",
        remedy: "turn on the switch or key for radio or airplane mode")
    }
  }

  /// - Parameter name: the configured one.
  private func on(_ found: HostReport.Adapter, as name: String) -> Finding {
    if found.links >= mostLinks {
      return .warning(
        .adapter, "all \(mostLinks) connections of \(found.name) (bluetooth.links) are in use",
        remedy: "further devices take turns: use another adapter for them if they are to stay connected")
    }
    let state = CentralState.on(adapter: found.name, address: found.address).finding(adapter: found.name)
    let use = found.name == name ? "" : ", and used as \(name)"
    return .ok(.adapter, "\(state.text)\(use); \(found.links) of \(mostLinks) connections are in use")
  }

  private func otherPrograms(_ found: HostReport.Adapter) -> [Finding] {
    let scanning = Finding.warning(
      .adapter, "another program scans with \(found.name): connecting takes longer",
      remedy: "end it (bluetoothctl scan off, or close the Bluetooth settings); if there is none: "
        + "sudo systemctl restart bluetooth")
    return (found.isDiscovering ? [scanning] : [])
      + report.acquired.filter { $0.adapter == found.name }.map { acquired in
        let property = Profile.microbit.properties.first { $0.characteristic == acquired.characteristic }
        return .notificationsTaken(
          of: property?.name ?? acquired.characteristic.description, device: acquired.device.description)
      }
  }
}
