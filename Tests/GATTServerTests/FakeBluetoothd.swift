import DBus
import EventLoop
import GATT
import TestSupport

@testable import GATTServer

/// The part of bluetoothd that a peripheral uses. Like the real one, it reads the client's objects before it replies to
/// a registration.
@LoopActor final class FakeBluetoothd {
  nonisolated static let adapter = "/org/bluez/hci1"

  /// The methods that were called, in order.
  nonisolated let calls = Record<String>()
  /// The notifications so far.
  nonisolated let values = Record<Notified>()
  struct Notified: Sendable, Equatable {
    let path: String
    let bytes: [UInt8]
  }

  private var bus: DBusConnection?
  private var client = ""
  private var isPowered = true
  private(set) var turnsOff = false
  private var refusesAdvertisements = false
  private(set) var alias: String
  private var registered: Set<String> = []
  /// The properties of the application's objects, by path.
  private(set) var objects: [String: [String: DBusValue]] = [:]
  private(set) var advertisement: [String: DBusValue] = [:]

  private init(_ alias: String) { self.alias = alias }

  static func start(bus address: String, alias: String = "raspberrypi") async throws -> FakeBluetoothd {
    let fake = FakeBluetoothd(alias)
    let bus = try await DBusConnection.open(address) { event in fake.receive(event) }
    fake.bus = bus
    try await bus.addMatch(["interface": DBusName.properties])
    guard try await bus.requestName(BlueZName.busName) else { throw Failure("org.bluez is taken") }
    return fake
  }

  nonisolated func called(_ member: String) async throws {
    _ = try await calls.next(member) { $0 == member ? true : nil }
  }

  /// Disconnects from the bus, as when bluetoothd ends.
  func end() { bus?.close() }

  func refuseAdvertisements() { refusesAdvertisements = true }

  /// The adapter is turned off while an advertisement is being registered, once.
  func turnOffWhileRegistering() { turnsOff = true }

  /// Reports the adapter as new, as bluetoothd does after its start.
  func reportAdapter() {
    let signal = DBusSignal(
      "InterfacesAdded", on: DBusName.objectManager, of: "/",
      [.objectPath(Self.adapter), .dictionary(key: "s", value: "a{sv}", [])])
    try? bus?.emit(signal)
  }

  /// The path of the characteristic with this UUID.
  func path(_ uuid: BluetoothUUID) throws -> String {
    let path = objects.first { $0.value["UUID"]?.text == uuid.description && $0.value["Flags"] != nil }?.key
    guard let path else { throw Failure("no characteristic \(uuid)") }
    return path
  }

  /// Calls a method of a characteristic as bluetoothd does for a central.
  func call(_ method: String, _ path: String, _ arguments: [DBusValue] = []) async throws -> [DBusValue] {
    guard let bus else { throw Failure("not connected to the bus") }
    return try await bus.call(
      DBusCall(method, on: BlueZName.characteristic, of: path, at: client, arguments), timeout: patience
    )
  }

  func write(_ path: String, _ bytes: [UInt8]) async throws {
    _ = try await call(
      "WriteValue", path, [.bytes(bytes), .properties(["type": .string("request"), "offset": .uint16(0)])])
  }

  func read(_ path: String, offset: UInt16 = 0) async throws -> [UInt8]? {
    try await call("ReadValue", path, [.properties(["offset": .uint16(offset)])]).first?.byteArray
  }

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
      if call.arguments[1].text == "Powered" { power(call.arguments[2].bool == true) }
      reply(call)
    case "RegisterApplication", "RegisterAdvertisement": register(call)
    case "UnregisterApplication", "UnregisterAdvertisement":
      guard let path = call.arguments[0].text, registered.remove(path) != nil else {
        return refuse(call, "org.bluez.Error.DoesNotExist")
      }
      reply(call)
    default: refuse(call, DBusName.Failure.unknownMethod)
    }
  }

  private func register(_ call: DBusCall) {
    guard let path = call.arguments[0].text, let bus, let client = call.sender else { return }
    guard !registered.contains(path) else { return refuse(call, BlueZName.Failure.alreadyExists) }
    if refusesAdvertisements, call.member == "RegisterAdvertisement" {
      return refuse(call, "org.bluez.Error.Failed")
    }
    self.client = client
    let request =
      call.member == "RegisterApplication"
      ? DBusCall("GetManagedObjects", on: DBusName.objectManager, of: path, at: client)
      : DBusCall(
        "GetAll", on: DBusName.properties, of: path, at: client, [.string(BlueZName.advertisement)])
    bus.call(request, timeout: .seconds(10)) { result in
      guard case .success(let arguments) = result, let value = arguments.first?.map else {
        return self.refuse(call, "org.bluez.Error.Failed")
      }
      if call.member == "RegisterApplication" {
        self.objects = value.compactMapValues { $0.map?.values.first?.map }
      } else {
        self.advertisement = value
      }
      self.registered.insert(path)
      if self.turnsOff, call.member == "RegisterAdvertisement" {
        self.turnsOff = false
        self.power(false)
      }
      self.reply(call)
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
        .init(.string(BlueZName.adapter), adapter),
        .init(.string(BlueZName.gattManager), .properties([:])),
        .init(.string(BlueZName.advertisingManager), .properties([:])),
      ])
    return .dictionary(key: "o", value: "a{sa{sv}}", [.init(.objectPath(Self.adapter), interfaces)])
  }

  func power(_ isOn: Bool) {
    isPowered = isOn
    let signal = DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: Self.adapter,
      [.string(BlueZName.adapter), .properties(["Powered": .boolean(isOn)]), .strings([])])
    try? bus?.emit(signal)
  }

  private func reply(_ call: DBusCall, _ arguments: [DBusValue] = []) {
    try? bus?.reply(to: call, .success(arguments))
  }

  private func refuse(_ call: DBusCall, _ name: String) {
    try? bus?.reply(to: call, .failure(.remote(name: name, message: "refused")))
  }
}
