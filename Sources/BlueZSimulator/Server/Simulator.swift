import DBus
import EventLoop
import Glibc
import JSON
import Peripherals

extension PeripheralError {
  /// The file at `path` could not be created, for the reason in `errno`.
  static func file(at path: String) -> PeripheralError {
    PeripheralError("\(path): \(String(cString: strerror(errno)))")
  }
}

/// Serves `org.bluez` on a bus: runs the pure model with its timer and sockets.
@LoopActor public final class Simulator {
  private let address: String
  private var model: Bluetoothd
  private var connection: DBusConnection?
  /// How many calls were received.
  private var calls = 0
  private var sockets: [ChannelID: NotifySocket] = [:]
  private var timer = DeadlineTimer()
  private var crashes = 0
  private let trace: NotificationTrace?
  private let receiver: ReceiverPort?
  private let ended = Waiter<Void>()

  private init(_ options: SimulatorOptions, address: String) throws {
    self.address = address
    trace = try options.trace.map { try NotificationTrace(path: $0, microBits: options.devices) }
    receiver = try options.receiver.map { folder in
      try ReceiverPort(options.scenario, folder: folder, seed: options.seed)
    }
    model = Bluetoothd(options, at: .now)
  }

  /// Serves the bus at `address`; returns when `org.bluez` can be called.
  /// - Throws: if the bus cannot be reached or has another `org.bluez`, or a file cannot be created.
  public static func start(_ options: SimulatorOptions, address: String) async throws -> Simulator {
    let simulator = try Simulator(options, address: address)
    try await simulator.connect()
    return simulator
  }

  /// Waits until ``stop()`` is called; throws when the bus has ended.
  public func run() async throws { try await ended.value() }

  /// Leaves the bus.
  public func stop() {
    leaveBus()
    receiver?.stop()
    ended.resume(.success(()))
  }

  // MARK: The bus

  private func connect() async throws {
    let connection: DBusConnection
    do {
      connection = try await DBusConnection.open(address) { [weak self] event in
        self?.receive(event)
      }
      self.connection = connection
      // Discovery and notifications of a client end when it leaves the bus.
      try await connection.addMatch(["sender": DBusName.bus, "member": "NameOwnerChanged", "arg2": ""])
      guard try await connection.requestName(BlueZName.busName) else {
        connection.close()
        throw PeripheralError("org.bluez is already owned by another program on \(address)")
      }
    } catch let error as DBusError {
      throw PeripheralError("\(error)")
    }
  }

