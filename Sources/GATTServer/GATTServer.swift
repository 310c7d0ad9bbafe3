import DBus
import EventLoop
import GATT
import Peripherals

/// What happens to a served peripheral.
package enum GATTServerEvent: Sendable, Equatable {
  /// It advertises on the adapter with this address, and can be connected to.
  case serving(address: String)
  /// It is not served, for this reason; registration is retried.
  case waiting(String)
  /// A central has written a property.
  case written(Property, [UInt8])
}

/// Serves a peripheral on a BlueZ adapter: registers a GATT application and an advertisement with bluetoothd,
/// and registers them again after a restart of bluetoothd or of the adapter.
package actor GATTServer {
  nonisolated let loop: EventLoop
  /// The loop's executor: code on its thread may enter the actor by `assumeIsolated`.
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let adapter: String
  private let address: DBusAddress
  private let handler: @Sendable (GATTServerEvent) -> Void
  private let application: GATTApplication
  private let advertisement: Advertisement
  private var peripheral: ServedPeripheral
  /// For characteristics with indications and subscribers, by handle.
  private var indications: [UInt16: IndicationQueue] = [:]
  private var timer = NextEventTimer()

  private var bus: DBusConnection?
  private var backOff = GATTServer.retries
  /// Resumed when the registration has to be checked; fails when the connection to the bus has ended.
  private var changed = Waiter<Void>()
  /// The reason last reported; nil: it is served.
  private var problem: String?
  /// The application and the advertisement are registered.
  private var isServing = false
  private var isPowered = false
  /// The adapter's alias before it got the peripheral's name, to be restored: bluetoothd keeps the alias over
  /// restarts. Nil: it was not changed.
  private var originalAlias: String?

  private static let retries = BackOff(first: .seconds(1), longest: .seconds(30))
  /// bluetoothd reads all objects before it answers.
  private static let registration = Duration.seconds(30)
  private static let answer = Duration.seconds(10)
  /// Changes within this time cause one registration.
  private static let pause = Duration.milliseconds(500)

  /// - Parameters:
  ///   - name: the advertised name.
  ///   - adapter: BlueZ's name of the adapter: `hci0`.
  ///   - bus: bluetoothd's bus; not the system bus only in tests.
  ///   - handler: called on the loop.
  package init(
    _ peripheral: ServedPeripheral, name: String, adapter: String, bus: DBusAddress = .system,
    loop: EventLoop,
    handler: @escaping @Sendable (GATTServerEvent) -> Void
  ) {
    self.loop = loop
    self.adapter = adapter
    self.address = bus
    self.handler = handler
    self.peripheral = peripheral
    application = GATTApplication(peripheral.database)
    advertisement = Advertisement(name: name, peripheral.profile)
  }

  private var adapterPath: String { "/org/bluez/\(adapter)" }

  // MARK: Running

  /// Runs until cancelled, then withdraws the peripheral.
  package func run() async {
    schedule()
    while !Task.isCancelled {
      do {
        try await serve()
      } catch {
        if !Task.isCancelled { report(waiting: "\(error)") }
      }
      await withdraw()
      do { try await loop.sleep(for: backOff.next()) } catch { break }
    }
    timer.cancel()
  }

  /// Sets a value, and notifies it.
  package func set(_ property: Property, to value: Value) throws(PeripheralError) {
    notify(try peripheral.set(property, to: value, at: .now))
    schedule()
  }

  /// Serves over one connection to the bus, until that ends.
  private func serve() async throws {
    changed = Waiter()
    let bus = try await DBusConnection.open(address, on: loop) { [weak self] event in
      self?.assumeIsolated { $0.receive(event) }
    }
    self.bus = bus
    for rule in Self.rules { try await bus.addMatch(rule) }
    while true {
      do {
        let address = try await register(on: bus)
        backOff.reset()
        report(serving: address)
        try await changed.value()
      } catch let error as RegistrationError {
        report(waiting: error.description)
        let changed = changed
        do {
          try await loop.withTimeout(backOff.next()) { try await changed.value() }
        } catch is TimedOut {}
      }
      changed = Waiter()
      try await loop.sleep(for: Self.pause)
      if self.bus == nil { throw DBusError.disconnected }
    }
  }

  private static let rules = [
    "type='signal',sender='\(DBusName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.bus)'",
    "type='signal',sender='\(BlueZName.bus)',interface='\(DBusName.objectManager)'",
    "type='signal',sender='\(BlueZName.bus)',interface='\(DBusName.properties)',arg0='\(BlueZName.adapter)'",
  ]

  private func report(serving address: String) {
    isServing = true
    problem = nil
    handler(.serving(address: address))
  }

  private func report(waiting reason: String) {
    isServing = false
    guard problem != reason else { return }
    problem = reason
    handler(.waiting(reason))
  }

  // MARK: Registration

  /// Registers the application and the advertisement, unless they are registered.
  /// - Returns: the address of the adapter.
  private func register(on bus: DBusConnection) async throws -> String {
    isServing = false
    let properties = try await adapterProperties(on: bus)
    isPowered = true
    if properties["Powered"]?.bool != true { try await power(on: bus) }
    try await rename(from: properties, on: bus)
    do {
      try await register("RegisterApplication", BlueZName.gattManager, GATTApplication.path, on: bus)
    } catch let error as DBusError where error.name == BlueZName.alreadyExists {
      // It is still registered from before the adapter was powered off.
    }
    do {
      try await register("RegisterAdvertisement", BlueZName.advertisingManager, Advertisement.path, on: bus)
    } catch let error as DBusError where error.name == BlueZName.alreadyExists {
      // The advertisement may have ended when the adapter was powered off.
      try await unregister(
        "UnregisterAdvertisement", BlueZName.advertisingManager, Advertisement.path, on: bus)
      try await register("RegisterAdvertisement", BlueZName.advertisingManager, Advertisement.path, on: bus)
    }
    return properties["Address"]?.text ?? ""
  }

  private func set(_ name: String, _ value: DBusValue, on bus: DBusConnection) async throws(DBusError) {
    _ = try await bus.call(
      DBusCall(
        "Set", on: DBusName.properties, of: adapterPath, at: BlueZName.bus,
        [.string(BlueZName.adapter), .string(name), .variant(value)]),
      timeout: Self.answer)
  }

  /// Sets the adapter's alias to the peripheral's name. It is the value of bluetoothd's Device Name
  /// characteristic, from which a central takes the name once connected.
  private func rename(from properties: [String: DBusValue], on bus: DBusConnection) async throws(DBusError) {
    let alias = properties["Alias"]?.text ?? ""
    guard alias != advertisement.name else { return }
    // An empty alias stands for the machine's own name.
    originalAlias = alias == properties["Name"]?.text ? "" : alias
    try await set("Alias", .string(advertisement.name), on: bus)
  }

  private func power(on bus: DBusConnection) async throws {
    do throws(DBusError) {
      try await set("Powered", .boolean(true), on: bus)
    } catch {
      isPowered = false
      throw RegistrationError(
        "\(adapter) cannot be powered on: \(error) (try: sudo rfkill unblock bluetooth)")
    }
  }

  private func adapterProperties(on bus: DBusConnection) async throws -> [String: DBusValue] {
    let reply: [DBusValue]
    do throws(DBusError) {
      reply = try await bus.call(
        DBusCall("GetManagedObjects", on: DBusName.objectManager, of: "/", at: BlueZName.bus),
        timeout: Self.answer)
    } catch {
      guard let name = error.name else { throw error }
      let isAbsent = name.hasSuffix("ServiceUnknown") || name.hasSuffix("NameHasNoOwner")
      throw RegistrationError(
        isAbsent ? "bluetoothd does not run (start it: systemctl start bluetooth)" : "\(error)")
    }
    let objects = reply.first?.map ?? [:]
    guard let interfaces = objects[adapterPath]?.map else {
      let names = objects.filter { $0.value.map?[BlueZName.adapter] != nil }.keys.sorted()
        .map { $0.split(separator: "/").last ?? "" }
      throw RegistrationError(
        "there is no adapter \(adapter) "
          + (names.isEmpty ? "(plug one in)" : "(there is \(names.joined(separator: ", ")): use --adapter)"))
    }
    for manager in [BlueZName.gattManager, BlueZName.advertisingManager] where interfaces[manager] == nil {
      throw RegistrationError("\(adapter) cannot be a peripheral: bluetoothd has no \(manager) for it")
    }
    return interfaces[BlueZName.adapter]?.map ?? [:]
  }

  /// bluetoothd calls the exported objects before it answers; ``receive(_:)`` replies meanwhile.
  private func register(
    _ method: String, _ manager: String, _ path: String, on bus: DBusConnection
  ) async throws {
    do throws(DBusError) {
      _ = try await bus.call(
        DBusCall(
          method, on: manager, of: adapterPath, at: BlueZName.bus, [.objectPath(path), .properties([:])]),
        timeout: Self.registration)
    } catch {
      guard error.name != BlueZName.alreadyExists, error != .disconnected else { throw error }
      throw RegistrationError("\(method) failed on \(adapter): \(error)")
    }
  }

  private func unregister(
    _ method: String, _ manager: String, _ path: String, on bus: DBusConnection
  ) async throws {
    do throws(DBusError) {
      _ = try await bus.call(
        DBusCall(method, on: manager, of: adapterPath, at: BlueZName.bus, [.objectPath(path)]),
        timeout: Self.answer)
    } catch {
      // An error from bluetoothd means that it was no longer registered.
      if error.name == nil { throw error }
    }
  }

  /// Ends the registration and the connection to the bus.
  private func withdraw() async {
    guard let bus else { return }
    if isServing {
      try? await unregister(
        "UnregisterAdvertisement", BlueZName.advertisingManager, Advertisement.path, on: bus)
      try? await unregister("UnregisterApplication", BlueZName.gattManager, GATTApplication.path, on: bus)
    }
    isServing = false
    if let originalAlias { try? await set("Alias", .string(originalAlias), on: bus) }
    await bus.close()
    self.bus = nil
    endSubscriptions()
  }

  // MARK: Receiving

  private func receive(_ event: DBusEvent) {
    switch event {
    case .call(let call): answer(call)
    case .signal(let signal): receive(signal)
    case .disconnected:
      bus = nil
      isServing = false
      changed.resume(.failure(DBusError.disconnected))
    }
  }

  private func receive(_ signal: DBusSignal) {
    switch signal.member {
    case "NameOwnerChanged" where signal.sender == DBusName.bus:
      endSubscriptions()
      if signal.arguments.last?.text == "" {
        report(waiting: "bluetoothd has ended")
      } else {
        changed.resume(.success(()))
      }
    case "InterfacesAdded" where signal.arguments.first?.text == adapterPath:
      changed.resume(.success(()))
    case "InterfacesRemoved" where signal.arguments.first?.text == adapterPath:
      endSubscriptions()
      isPowered = false
      report(waiting: "the adapter \(adapter) is gone")
    case "PropertiesChanged" where signal.path == adapterPath:
      guard signal.arguments.count > 1, let isOn = signal.arguments[1].map?["Powered"]?.bool else { return }
      if isOn, !isPowered { changed.resume(.success(())) }
      if !isOn, isPowered { report(waiting: "the adapter \(adapter) is off") }
      isPowered = isOn
    default: break
    }
  }

  /// bluetoothd or the adapter is gone, and so are all links.
  private func endSubscriptions() {
    peripheral.unsubscribeAll()
    indications = [:]
  }

  private func reply(_ call: DBusCall, _ arguments: [DBusValue] = []) {
    // Only fails if the bus has ended.
    bus?.assumeIsolated { try? $0.reply(to: call, arguments) }
  }

  private func refuse(_ call: DBusCall, _ name: String, _ text: String) {
    bus?.assumeIsolated { try? $0.reply(to: call, error: name, text) }
  }

  private func answer(_ call: DBusCall) {
    switch (call.interface, call.member) {
    case (DBusName.objectManager, "GetManagedObjects") where call.path == GATTApplication.path:
      reply(call, [application.managedObjects])
    case (DBusName.properties, "GetAll"):
      reply(call, [GATTApplication.dictionary(properties(call.path, call.arguments.first?.text))])
    case (DBusName.properties, "Get"):
      let name = call.arguments.count > 1 ? call.arguments[1].text : nil
      guard let value = properties(call.path, call.arguments.first?.text).first(where: { $0.0 == name })
      else {
        return refuse(call, "org.freedesktop.DBus.Error.InvalidArgs", "No such property")
      }
      reply(call, [.variant(value.1)])
    case (BlueZName.advertisement, "Release") where call.path == Advertisement.path:
      reply(call)
      if isServing { changed.resume(.success(())) }
    case (BlueZName.characteristic, _):
      guard let characteristic = application.characteristics[call.path] else {
        return refuse(call, DBusName.unknownObject, "No such characteristic")
      }
      do throws(AttributeError) {
        try answer(call, characteristic.content)
      } catch {
        refuse(call, error.rawValue, "\(error)")
      }
    default: refuse(call, DBusName.unknownMethod, "No such method")
    }
  }

  private func properties(_ path: String, _ interface: String?) -> [(String, DBusValue)] {
    if path == Advertisement.path {
      return interface == BlueZName.advertisement ? advertisement.properties : []
    }
    return application.interfaces(of: path).first { $0.name == interface }?.properties ?? []
  }

  private func answer(
    _ call: DBusCall, _ characteristic: GATTDatabase.Characteristic
  ) throws(AttributeError) {
    switch call.member {
    case "ReadValue":
      guard characteristic.isReadable else { throw .notPermitted }
      let bytes = peripheral.value(of: characteristic, at: .now)
      let offset = Self.offset(call.arguments.first)
      guard (0...bytes.count).contains(offset) else { throw .invalidOffset }
      reply(call, [.bytes(Array(bytes[offset...]))])
    case "WriteValue":
      guard characteristic.isWritable || characteristic.takesCommands else { throw .notPermitted }
      guard let bytes = call.arguments.first?.byteArray, Self.offset(call.arguments.last) == 0 else {
        throw .invalidOffset
      }
      guard peripheral.write(bytes, to: characteristic, at: .now) else { throw .invalidValueLength }
      reply(call)
      if let property = peripheral.property(of: characteristic.handle) { handler(.written(property, bytes)) }
      schedule()
    case "StartNotify", "StopNotify":
      peripheral.subscribe(characteristic.handle, call.member == "StartNotify", at: .now)
      if characteristic.indicates { indications[characteristic.handle] = IndicationQueue() }
      reply(call)
      schedule()
    case "Confirm":
      reply(call)
      if let bytes = indications[characteristic.handle]?.confirm(at: .now) {
        emit(bytes, of: characteristic.handle)
      }
    default: refuse(call, DBusName.unknownMethod, "No such method")
    }
  }

  /// The option `offset` of a read or write.
  private static func offset(_ options: DBusValue?) -> Int { options?.map?["offset"]?.integer ?? 0 }

  // MARK: Notifications

  private func notify(_ notifications: [ServedPeripheral.Notification]) {
    for notification in notifications {
      if indications[notification.handle] == nil {
        emit(notification.bytes, of: notification.handle)
      } else if let bytes = indications[notification.handle]?.add(notification.bytes, at: .now) {
        emit(bytes, of: notification.handle)
      }
    }
  }

  private func emit(_ bytes: [UInt8], of handle: UInt16) {
    guard let path = application.path(of: handle) else { return }
    let signal = DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: path,
      [.string(BlueZName.characteristic), .properties(["Value": .bytes(bytes)]), .strings([])])
    // Only fails if the bus has ended.
    bus?.assumeIsolated { try? $0.emit(signal) }
  }

  private func schedule() {
    timer.set(peripheral.next, on: loop) { [weak self] in self?.assumeIsolated { $0.wake() } }
  }

  private func wake() {
    timer.fired()
    notify(peripheral.advance(to: .now))
    schedule()
  }
}

/// Why the peripheral is not registered.
private struct RegistrationError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
