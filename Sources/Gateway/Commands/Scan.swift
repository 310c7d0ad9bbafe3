import BlueZ
import Bridge
import Configuration
import EventLoop
import Findings
import GATT
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
    let table: Table = { [stored] peripherals in
      ScanTable(
        peripherals, stored.configuration, gateway: stored.id, records: stored.records,
        devices: await Self.devices(of: running))
    }
    let faults: [Finding]
    var isEmpty = false
    if values.has(.live) {
      let engine = try await LocalEngine.start(stored)
      engine.beginScan()
      let screen = Screen()
      let showing = loop.task { await self.showLive(engine, table, screen) }
      interruption.action = { _ in showing.cancel() }
      isEmpty = await showing.value
      await screen.finish()
      faults = engine.scanFindings
      await engine.stop()
    } else {
      let limit = values.timeout ?? .seconds(10)
      let scan = try await LocalEngine.scan(stored, for: limit) {
        if !json { printError("scanning for \(limit.components.seconds) s …") }
      }
      await show(scan.found, table)
      (isEmpty, faults) = (scan.found.isEmpty, scan.faults)
    }
    for fault in faults { printError(fault.line) }
    if !faults.isEmpty { throw CommandFailure(isEmpty ? .unavailable : .refused) }
  }

  /// The devices of a running gateway, by their addresses.
  @LoopActor private static func devices(of running: GatewayAccess?) async -> [BluetoothAddress: JSONValue] {
    let devices = try? await running?.request("devices").elements
    let pairs = (devices ?? []).compactMap { device in
      device["identifier"]?.text.flatMap { BluetoothAddress($0) }.map { ($0, device) }
    }
    return Dictionary(pairs) { first, _ in first }
  }

  private typealias Table = @LoopActor ([Peripheral]) async -> ScanTable

  @LoopActor private func show(_ peripherals: [Peripheral], _ table: Table) async {
    let table = await table(peripherals)
    if json { return printOutput(JSONValue.array(table.rows.map(\.json)).written) }
    if peripherals.isEmpty { printError("no Bluetooth device found") }
    for line in table.lines { printOutput(line) }
  }

  /// Updates a table on a terminal; otherwise there is a line for each peripheral when it is found. Without a timeout, until the
  /// task is cancelled.
  /// - Returns: whether nothing was found.
  @LoopActor private func showLive(
    _ engine: LocalEngine, _ table: Table, _ screen: Screen
  ) async -> Bool {
    var printed: Set<String> = []
    var isEmpty = true
    let deadline = values.timeout.map { Moment.now + $0 }
    repeat {
      let peripherals = engine.inRange.sorted(by: Self.precedes)
      if !peripherals.isEmpty { isEmpty = false }
      let table = await table(peripherals)
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
    return isEmpty
  }

  /// The strongest first; rows do not change places for a few dB.
  private static func precedes(_ one: Peripheral, _ other: Peripheral) -> Bool {
    let (strong, weak) = ((one.rssi ?? -128) / 10, (other.rssi ?? -128) / 10)
    return strong == weak ? one.address.value < other.address.value : strong > weak
  }
}