  private func leaveBus() {
    connection?.close()
    connection = nil
    for socket in sockets.values { socket.close() }
    sockets.removeAll()
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .call(let call):
      calls += 1
      give { $0.handle(call) }
    case .signal(let signal):
      guard let change = signal.ownerChange, change.owner == nil else { return }
      give { $0.clientLeft(change.name) }
    case .disconnected:
      connection = nil
      ended.resume(.failure(PeripheralError("the bus has ended")))
    }
  }

  /// Gives the model an input, performs what that has led to, and sets the timer for the next event.
  private func give(_ input: (inout Bluetoothd) throws -> Void) rethrows {
    try model.take(at: .now, input)
    for effect in model.takeEffects() { perform(effect) }
    timer.set(model.nextEvent) { [weak self] in self?.give { $0.advance() } }
  }

  // MARK: Effects

  private func perform(_ effect: Effect) {
    switch effect {
    case .signal(let signal):
      // Emitting fails only if the bus has ended, which ends the run.
      try? connection?.emit(signal)
    case .answer(let call, let answer): try? connection?.reply(to: call, answer)
    case .open(let channel, let call): open(channel, for: call)
    case .notification(let signal, let bytes, let peripheral, let handle):
      // Only what a sensor measures is traced.
      if let trace, model.peripherals[peripheral].database.characteristic(handle)?.content.isSampled == true {
        trace.sends(bytes, from: peripheral)
      }
      try? connection?.emit(signal)
    case .packet(let channel, let bytes): sockets[channel]?.send(bytes)
    case .askPasskey(let agent, let client, let device, let call):
      ask(agent, of: client, about: device, for: call)
    case .hangUp(let channel): sockets.removeValue(forKey: channel)?.close()
    case .crash:
      crashes += 1
      end()
      // Restarted, as by the service manager.
      loop.task { try? await self.begin(after: .milliseconds(100)) }
    }
  }

  private func open(_ channel: ChannelID, for call: DBusCall) {
    let (socket, other) = NotifySocket.pair { [weak self] in self?.give { $0.channelClosed(channel) } }
    sockets[channel] = socket
    try? connection?.reply(to: call, .success([.fileDescriptor(other), .uint16(Bluetoothd.mtu)]))
  }

  private func ask(_ agent: String, of client: String, about device: String, for pairing: DBusCall) {
    let call = DBusCall(
      "RequestPasskey", on: BlueZName.agent, of: agent, at: client, [.objectPath(device)])
    connection?.call(call, timeout: .seconds(60)) { [weak self] answer in
      let passkey = (try? answer.get())?.first?.integer
      self?.give { $0.passkeyEntered(passkey, for: pairing) }
    }
  }

  // MARK: Control

  /// Carries out a command of the control socket.
  func control(_ request: ControlRequest) async -> JSONValue {
    do { return try await answer(to: request) } catch { return .error("\(error)") }
  }

  private func answer(to request: ControlRequest) async throws -> JSONValue {
    let on = request.on
    switch request.op {
    case .list: return .array(model.peripherals.indices.map { model.state(of: $0, at: .now) })
    case .counters: return ["calls": .integer(calls), "crashes": .integer(crashes)]
    case .restart: return try await restart(request)
    case .radio:
      guard let receiver else { throw PeripheralError("no --radio") }
      return try receiver.control(request)

    case .power: return try onAdapter(request) { $0.setPowered($1, on) }
    case .plug where on: return try onAdapter(request) { $0.replug($1, as: request.name) }
    case .plug: return try onAdapter(request) { $0.unplug($1) }
    case .le: return try onAdapter(request) { $0.adapters[$1].hasLE = on }
    case .scan: return try onAdapter(request) { $0.adapters[$1].refusesScans = !on }

    case .period:
      return try onDevices(request) { model, index in
        guard let value = request.v else { return }
        guard let period = UInt16(exactly: value) else { throw PeripheralError("v: not a uint16") }
        model.peripherals[index].values.microBit?.setPeriod(period, at: model.now)
      }
    case .subscription:
      return try onDevices(request) { $0.peripherals[$1].subscriptionFault = request.subscriptionFault }
    case .pairing: return try onDevices(request) { $0.peripherals[$1].security.change(by: request) }
    case .temp:
      return try onDevices(request) { model, index in
        let value = request.v.flatMap { Int8(exactly: $0) }
        guard request.v == nil || value != nil else { throw PeripheralError("v: not an int8") }
        model.peripherals[index].values.microBit?.fixedTemperature = value
      }
    case .value where request.characteristic == nil:
      return try onDevices(request) { $0.peripherals[$1].values.microBit?.raw = request.bytes }
    case .value:
      return try onDevices(request) { model, index in
        let characteristic = try request.characteristic(of: model.peripherals[index].database)
        guard let bytes = request.bytes, model.setValue(index, characteristic, bytes) else {
          throw PeripheralError("hex: not a valid value of this characteristic")
        }
      }
    case .writes:
      let peripheral = try peripheral(request.i)
      let characteristic = try request.characteristic(of: peripheral.database)
      return (peripheral.writes[characteristic.handle] ?? Writes()).json
    case .advertise:
      guard let service = request.service else { throw PeripheralError("service is missing") }
      return try onDevices(request) { $0.advertise($1, service.description, request.bytes) }
    case .name:
      guard let name = request.name else { throw PeripheralError("name is missing") }
      return try onDevices(request) { $0.rename($1, to: name) }
    case .log:
      return try onDevices(request) {
        if !on { $0.peripherals[$1].values.dataLog.clear() }
        $0.peripherals[$1].values.dataLog.add(request.bytes ?? [])
      }
    case .serve:
      return try onDevices(request) { model, index in
        let services = model.peripherals[index].database.services
        guard let service = services.first(where: { $0.uuid == request.service }) else {
          throw PeripheralError("no such service: service")
        }
        model.serve(index, service.handle, on)
      }
    case .strength:
      let adapter = try adapter(of: request)
      return try onDevices(request) { $0.setStrength($1, request.v, of: adapter) }
    case .silent: return try onDevices(request) { $0.peripherals[$1].radio.isSilent = on }
    case .vanish: return try onDevices(request) { $0.vanish($1) }
    case .return: return try onDevices(request) { $0.comeBack($1) }
    case .disconnect: return try onDevices(request) { $0.hangUp($0.key(ofPeripheral: $1)) }
    case .reset: return try onDevices(request) { $0.reset($1) }
    case .forget: return try onDevices(request) { $0.peripherals[$1].security.hasBond = false }
    }
  }

  private func adapter(of request: ControlRequest) throws(PeripheralError) -> Int {
    guard model.adapters.indices.contains(request.adapter) else {
      throw PeripheralError("no adapter \(request.adapter)")
    }
    return request.adapter
  }

  private func peripheral(_ index: Int) throws(PeripheralError) -> Peripheral {
    guard model.peripherals.indices.contains(index) else { throw PeripheralError("no device \(index)") }
    return model.peripherals[index]
  }

  private func onAdapter(
    _ request: ControlRequest, _ change: (inout Bluetoothd, Int) -> Void
  ) throws(PeripheralError) -> JSONValue {
    let adapter = try adapter(of: request)
    give { change(&$0, adapter) }
    return .done
  }

  /// Changes the peripheral `i`, or all.
  /// - Returns: their states.
  private func onDevices(
    _ request: ControlRequest, _ change: (inout Bluetoothd, Int) throws -> Void
  ) throws -> JSONValue {
    let isForAll = request.isForAll
    let indices = isForAll ? Array(model.peripherals.indices) : [request.i]
    for index in indices {
      _ = try peripheral(index)
      try give { try change(&$0, index) }
    }
    let states = indices.map { model.state(of: $0, at: .now) }
    return isForAll ? .array(states) : states[0]
  }

  /// Ends bluetoothd, by SIGTERM or SIGKILL, and starts it again.
  private func restart(_ request: ControlRequest) async throws -> JSONValue {
    guard connection != nil else { throw PeripheralError("a restart is in progress") }
    if request.how != .kill { give { $0.terminate() } }
    end()
    try await begin(after: .milliseconds(request.ms ?? 100))
    return .done
  }

  private func end() {
    give { $0.vanish() }
    leaveBus()
  }

  private func begin(after pause: Duration) async throws {
    do {
      try await loop.sleep(for: pause)
      try await connect()
      give { $0.restart() }
    } catch {
      ended.resume(.failure(error))
      throw error
    }
  }
}
