import BlueZ
import Configuration
import EventLoop
import Findings
import GATT
import JSON
import Log
import MQTT
import Recording
import Store
import Synchronization
import TestSupport

@testable import Bridge
@testable import Devices
@testable import Web

/// The server with an engine that has no Bluetooth: tests call its observers as the engine would.
@LoopActor final class SiteUnderTest {
  static let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)

  let folder: TemporaryFolder
  let port: ReservedPort
  let engine: DeviceManager
  let configuration: Configuration
  private nonisolated let parts = Mutex<(server: WebServer?, url: String?, problem: String?)>((nil, nil, nil))
  private nonisolated let host: Host

  /// - Parameter http: more keys of `http`.
  init(http: String = "", port: ReservedPort? = nil) async throws {
    folder = try TemporaryFolder()
    self.port = try port ?? ReservedPort()
    try folder.write("secret\nsecond line", to: "password")
    try folder.write("look\n", to: "look")
    let text =
      #"{"http":{"enabled":true,"port":\#(self.port.number)\#(http.replacing("FOLDER", with: folder.path))},"#
      + #""devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen","name":"<b>Kitchen</b>","#
      + #""properties":["temperature","period","button_a","accelerometer","uart_rx","uart_tx","led"]},"#
      + #"{"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"hall"}]}"#
    configuration = try Configuration.parse(Array(text.utf8)).get()
    engine = DeviceManager(
      configuration, gateway: GatewayID(hostName: "here"), state: .inMemory())
    engine.start()
    host = Host(engine, recordings: folder.path + "/recordings")
    let server = WebServer(host)
    let listens = Waiter<Void>()
    try await onLoop { [self, configuration] in
      server.onChange = { [weak self] url, problem in
        self?.parts.withLock { ($0.url, $0.problem) = (url, problem?.line) }
        listens.resume(.success(()))
      }
      server.configure(configuration)
    }
    parts.withLock { $0.server = server }
    try await listens.value()
  }

  deinit {
    // The server's host lives as long as the server serves.
    let (server, host) = (parts.withLock { $0.server }, host)
    loop.onLoop { withExtendedLifetime(host) { server?.stop() } }
  }

  nonisolated var url: String? { parts.withLock { $0.url } }
  nonisolated var problem: String? { parts.withLock { $0.problem } }

  /// On the loop.
  var state: WebState? { parts.withLock { $0.server }?.site?.state }

  func stop() async throws {
    let server = parts.withLock { $0.server }
    try await onLoop { server?.stop() }
  }

  func onLoop<T: Sendable>(_ body: @escaping @LoopActor () throws -> T) async throws -> T {
    try engine.perform(body)
  }

  func get(_ path: String, _ headers: [String] = []) async throws -> HTTPReply {
    try await HTTPReply("GET \(path)", port: port.number, headers)
  }

  func post(_ verb: String, _ body: String, _ headers: [String] = []) async throws -> HTTPReply {
    try await HTTPReply("POST /api/request/\(verb)", port: port.number, headers, body: body)
  }

  /// Delivers readings of the first device as the engine does.
  func receive(_ values: [Value], of property: String = "temperature") async {
    engine.deliver(values, of: property, to: Self.address)
  }

  /// Lines of the program of the first device.
  func receive(lines: [String]) async { engine.deliver(lines, to: Self.address) }

  func observers() async -> Int { engine.observers(of: Self.address) }
  func removeDevice() async throws { _ = try engine.remove(try DeviceID("kitchen")) }
  func reload(_ devices: String) async throws {
    engine.configure(try Configuration.parse(Array(#"{"devices":[\#(devices)]}"#.utf8)).get())
  }
  func rename() async throws { try engine.rename(try DeviceID("kitchen"), to: try DeviceID("attic")) }

  /// The adapter is broken from now on.
  nonisolated func breakAdapter() { host.faulty.withLock { $0 = true } }

  /// Another gateway has the device from now on; nil: none.
  nonisolated func give(_ id: DeviceID, to gateway: GatewayID?) { host.owners.withLock { $0[id] = gateway } }

  /// Its health has these findings from now on.
  nonisolated func report(_ findings: [Finding]) { host.findings.withLock { $0 = findings } }
}

/// What the server asks of the gateway.
private final class Host: PageHost, Sendable {
  let engine: DeviceManager
  let gateway = GatewayID(hostName: "here")
  nonisolated let faulty = Mutex(false)
  nonisolated let findings = Mutex<[Finding]>([])
  nonisolated let owners = Mutex<[DeviceID: GatewayID]>([:])
  private nonisolated let sent = Mutex(6)
  private nonisolated let started = Timestamp.now
  private nonisolated let run = RunID()

  let recorder: Recorder

  init(_ engine: DeviceManager, recordings: String) {
    self.engine = engine
    recorder = Recorder(engine, folder: recordings)
  }

  func listing(of device: DeviceDescription) -> JSONValue { device.listing(owner: nil) }
  func otherOwner(of device: DeviceDescription) -> GatewayID? { owners.withLock { $0[device.id] } }
  func idElsewhere(of id: DeviceID) -> DeviceID? { nil }
  var reload: ReloadHandler { { _ in } }
  var info: BridgeInfo {
    let broker = BridgeInfo.Broker(
      address: MQTTBroker(host: "localhost"), protocolVersion: "5", connectedSince: started)
    var info = BridgeInfo(
      version: "1.2.3", started: started, run: run, broker: broker,
      spool: SpoolStatus(messages: 3, bytes: 0, oldest: nil, lost: 0))
    let state: CentralState = faulty.withLock { $0 } ? .adapterOff : .on(adapter: "hci0", address: "")
    info.adapters = [AdapterStatus(name: "hci0", state: state)]
    // Each time it has sent more.
    info.counters.mqtt.sent = sent.withLock {
      $0 += 1
      return $0
    }
    return info
  }
  var health: GatewayHealth {
    let fault = Finding.fault(.adapter, "the adapter is off", remedy: "none")
    var health = GatewayHealth(
      findings: findings.withLock { $0 } + (faulty.withLock { $0 } ? [fault] : []))
    (health.uptime, health.configuration) = (5, ("/etc/secret-path", ""))
    return health
  }
}

extension DeviceManager {
  fileprivate func perform<T>(_ body: @LoopActor () throws -> T) rethrows -> T { try body() }

  fileprivate func deliver(_ values: [Value], of name: String, to address: BluetoothAddress) {
    guard let device = registry.byAddress[address],
      let property = device.description.profile.index(ofPropertyNamed: name)
    else { return }
    for value in values { device.channels[property].reportReading(of: value) }
  }

  fileprivate func deliver(_ lines: [String], to address: BluetoothAddress) {
    guard let values = registry.byAddress[address]?.values else { return }
    for line in lines { values.deliver(values.accept(FrameAssembler.Frame(bytes: Array(line.utf8)))) }
  }

  fileprivate func observers(of address: BluetoothAddress) -> Int {
    registry.byAddress[address]?.observers.count ?? 0
  }
}

/// A client of `/api/events`.
final class EventClient: Sendable {
  private let client: LineClient

  init(_ site: SiteUnderTest) async throws {
    client = try LineClient(port: site.port.number)
    client.send("GET /api/events HTTP/1.0\r\n\r\n")
    while try await client.line() != "\r" {}
  }

  /// The data of the next event of this name; others are skipped.
  func next(_ name: String) async throws -> JSONValue {
    while let line = try await client.line() {
      guard line == "event: \(name)", let data = try await client.line() else { continue }
      return try JSONParser.parse(Array(data.dropFirst("data: ".count).utf8))
    }
    throw Failure("no event \(name)")
  }

  /// The name and the data of the next event.
  func next() async throws -> (name: String, data: JSONValue) {
    while let line = try await client.line() {
      guard line.hasPrefix("event: "), let data = try await client.line() else { continue }
      return (String(line.dropFirst(7)), try JSONParser.parse(Array(data.dropFirst("data: ".count).utf8)))
    }
    throw Failure("no event")
  }

  /// The names of the events up to this one.
  func names(upTo name: String) async throws -> [String] {
    var names: [String] = []
    while let line = try await client.line() {
      if line.hasPrefix("event: ") { names.append(String(line.dropFirst(7))) }
      if names.last == name { return names }
    }
    throw Failure("no event \(name)")
  }

  func hangUp() { client.hangUp() }
}
