import DBus
import EventLoop
import GATT
import Peripherals

/// What happens to a served peripheral.
package enum GATTServerEvent: Sendable, Equatable {
  /// The peripheral advertises on the adapter with this address, and can be connected to.
  case serving(address: String)
  /// The peripheral is not served, for this reason; registration is retried.
  case waiting(String)
  /// A central has written a property.
  case written(Property, [UInt8])
}

/// Serves a peripheral on a BlueZ adapter: registers a GATT application and an advertisement with bluetoothd,
/// and registers them again after a restart of bluetoothd or of the adapter.
@LoopActor package final class GATTServer {
  private let address: String
  private let handler: @LoopActor (GATTServerEvent) -> Void
  private let registration: Registration
  private var objects: ServedObjects
  private var timer = DeadlineTimer()

  private var bus: DBusConnection?
  /// Resumed when the registration has to be checked; fails when the connection to the bus has ended.
  private var changed = Waiter<Void>()
  /// The reason last reported; nil: the peripheral is served.
  private var problem: String?
  private enum State {
    /// The server waits for a change, or for the next attempt.
    case waiting
    case registering
    /// The application and the advertisement are registered.
    case serving
  }
  private var state = State.waiting

  private static let retries = BackOff(first: .seconds(1), longest: .seconds(30))
  /// Changes within this time cause one registration.
  private static let pause = Duration.milliseconds(500)

  /// - Parameters:
  ///   - name: the advertised name.
  ///   - adapter: BlueZ's name of the adapter: `hci0`.
  ///   - bus: bluetoothd's bus; not the system bus only in tests.
  ///   - state: the folder for the adapter's alias, to be restored even after this process was killed.
  package init(
    _ peripheral: ServedPeripheral, name: String, adapter: String, bus: String = DBusName.systemBus,
    state: String? = nil,
    handler: @escaping @LoopActor (GATTServerEvent) -> Void
  ) {
    self.address = bus
    self.handler = handler
    registration = Registration(on: adapter, of: name, state: state)
    objects = ServedObjects(peripheral, name: name)
  }

  // MARK: Running

  /// Runs until cancelled, then withdraws the peripheral.
  package func run() async {
    schedule()
    var backOff = Self.retries
    while !Task.isCancelled {
      do {
        try await serve(&backOff)
      } catch {
        if !Task.isCancelled { report(waiting: "\(error)") }
      }
      await withdraw()
      do { try await loop.sleep(for: backOff.next()) } catch { break }
    }
    timer.set(nil) {}
  }

  /// Sets a value, and notifies it.
  package func set(_ property: Property, to value: Value) throws(PeripheralError) {
    emit(try objects.set(property, to: value, at: .now))
  }

  /// Serves over one connection to the bus, until that ends.
  private func serve(_ backOff: inout BackOff) async throws {
    changed = Waiter()
    let bus = try await DBusConnection.open(address) { [weak self] event in
      self?.receive(event)
    }
    self.bus = bus
    try await bus.addMatch([
      "sender": DBusName.bus, "member": "NameOwnerChanged", "arg0": BlueZName.busName,
    ])
    try await bus.addMatch(["sender": BlueZName.busName, "interface": DBusName.objectManager])
    try await bus.addMatch([
      "sender": BlueZName.busName, "interface": DBusName.properties, "arg0": BlueZName.adapter,
    ])
    while true {
      do {
        state = .registering
        let address = try await registration.register(on: bus)
        backOff.reset()
        // Otherwise it was turned off, or unplugged, meanwhile.
        if registration.isPowered { report(serving: address) }
        try await changed.value()
      } catch let error as PeripheralError {
        report(waiting: error.description)
        _ = try await changed.value(within: backOff.next())
      }
      try await loop.sleep(for: Self.pause)
      // What has changed until now is registered together.
      changed = Waiter()
      if self.bus == nil { throw DBusError.disconnected }
    }
  }

  private func report(serving address: String) {
    state = .serving
    problem = nil
    handler(.serving(address: address))
  }

  private func report(waiting reason: String) {
    state = .waiting
    guard problem != reason else { return }
    problem = reason
    handler(.waiting(reason))
  }

  /// Ends the registration and the connection to the bus.
  private func withdraw() async {
    guard let bus else { return }
    let isRegistered = state == .serving
    state = .waiting
    await registration.withdraw(isRegistered: isRegistered, on: bus)
    bus.close()
    self.bus = nil
    objects.endSubscriptions()
  }

  // MARK: Receiving

  private func receive(_ event: DBusEvent) {
    switch event {
    case .call(let call): answer(call)
    case .signal(let signal): receive(signal)
    case .disconnected:
      bus = nil
      state = .waiting
      changed.resume(.failure(DBusError.disconnected))
    }
  }

  private func receive(_ signal: DBusSignal) {
    if let change = signal.ownerChange {
      objects.endSubscriptions()
      return change.owner == nil ? report(waiting: "bluetoothd has ended") : recheck()
    }
    switch signal.member {
    case "InterfacesAdded" where signal.arguments.first?.text == registration.adapterPath:
      // Otherwise the adapter was found by itself, before this signal.
      if state == .waiting { recheck() }
    case "InterfacesRemoved" where signal.arguments.first?.text == registration.adapterPath:
      objects.endSubscriptions()
      registration.powerChanged(to: false)
      report(waiting: "the adapter \(registration.adapter) is gone")
    case "PropertiesChanged" where signal.path == registration.adapterPath:
      guard signal.arguments.count > 1, let isOn = signal.arguments[1].map?["Powered"]?.bool,
        registration.powerChanged(to: isOn)
      else { return }
      if isOn { recheck() } else { report(waiting: "the adapter \(registration.adapter) is off") }
    default: break
    }
  }

  private func recheck() { changed.resume(.success(())) }

  private func answer(_ call: DBusCall) {
    let outcome = objects.answer(call, at: .now)
    // The reply only fails if the bus has ended.
    try? bus?.reply(to: call, outcome.answer)
    if let (property, bytes) = outcome.written { handler(.written(property, bytes)) }
    if outcome.hasReleased, state == .serving { recheck() }
    emit(outcome.signal.map { [$0] } ?? [])
  }

  // MARK: Notifications

  private func emit(_ signals: [DBusSignal]) {
    for signal in signals { try? bus?.emit(signal) }
    schedule()
  }

  private func schedule() {
    timer.set(objects.next) { [weak self] in
      guard let self else { return }
      emit(objects.advance(to: .now))
    }
  }
}
