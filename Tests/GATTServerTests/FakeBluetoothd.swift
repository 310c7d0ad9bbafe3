import DBus
import EventLoop
import GATT
import TestSupport

@testable import GATTServer

/// The part of bluetoothd that a peripheral uses. Like the real one, it reads the client's objects before it replies to
/// a registration.
final class FakeBluetoothd: @unchecked Sendable {
  // @unchecked: used on the loop's thread only, except `calls` and `values`, which are thread-safe.
  static let adapter = "/org/bluez/hci1"

  /// The methods that were called, in order.
  let calls = Record<String>()
  /// The notifications so far.
  let values = Record<Notified>()
  struct Notified: Sendable, Equatable {
    let path: String
    let bytes: [UInt8]
  }

  private let loop: EventLoop
  private var bus: DBusConnection?
  private var client = ""
  private var isPowered = true
  var refusesAdvertisements = false
  private var alias: String
  private var registered: Set<String> = []
  /// The properties of the application's objects, by path.
  private(set) var objects: [String: [String: DBusValue]] = [:]
  private(set) var advertisement: [String: DBusValue] = [:]

  private init(_ loop: EventLoop, _ alias: String) { (self.loop, self.alias) = (loop, alias) }

  static func start(
    on loop: EventLoop, bus address: String, alias: String = "raspberrypi"
  ) async throws -> FakeBluetoothd {
    let fake = FakeBluetoothd(loop, alias)
    let bus = try await DBusConnection.open(.at(address), on: loop) { event in fake.receive(event) }
    await fake.onLoop { $0.bus = bus }
    try await bus.addMatch("type='signal',interface='\(DBusName.properties)'")
    guard try await bus.requestName(BlueZServerName.busName) else { throw Failure("org.bluez is taken") }
    return fake
  }

  func onLoop<T: Sendable>(_ body: @escaping @Sendable (FakeBluetoothd) -> T) async -> T {
    await Task(executorPreference: loop) { body(self) }.value
  }

  func called(_ member: String) async throws {
    _ = try await calls.next(member) { $0 == member ? true : nil }
  }

  /// Disconnects from the bus, as when bluetoothd ends.
  func end() async {
    await onLoop { $0.bus?.assumeIsolated { $0.close() } }
  }

  /// Reports the adapter as new, as bluetoothd does after its start.
  func reportAdapter() async {
    await onLoop { fake in
      let signal = DBusSignal(
        "InterfacesAdded", on: DBusName.objectManager, of: "/",
        [.objectPath(Self.adapter), .dictionary(key: "s", value: "a{sv}", [])])
      fake.bus?.assumeIsolated { try? $0.emit(signal) }
    }
  }

  func power(_ isOn: Bool) async { await onLoop { $0.setPowered(isOn) } }

  /// The path of the characteristic with this UUID.
  func path(_ uuid: BluetoothUUID) async throws -> String {
    let path = await onLoop { fake in
      fake.objects.first { $0.value["UUID"]?.text == uuid.description && $0.value["Flags"] != nil }?.key
    }
    guard let path else { throw Failure("no characteristic \(uuid)") }
    return path
  }

  /// Calls a method of a characteristic as bluetoothd does for a central.
  func call(_ method: String, _ path: String, _ arguments: [DBusValue] = []) async throws -> [DBusValue] {
    let (bus, client) = await onLoop { ($0.bus, $0.client) }
    guard let bus else { throw Failure("not connected to the bus") }
    return try await bus.call(
      DBusCall(method, on: BlueZServerName.characteristic, of: path, at: client, arguments), timeout: patience
    )
  }

  func write(_ path: String, _ bytes: [UInt8]) async throws {
    _ = try await call(
      "WriteValue", path, [.bytes(bytes), .properties(["type": .string("request"), "offset": .uint16(0)])])
  }

  func read(_ path: String, offset: UInt16 = 0) async throws -> [UInt8]? {
    try await call("ReadValue", path, [.properties(["offset": .uint16(offset)])]).first?.byteArray
  }

  // MARK: On the loop

  private func receive(_ event: DBusEvent) {
    switch event {
    case .call(let call): handle(call)
    case .signal(let signal):
      guard signal.member == "PropertiesChanged", signal.sender == client, signal.arguments.count > 1,
        let bytes = signal.arguments[1].map?["Value"]?.byteArray
      else { return }
      values.append(Notified(path: signal.path, bytes: bytes))
    case .disconnected: bus = nil
    }
  }

  private func handle(_ call: DBusCall) {
    calls.append(call.member)
    switch call.member {
    case "GetManagedObjects": reply(call, [managed])
    case "Set":
      if call.arguments[1].text == "Alias" { alias = call.arguments[2].text ?? "" }
      if call.arguments[1].text == "Powered" { setPowered(call.arguments[2].bool == true) }
      reply(call)
    case "RegisterApplication", "RegisterAdvertisement": register(call)
    case "UnregisterApplication", "UnregisterAdvertisement":
      guard let path = call.arguments[0].text, registered.remove(path) != nil else {
        return refuse(call, "org.bluez.Error.DoesNotExist")
      }
      reply(call)
    default: refuse(call, DBusName.unknownMethod)
    }
  }

  private func register(_ call: DBusCall) {
    guard let path = call.arguments[0].text, let bus, let client = call.sender else { return }
    guard !registered.contains(path) else { return refuse(call, BlueZServerName.alreadyExists) }
    if refusesAdvertisements, call.member == "RegisterAdvertisement" {
      return refuse(call, "org.bluez.Error.Failed")
    }
    self.client = client
    let request =
      call.member == "RegisterApplication"
      ? DBusCall("GetManagedObjects", on: DBusName.objectManager, of: path, at: client)
      : DBusCall(
        "GetAll", on: DBusName.properties, of: path, at: client, [.string(BlueZServerName.advertisement)])
    bus.assumeIsolated {
      $0.call(request, timeout: .seconds(10)) { result in
        guard case .success(let arguments) = result, let value = arguments.first?.map else {
          return self.refuse(call, "org.bluez.Error.Failed")
        }
        if call.member == "RegisterApplication" {
          self.objects = value.compactMapValues { $0.map?.values.first?.map }
        } else {
          self.advertisement = value
        }
        self.registered.insert(path)
        self.reply(call)
      }
    }
  }

  private var managed: DBusValue {
    let adapter: DBusValue = .properties([
      "Powered": .boolean(isPowered), "Alias": .string(alias), "Name": .string("raspberrypi"),
      "Address": .string("02:00:5E:00:53:02"),
    ])
    let interfaces: DBusValue = .dictionary(
      key: "s", value: "a{sv}",
      [
        .init(.string(BlueZServerName.adapter), adapter),
        .init(.string(BlueZServerName.gattManager), .properties([:])),
        .init(.string(BlueZServerName.advertisingManager), .properties([:])),
      ])
    return .dictionary(key: "o", value: "a{sa{sv}}", [.init(.objectPath(Self.adapter), interfaces)])
  }

  private func setPowered(_ isOn: Bool) {
    isPowered = isOn
    let signal = DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: Self.adapter,
      [.string(BlueZServerName.adapter), .properties(["Powered": .boolean(isOn)]), .strings([])])
    bus?.assumeIsolated { try? $0.emit(signal) }
  }

  var currentAlias: String { alias }

  private func reply(_ call: DBusCall, _ arguments: [DBusValue] = []) {
    bus?.assumeIsolated { try? $0.reply(to: call, arguments) }
  }

  private func refuse(_ call: DBusCall, _ name: String) {
    bus?.assumeIsolated { try? $0.reply(to: call, error: name, "refused") }
  }
}
