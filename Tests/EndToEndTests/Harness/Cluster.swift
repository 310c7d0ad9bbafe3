import Glibc
import Synchronization
import TestSupport
import Testing

/// Several gateways: each has a bus and micro:bits of its own, the first one's broker serves them all, and the same
/// micro:bit is known to each, though it is in range of one at a time.
final class Cluster: Sendable {
  private let built = Mutex<[Fixture]>([])
  var fixtures: [Fixture] { built.withLock { $0 } }

  subscript(_ index: Int) -> Fixture { fixtures[index] }

  fileprivate init() {}

  /// The gateways start one after the other, so that it is known which one is older.
  fileprivate func build(_ plans: [Plan]) async throws {
    for (index, plan) in plans.enumerated() {
      var plan = plan
      if index > 0, case .mosquitto = plan.broker { plan.broker = .shared }
      plan.absent.insert(.gateway)
      let fixture = try await Fixture(plan, beside: fixtures.first)
      built.withLock { $0.append(fixture) }
      try await fixture.begin()
      if index > 0 { try await fixture.simulator.control("vanish", 0) }
    }
    for (fixture, plan) in zip(fixtures, plans) where !plan.absent.contains(.gateway) {
      try fixture.startGateway()
      try await fixture.bridgeOnline()
    }
  }

  fileprivate func tearDown() async {
    for fixture in fixtures.reversed() { await fixture.tearDown() }
  }

  /// Moves the micro:bit out of range of one fixture, and immediately into range of another.
  func move(from old: Fixture, to new: Fixture) async throws {
    try await old.simulator.control("vanish", 0)
    try await new.simulator.control("return", 0)
  }

  /// As ``move(from:to:)``, but the micro:bit returns only after the old gateway has published that it is offline.
  func moveAfterOffline(from old: Fixture, to new: Fixture) async throws {
    let mark = try old.observer.mark
    try await old.simulator.control("vanish", 0)
    try await old.offline(Self.id, after: mark)
    try await new.observer.synchronize()
    try await new.simulator.control("return", 0)
  }
}

/// Runs `body` in a cluster of its own, and ends all its processes. Errors include the gateways' logs.
func withCluster(_ plans: [Plan], _ body: @escaping @Sendable (Cluster) async throws -> Void) async throws {
  try await FixtureSlots.shared.acquire()
  let cluster = Cluster()
  do {
    try await cluster.build(plans)
    try await body(cluster)
  } catch {
    await cluster.tearDown()
    await FixtureSlots.shared.release()
    throw Failure("\(error)\n\(cluster.fixtures.map(\.logs).joined())")
  }
  await cluster.tearDown()
  await FixtureSlots.shared.release()
}

extension Plan {
  /// A fixture of a cluster.
  static func fixture(_ gateway: String, area: String) -> Plan {
    Plan(
      id: gateway, simulator: ["--address", "0=\(Cluster.address)"],
      entries: #"{"match":{"identifier":"\#(Cluster.address)"}}"#, gateway: #""area":"\#(area)""#)
  }
}

extension Cluster {
  static let address = "C5:A1:B2:C3:D4:E5"
  /// `{device}` of the micro:bit.
  static let id = "c5a1b2c3d4e5"
  static let discovery = "homeassistant/device/ble_\(id)/config"
}

extension Fixture {
  /// Waits until `…/info` names this gateway as the owner of the micro:bit, and `old`, if given, as the previous one: a
  /// gateway that connects before it has received the retained topics publishes the previous owner in a second `info`.
  @discardableResult
  func waitForOwnership(of id: String, from old: String? = nil, after mark: Int = 0) async throws -> JSON {
    try await waitForOwner(plan.id, of: id, from: old, after: mark)
  }

  /// As ``waitForOwnership(of:from:after:)``, for any gateway, at this fixture's broker.
  @discardableResult
  func waitForOwner(
    _ gateway: String, of id: String, from old: String? = nil, after mark: Int = 0
  ) async throws -> JSON {
    let info = try await message("\(id)/info", after: mark) { message in
      let json = try? message.json()
      return json?["owner"]?.string == gateway && json?["last_connected"] != nil
        && (old == nil || json?["moved"]?["from"]?.string == old)
    }
    try await online(id, after: mark)
    return try info.json()
  }

