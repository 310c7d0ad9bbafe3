import Configuration
import EventLoop
import GATT
import JSON
import Recording
import Store
import Synchronization
import TestSupport

@testable import Bridge
@testable import Control
@testable import Devices

/// The gateway's socket with an engine that has no Bluetooth: the device is that of the configuration, and tests call
/// its observers as the engine would.
@LoopActor final class ServerUnderTest {
  static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  let folder: TemporaryFolder
  let engine: DeviceManager
  nonisolated let host: any RequestHost
  private nonisolated let parts = Mutex<ControlServer?>(nil)

  init() async throws {
    folder = try TemporaryFolder()
    let text =
      #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen"},"#
      + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"hall"}]}"#
    let configuration = try Configuration.parse(Array(text.utf8)).get()
    engine = DeviceManager(
      configuration, gateway: GatewayID(hostName: "here"), state: .inMemory())
    engine.start()
    host = Host(engine)
    let server = ControlServer(host)
    parts.withLock { $0 = server }
    let path = path
    try await onLoop { try server.listen(at: path) }
  }

  deinit {
    // The server's host lives as long as the server serves.
    let (server, host) = (parts.withLock { $0 }, host)
    loop.onLoop { withExtendedLifetime(host) { server?.stop() } }
  }

  nonisolated var path: String { folder.path + "/here.sock" }
  var server: ControlServer { parts.withLock { $0! } }

  func onLoop<T: Sendable>(_ body: @escaping @LoopActor () throws -> T) async throws -> T {
    try engine.perform(body)
  }

  /// The gateway can be set up in a browser from now on.
  func allowSetup() async throws {
    let server = server
    try await onLoop { server.openSetup = { .success(["code": "x"]) } }
  }

  /// Delivers readings of the first device as the engine does.
  func receive(_ values: [Int]) async {
    engine.deliver(values, to: Self.address)
  }

  /// The number of observers of the first device.
  func observers() async -> Int { engine.observers(of: Self.address) }
}

/// What requests ask of the gateway.
private final class Host: RequestHost, Sendable {
  let engine: DeviceManager

  init(_ engine: DeviceManager) { self.engine = engine }

  func listing(of device: DeviceDescription) -> JSONValue {
    device.listing(owner: nil)
  }
  func otherOwner(of device: DeviceDescription) -> GatewayID? { nil }
  func idElsewhere(of id: DeviceID) -> DeviceID? { nil }
  var health: GatewayHealth { GatewayHealth(findings: []) }
  var reload: ReloadHandler { { _ in } }
  var recorder: Recorder { Recorder(engine, folder: nil) }
}

extension DeviceManager {
  fileprivate func perform<T>(_ body: @LoopActor () throws -> T) rethrows -> T { try body() }

  fileprivate func deliver(_ values: [Int], to address: BluetoothAddress) {
    guard let device = registry.byAddress[address] else { return }
    for value in values { device.channels[0].reportReading(of: .integer(value)) }
  }

  fileprivate func observers(of address: BluetoothAddress) -> Int {
    registry.byAddress[address]?.observers.count ?? 0
  }
}
