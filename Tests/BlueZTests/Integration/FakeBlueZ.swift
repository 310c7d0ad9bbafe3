import DBus
import EventLoop
import TestSupport

@testable import BlueZ

/// An `org.bluez` that does what a test says: one adapter, the recorded micro:bit, and answers of any kind.
///
/// By default it behaves like a bluetoothd without faults or delays.
@LoopActor final class FakeBlueZ {
  typealias Answer = @LoopActor (FakeBlueZ, DBusCall) -> Void

  nonisolated let calls = Record<String>()
  private(set) var connection: DBusConnection?
  private var objects: [BlueZEvent]
  private var answers: [String: Answer] = FakeBlueZ.usual

  private init(_ objects: [BlueZEvent]) { self.objects = objects }

  static func start(
    bus: String, objects: [BlueZEvent] = [Recorded.adapterAdded(), Recorded.deviceAdded],
    answers: [String: Answer] = [:]
  ) async throws -> FakeBlueZ {
    let fake = FakeBlueZ(objects)
    fake.answers.merge(answers) { $1 }
    let connection = try await DBusConnection.open(bus) { event in
      // Retained until it leaves the bus, or the bus ends.
      guard case .call(let call) = event else { return }
      fake.calls.append(call.member)
      guard let answer = fake.answers[call.member] else {
        return fake.refuse(call, DBusName.Failure.unknownMethod, "Method \"\(call.member)\" doesn't exist")
      }
      answer(fake, call)
    }
    fake.connection = connection
    guard try await connection.requestName("org.bluez") else { throw Failure("org.bluez is taken") }
    return fake
  }

  /// Gives up the name and leaves the bus.
  func leave() async throws {
    _ = try await connection?.call(
      DBusCall(
        "ReleaseName", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus, [.string("org.bluez")]),
      timeout: patience)
    connection?.close()
    connection = nil
  }

  /// Waits for a call.
  nonisolated func called(_ member: String) async throws {
    _ = try await calls.next(member) { $0 == member ? true : nil }
  }

  nonisolated func count(_ member: String) -> Int { calls.elements.filter { $0 == member }.count }

  /// From now on answers so.
  func answer(_ member: String, _ answer: @escaping Answer) { answers[member] = answer }

  func reply(_ call: DBusCall, _ arguments: DBusValue...) {
    try? connection?.reply(to: call, .success(arguments))
  }

  func refuse(_ call: DBusCall, _ name: String, _ text: String) {
    try? connection?.reply(to: call, .failure(.remote(name: name, message: text)))
  }

  func signal(_ events: BlueZEvent...) { for event in events { signal(event) } }

  private func signal(_ event: BlueZEvent) {
    let signal = Self.signal(event)
    try? connection?.emit(signal)
  }

  func later(_ delay: Duration, _ body: @escaping @LoopActor () -> Void) { loop.timer(after: delay, body) }

  // MARK: What a bluetoothd does when all goes well

  nonisolated static let never: Answer = { _, _ in }
  nonisolated static let ok: Answer = { $0.reply($1) }
  nonisolated static let removed: Answer = { fake, call in
    fake.reply(call)
    for event in Recorded.deviceRemoved { fake.signal(event) }
  }
  nonisolated static func error(_ name: String, _ text: String) -> Answer { { $0.refuse($1, name, text) } }

  nonisolated static let linked: [BlueZEvent] =
    Recorded.servicesAdded + [Recorded.device(["ServicesResolved": .boolean(true)])]

  private nonisolated static let usual: [String: Answer] = [
    "GetManagedObjects": { fake, call in fake.reply(call, managed(fake.objects)) },
    "SetDiscoveryFilter": ok,
    "StartDiscovery": { fake, call in
      fake.reply(call)
      fake.signal(Recorded.adapter(["Discovering": .boolean(true)]))
    },
    "StopDiscovery": { fake, call in
      fake.reply(call)
      fake.signal(Recorded.adapter(["Discovering": .boolean(false)]))
    },
    "Connect": { fake, call in
      fake.signal(Recorded.device(["Connected": .boolean(true)]))
      fake.reply(call)
      for event in linked { fake.signal(event) }
    },
    "Disconnect": { fake, call in
      fake.reply(call)
      fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
    },
    "Get": { fake, call in fake.reply(call, .variant(.boolean(false))) },
    "ReadValue": { fake, call in fake.reply(call, .bytes([21])) },
    "WriteValue": ok,
    "StartNotify": ok,
    "StopNotify": ok,
  ]

  private nonisolated static func properties(_ properties: BlueZEvent.Properties) -> DBusValue {
    .dictionary(
      key: "s", value: "v", properties.map { .init(.string($0.key), .variant($0.value)) })
  }

  private nonisolated static func interfaces(_ interfaces: [String: BlueZEvent.Properties]) -> DBusValue {
    .dictionary(
      key: "s", value: "a{sv}", interfaces.map { .init(.string($0.key), properties($0.value)) })
  }

  private nonisolated static func managed(_ objects: [BlueZEvent]) -> DBusValue {
    .dictionary(
      key: "o", value: "a{sa{sv}}",
      objects.compactMap { event in
        guard case .added(let path, let added) = event else { return nil }
        return .init(.objectPath(path), interfaces(added))
      })
  }

  private nonisolated static func signal(_ event: BlueZEvent) -> DBusSignal {
    switch event {
    case .added(let path, let added):
      DBusSignal(
        "InterfacesAdded", on: DBusName.objectManager, of: "/", [.objectPath(path), interfaces(added)])
    case .removed(let path, let removed):
      DBusSignal(
        "InterfacesRemoved", on: DBusName.objectManager, of: "/", [.objectPath(path), .strings(removed)])
    case .changed(let path, let interface, let changed, let invalidated):
      DBusSignal(
        "PropertiesChanged", on: DBusName.properties, of: path,
        [.string(interface), properties(changed), .strings(invalidated)])
    case .linkEnded(let path, let reason):
      DBusSignal(
        "Disconnected", on: "org.bluez.Device1", of: path,
        [.string("org.bluez.Reason.Remote"), .string(reason)])
    case .owner:
      preconditionFailure("the bus says so itself")
    }
  }
}
