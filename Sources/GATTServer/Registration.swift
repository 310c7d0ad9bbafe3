import DBus
import EventLoop
import Peripherals

/// What is registered with bluetoothd, each with a manager of the adapter.
private enum RegisteredObject: String {
  case application = "Application"
  case advertisement = "Advertisement"

  var path: String {
    switch self {
    case .application: GATTApplication.path
    case .advertisement: Advertisement.path
    }
  }

  var manager: String {
    switch self {
    case .application: BlueZName.gattManager
    case .advertisement: BlueZName.advertisingManager
    }
  }
}

/// The registration of a peripheral's application and advertisement with bluetoothd, on one adapter.
@LoopActor final class Registration {
  /// BlueZ's name of the adapter.
  let adapter: String
  private let advertisedName: String
  /// The adapter's alias before it got the peripheral's name, to be restored: bluetoothd keeps the alias over
  /// restarts. Nil: it was not changed.
  private var originalAlias: String?
  private let aliasFile: AliasFile
  private(set) var isPowered = false

  /// bluetoothd reads all objects before it answers.
  private static let registration = Duration.seconds(30)
  private static let answer = Duration.seconds(10)

  init(on adapter: String, of advertisedName: String, state: String?) {
    self.adapter = adapter
    aliasFile = AliasFile(of: adapter, in: state)
    self.advertisedName = advertisedName
  }

  var adapterPath: String { "\(BlueZName.root)/\(adapter)" }

  /// Registers the application and the advertisement, unless they are registered.
  /// - Returns: the address of the adapter.
  func register(on bus: DBusConnection) async throws -> String {
    let properties = try await adapterProperties(on: bus)
    isPowered = true
    if properties["Powered"]?.bool != true { try await power(on: bus) }
    try await rename(from: properties, on: bus)
    do {
      try await register(.application, on: bus)
    } catch let error as DBusError where error.name == BlueZName.Failure.alreadyExists {
      // The application is still registered from before the adapter was powered off.
    }
    do {
      try await register(.advertisement, on: bus)
    } catch let error as DBusError where error.name == BlueZName.Failure.alreadyExists {
      // The advertisement may have ended when the adapter was powered off.
      try await unregister(.advertisement, on: bus)
      try await register(.advertisement, on: bus)
    }
    return properties["Address"]?.text ?? ""
  }

  private func set(_ name: String, _ value: DBusValue, on bus: DBusConnection) async throws(DBusError) {
    _ = try await bus.call(
      .set(name, to: value, on: BlueZName.adapter, of: adapterPath), timeout: Self.answer)
  }

  /// Sets the adapter's alias to the peripheral's name. It is the value of bluetoothd's Device Name
  /// characteristic, from which a central takes the name once connected.
  private func rename(from properties: [String: DBusValue], on bus: DBusConnection) async throws(DBusError) {
    let alias = properties["Alias"]?.text ?? ""
    // Stored by a run that was killed, or by this one.
    let stored = aliasFile.original(ifNow: alias)
    guard alias != advertisedName || stored != nil else { return }
    // An empty alias stands for the machine's own name.
    let original = stored ?? (alias == properties["Name"]?.text ? "" : alias)
    originalAlias = original
    guard alias != advertisedName else { return }
    aliasFile.store(original, replacedBy: advertisedName)
    try await set("Alias", .string(advertisedName), on: bus)
  }

  private func power(on bus: DBusConnection) async throws {
    do throws(DBusError) {
      try await set("Powered", .boolean(true), on: bus)
    } catch {
      isPowered = false
      throw PeripheralError(
        "\(adapter) cannot be powered on: \(error) (try: sudo rfkill unblock bluetooth)")
    }
  }

  private func adapterProperties(on bus: DBusConnection) async throws -> [String: DBusValue] {
    let reply: [DBusValue]
    do throws(DBusError) {
      reply = try await bus.call(.managedObjects, timeout: Self.answer)
    } catch {
      guard let name = error.name else { throw error }
      let isAbsent = name == DBusName.Failure.serviceUnknown || name == DBusName.Failure.nameHasNoOwner
      throw PeripheralError(
        isAbsent ? "bluetoothd does not run (start it: systemctl start bluetooth)" : "\(error)")
    }
    let objects = reply.first?.map ?? [:]
    guard let interfaces = objects[adapterPath]?.map else {
      let names = objects.filter { $0.value.map?[BlueZName.adapter] != nil }.keys.sorted()
        .map { $0.split(separator: "/").last ?? "" }
      throw PeripheralError(
        "there is no adapter \(adapter) "
          + (names.isEmpty ? "(plug one in)" : "(there is \(names.joined(separator: ", ")): use --adapter)"))
    }
    for manager in [BlueZName.gattManager, BlueZName.advertisingManager] where interfaces[manager] == nil {
      throw PeripheralError("\(adapter) cannot be a peripheral: bluetoothd has no \(manager) for it")
    }
    return interfaces[BlueZName.adapter]?.map ?? [:]
  }

  /// bluetoothd calls the exported objects before it answers; the server replies meanwhile.
  private func register(_ object: RegisteredObject, on bus: DBusConnection) async throws {
    do throws(DBusError) {
      try await call("Register", object, [.properties([:])], timeout: Self.registration, on: bus)
    } catch {
      guard error.name != BlueZName.Failure.alreadyExists, error != .disconnected else { throw error }
      let hint =
        object == .advertisement
        ? " (Linux 6.12.93 and 6.18.34 refuse every advertisement; if uname -r shows one of them: "
          + "sudo apt full-upgrade, then restart the computer)" : ""
      throw PeripheralError("Register\(object.rawValue) failed on \(adapter): \(error)\(hint)")
    }
  }

  private func unregister(_ object: RegisteredObject, on bus: DBusConnection) async throws {
    do throws(DBusError) {
      try await call("Unregister", object, [], timeout: Self.answer, on: bus)
    } catch {
      // An error from bluetoothd means that it was no longer registered.
      if error.name == nil { throw error }
    }
  }

  /// Calls the object's manager: `RegisterApplication`, `UnregisterAdvertisement` …
  private func call(
    _ verb: String, _ object: RegisteredObject, _ options: [DBusValue], timeout: Duration,
    on bus: DBusConnection
  ) async throws(DBusError) {
    let call = DBusCall(
      "\(verb)\(object.rawValue)", on: object.manager, of: adapterPath, at: BlueZName.busName,
      [.objectPath(object.path)] + options)
    _ = try await bus.call(call, timeout: timeout)
  }

  /// The adapter has been powered on or off, or is gone.
  /// - Returns: whether that was not known yet.
  @discardableResult
  func powerChanged(to isOn: Bool) -> Bool {
    defer { isPowered = isOn }
    return isOn != isPowered
  }

  /// Withdraws the application and the advertisement, if they are registered, and restores the adapter's alias.
  func withdraw(isRegistered: Bool, on bus: DBusConnection) async {
    if isRegistered {
      try? await unregister(.advertisement, on: bus)
      try? await unregister(.application, on: bus)
    }
    guard let originalAlias else { return }
    do throws(DBusError) {
      try await set("Alias", .string(originalAlias), on: bus)
      aliasFile.remove()
    } catch {
      // The next run restores it.
    }
  }
}