  /// Waits until the gateway of `fixture` announces the micro:bit to Home Assistant.
  @discardableResult
  func announced(by fixture: Fixture, after mark: Int = 0) async throws -> JSON {
    try await observer.message(Cluster.discovery, after: mark, within: Self.patience) {
      $0.text.contains("bridge/\(fixture.plan.id)/state")
    }.json()
  }

  /// Returns when the gateway has processed everything sent to it before, except answers that need a micro:bit.
  func synchronizeGateway() async throws {
    let mark = try observer.mark
    let transaction = "settled-\(mark)-\(UInt32.random(in: 0 ... .max))"
    try await observer.publish(
      "microbit/bridge/\(plan.id)/request/health", #"{"transaction":"\#(transaction)"}"#)
    try await message("bridge/\(plan.id)/response/health", after: mark) { $0.text.contains(transaction) }
  }

  /// Waits until the gateway reports that it is connected to the broker for the `times`th time in this run.
  func isConnected(times: Int) async throws {
    try await message("bridge/\(plan.id)/info") { message in
      let broker = (try? message.json())?["broker"]
      return broker?["connected"]?.bool == true && broker?["connects"]?.int == times
    }
  }

  /// The payloads of a topic below the base topic after `mark`, in order, without repetitions.
  func changes(_ topic: String, after mark: Int = 0) throws -> [String] {
    try changes(topic, after: mark) { $0.text }
  }

  /// The gateways that became owners of the micro:bit after `mark`, by its info, in order.
  func owners(_ id: String, after mark: Int = 0) throws -> [String] {
    try changes("\(id)/info", after: mark) { message in
      guard let gateway = try message.json()["owner"]?.string else { throw Failure(message.text) }
      return gateway
    }
  }

  private func changes(
    _ topic: String, after mark: Int, _ value: (Observer.Message) throws -> String
  ) throws -> [String] {
    var changes: [String] = []
    var last: String?
    for message in try observer.messages(on: "microbit/" + topic) {
      let value = try value(message)
      if message.number > mark, value != last { changes.append(value) }
      last = value
    }
    return changes
  }

  /// Expects these changes of the micro:bit's availability and owner after `mark`.
  func expect(
    _ id: String, after mark: Int, availability: [String], owners: [String],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let states = try changes("\(id)/availability", after: mark)
    #expect(states == availability, sourceLocation: sourceLocation)
    let gateways = try self.owners(id, after: mark)
    #expect(gateways == owners, sourceLocation: sourceLocation)
  }

  /// The status of each result with this transaction.
  func results(_ id: String, _ transaction: String, after mark: Int = 0) throws -> [String] {
    try observer.messages(on: "microbit/\(id)/period/result", after: mark).map { try $0.json() }
      .filter { $0["transaction"]?.string == transaction }.compactMap { $0["status"]?.string }
  }

  /// The topics on which a gateway has published retained messages, or any messages about itself, by the broker's log.
  ///
  /// - Parameters:
  ///   - gateway: a prefix of the gateway's client id, after `microbit-gateway-`. The broker is a mosquitto.
  ///   - other: a client id that is left out.
  ///   - offset: the length of the part of the log that is skipped.
  func topics(of gateway: String, besides other: String? = nil, after offset: Int = 0) -> [String] {
    let pattern = /Received PUBLISH from (microbit-gateway-\S+) \(d\d, q\d, r(\d), m\d+, '([^']+)'/
    return String(decoding: broker.log.utf8.dropFirst(offset), as: UTF8.self).matches(of: pattern)
      .filter { match in
        match.1.hasPrefix("microbit-gateway-\(gateway)") && match.1 != other.map { $0[...] }
          && (match.2 == "1" || match.3.contains("/bridge/"))
      }
      .map { String($0.3) }
  }

  /// In bytes.
  var brokerLogLength: Int { broker.log.utf8.count }
}
