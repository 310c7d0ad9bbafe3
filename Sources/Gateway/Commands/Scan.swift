import BlueZ
import Bridge
import Configuration
import EventLoop
import Findings
import Glibc
import JSON

/// `scan`: the peripherals in range, the strongest first, and what the gateway does with each.
struct Scan: Sendable {
  let values: Arguments.Values
  private var json: Bool { values.has(.json) }

  /// A screen that is redrawn more often is hard to read.
  private static let interval = Duration.milliseconds(500)

  @LoopActor func run() async throws(CommandFailure) {
    var stored = try StoredGateway(configuredBy: values[.config])
    let interruption = Interruption()
    if stored.adapters.isEmpty {
      stored.adapters = await HostReport.read().held(as: stored.configuration.bluetooth.adapters)
    }
    // Without the gateway, the configuration and what requests have changed say what it would do.
    let running = try? GatewayAccess.open(stored.id.description)
    defer { running?.close() }
    let local = try await LocalEngine.start(stored)
    let scan = local.beginScan()
    if values.has(.live) {
      let screen = Screen()
      let showing = loop.task { [stored] in await self.showLive(local, stored, running, screen) }
      interruption.action = { _ in showing.cancel() }
      await showing.value
      await screen.finish()
    } else {
      let limit = values.timeout ?? .seconds(10)
      if !json { printError("scanning for \(limit.components.seconds) s …") }
      try? await loop.sleep(for: limit)
    }
    let faults = local.scanFindings
    await local.stop()
    if !values.has(.live) { show(await Self.table(scan.peripherals, stored, running)) }
    for fault in faults { printError(fault.line) }
    if !faults.isEmpty { throw CommandFailure(scan.peripherals.isEmpty ? .unavailable : .refused) }
  }

  @LoopActor private static func table(
    _ peripherals: [Peripheral], _ stored: StoredGateway, _ running: GatewayAccess?
  ) async -> ScanTable {
    let devices = try? await running?.request("devices").elements
    let pairs = (devices ?? []).compactMap { device in device.identifier.map { ($0, device) } }
    return ScanTable(peripherals, stored, devices: Dictionary(pairs) { first, _ in first })
  }

  @LoopActor private func show(_ table: ScanTable) {
    if json { return printOutput(JSONValue.array(table.rows.map(\.json)).written) }
    if table.rows.isEmpty { printError("no Bluetooth device found") }
    for line in table.lines { printOutput(line) }
  }

  /// Updates a table on a terminal; otherwise there is a line for each peripheral when it is found. Without a timeout, until the
  /// task is cancelled.
  @LoopActor private func showLive(
    _ local: LocalEngine, _ stored: StoredGateway, _ running: GatewayAccess?, _ screen: Screen
  ) async {
    var printed: Set<String> = []
    let deadline = values.timeout.map { Moment.now + $0 }
    repeat {
      let peripherals = local.engine.peripheralsInRange.sorted(by: Self.precedes)
      let table = await Self.table(peripherals, stored, running)
      // The gateway's answer may be missing then.
      if Task.isCancelled { break }
      if screen.isTerminal {
        screen.show(
          peripherals.isEmpty
            ? ["scanning …"] : table.screen(rows: TerminalSize.rows - 1, columns: TerminalSize.columns))
      } else {
        for (row, line) in zip(table.rows, table.lines)
        where printed.insert(row.address).inserted {
          screen.write(line + "\n")
        }
      }
    } while (try? await loop.sleep(for: Self.interval)) != nil
      && deadline.map({ $0 <= .now }) != true && !StandardOutput.isClosed
  }

  /// The strongest first; rows do not change places for a few dB.
  private static func precedes(_ one: Peripheral, _ other: Peripheral) -> Bool {
    let (strong, weak) = ((one.rssi ?? -128) / 10, (other.rssi ?? -128) / 10)
    return strong == weak ? one.address.value < other.address.value : strong > weak
  }
}
