import DBus
import EventLoop
import Glibc
import JSON
import Peripherals

/// Why the simulator cannot run.
public enum SimulatorError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The bus could not be reached, or has ended, and why.
  case noBus(String)
  /// Another program owns org.bluez on the bus at this address.
  case nameTaken(on: String)
  /// A file could not be created: its path, and why.
  case failed(String)

  /// The file at `path` could not be created, for the reason in `errno`.
  static func file(at path: String) -> SimulatorError {
    .failed("\(path): \(String(cString: strerror(errno)))")
  }

  /// What to tell the user.
  public var description: String {
    switch self {
    case .noBus(let reason), .failed(let reason): reason
    case .nameTaken(let bus): "org.bluez is already owned by another program on \(bus)"
    }
  }
}

/// Serves `org.bluez` on a bus: runs the pure model with its timer and sockets.
@LoopActor public final class Simulator {
  private let address: String
  private var model: Bluetoothd
  private var connection: DBusConnection?
  private var calls: [CallID: DBusCall] = [:]
  private var lastCall: UInt64 = 0
  private var sockets: [ChannelID: NotifySocket] = [:]
  private var timer = DeadlineTimer()
  /// The signals of notifications that were sent: values recur, at thousands per second.
  private var notifications: [Notification: PreparedSignal] = [:]
  private static let mostNotifications = 65_536
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
  /// - Throws: ``SimulatorError``.
  public static func start(_ options: SimulatorOptions, address: String) async throws -> Simulator {
    let simulator = try Simulator(options, address: address)
    try await simulator.connect()
    return simulator
  }

  /// Waits until the bus has ended (``SimulatorError/noBus(_:)``) or ``stop()`` is called.
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
      connection = try await DBusConnection.open(.at(address)) { [weak self] event in
        self?.receive(event)
      }
      self.connection = connection
      // Discovery and notifications of a client end when it leaves the bus.
      try await connection.addMatch(["sender": DBusName.bus, "member": "NameOwnerChanged", "arg2": ""])
      guard try await connection.requestName(BlueZName.busName) else {
        connection.close()
        throw SimulatorError.nameTaken(on: address)
      }
    } catch let error as DBusError {
      throw SimulatorError.noBus("\(error)")
    }
  }

  private func leaveBus() {
    connection?.close()
    connection = nil
    calls.removeAll()
    for socket in sockets.values { socket.close() }
    sockets.removeAll()
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .call(let call):
      lastCall += 1
      let id = CallID(number: lastCall)
      calls[id] = call
      model.handle(
        Request(
          id: id, sender: call.sender ?? "", path: call.path, interface: call.interface ?? "",
          member: call.member, arguments: call.arguments), at: .now)
      performEffects()
    case .signal(let signal):
      guard let change = signal.ownerChange, change.owner == nil else { return }
      model.clientLeft(change.name)
      performEffects()
    case .disconnected:
      connection = nil
      ended.resume(.failure(SimulatorError.noBus("the bus has ended")))
    }
  }

  // MARK: Effects

  /// Performs what the last input of the model has led to, and schedules its next event.
  private func performEffects() {
    for effect in model.takeEffects() { perform(effect) }
    timer.set(model.nextEvent) { [weak self] in
      guard let self else { return }
      model.advance(to: .now)
      performEffects()
    }
  }

  private func perform(_ effect: Effect) {
    switch effect {
    case .signal(let signal):
      // Emitting fails only if the bus has ended, which ends the run.
      try? connection?.emit(signal)
    case .reply(let id, let arguments):
      guard let call = calls.removeValue(forKey: id) else { return }
      try? connection?.reply(to: call, arguments)
    case .refuse(let id, let error):
      guard let call = calls.removeValue(forKey: id) else { return }
      try? connection?.reply(to: call, error: error.name, error.text)
    case .abandon(let id): calls[id] = nil
    case .open(let channel, let id): open(channel, for: id)
    case .notification(let signal, let bytes, let peripheral, let handle):
      // Only what a sensor measures is traced.
      if let trace, model.peripherals[peripheral].database.sensor(of: handle) != nil {
        trace.sends(bytes, from: peripheral)
      }
      if let signal = prepared(signal, bytes) { try? connection?.emit(signal) }
    case .packet(let channel, let bytes): sockets[channel]?.send(bytes)
    case .askPasskey(let agent, let client, let device, let call):
      ask(agent, of: client, about: device, for: call)
    case .hangUp(let channel): sockets.removeValue(forKey: channel)?.close()
    case .crash:
      crashes += 1
      end()
      // Restarted, as by the service manager.
      loop.task { _ = await self.begin(after: .milliseconds(100)) }
    }
  }

  private func prepared(_ signal: DBusSignal, _ bytes: [UInt8]) -> PreparedSignal? {
    let notification = Notification(path: signal.path, bytes: bytes)
    if let known = notifications[notification] { return known }
    let new = try? PreparedSignal(signal)
    // Texts do not recur.
    if notifications.count >= Self.mostNotifications { notifications = [:] }
    notifications[notification] = new
    return new
  }

  private func open(_ channel: ChannelID, for id: CallID) {
    guard let call = calls.removeValue(forKey: id) else { return }
    let closed: @LoopActor () -> Void = { [weak self] in
      self?.model.channelClosed(channel)
      self?.performEffects()
    }
    guard let (socket, other) = NotifySocket.pair(onClose: closed) else {
      // Out of descriptors.
      try? connection?.reply(to: call, error: BlueZName.Failure.failed, "Resource temporarily unavailable")
      return closed()
    }
    sockets[channel] = socket
    try? connection?.reply(to: call, [.fileDescriptor(other), .uint16(Bluetoothd.mtu)])
  }

  private func ask(_ agent: String, of client: String, about device: String, for id: CallID) {
    let call = DBusCall(
      "RequestPasskey", on: BlueZName.agent, of: agent, at: client, [.objectPath(device)])
    let answered: @LoopActor (DBusAnswer) -> Void = { [weak self] answer in
      let passkey = (try? answer.get())?.first?.integer
      self?.model.passkeyEntered(passkey, for: id, at: .now)
      self?.performEffects()
    }
    connection?.call(call, timeout: .seconds(60), answered)
  }

  // MARK: Control

  /// Performs a command of the control socket.
  func control(_ request: ControlRequest) async -> JSONValue {
    let now = Moment.now
    guard let operation = request.op else { return .error("op is missing") }
    switch operation {
    case .list: return .array(model.peripherals.indices.map { model.state(of: $0, at: now) })
    case .counters: return ["calls": .integer(Int(lastCall)), "crashes": .integer(crashes)]
    case .power, .plug, .le, .scan:
      let (adapter, on) = (request.adapter ?? 0, request.on ?? true)
      guard model.adapters.indices.contains(adapter) else { return .error("no adapter \(adapter)") }
      switch operation {
      case .power: model.setPowered(adapter, on, at: now)
      case .plug where on: model.replug(adapter, as: request.name, at: now)
      case .plug: model.unplug(adapter, at: now)
      case .le: model.adapters[adapter].hasLE = on
      default: model.adapters[adapter].refusesScans = !on
      }
      performEffects()
      return .done
    case .restart: return await restart(request)
    case .radio:
      guard let receiver else { return .error("no --radio") }
      do { return try receiver.control(request) } catch { return .error("\(error)") }
    case .writes:
      let index = request.i ?? 0
      guard model.peripherals.indices.contains(index) else { return .error("no device \(index)") }
      guard let characteristic = request.characteristic(of: model.peripherals[index].database) else {
        return .error("no such characteristic")
      }
      return (model.peripherals[index].writes[characteristic.handle] ?? Writes()).json
    case .period, .subscription, .pairing, .temp, .value, .advertise, .name, .log, .serve, .silent, .vanish,
      .return, .disconnect, .reset, .forget, .strength:
      let isForAll = request.all == true && [.period, .subscription, .pairing].contains(operation)
      let indices = isForAll ? Array(model.peripherals.indices) : [request.i ?? 0]
      for index in indices {
        guard model.peripherals.indices.contains(index) else { return .error("no device \(index)") }
        if let error = control(operation, request, index, at: now) { return .error(error) }
      }
      let states = indices.map { model.state(of: $0, at: now) }
      return isForAll ? .array(states) : states[0]
    }
  }

  private func control(
    _ operation: ControlRequest.Operation, _ request: ControlRequest, _ index: Int,
    at now: Moment
  ) -> String? {
    defer { performEffects() }
    switch operation {
    case .temp:
      let value = request.v.flatMap { Int8(exactly: $0) }
      guard request.v == nil || value != nil else { return "v: not an int8" }
      model.peripherals[index].values.microBit?.fixedTemperature = value
    case .value:
      guard request.characteristic != nil else {
        model.peripherals[index].values.microBit?.raw = request.bytes
        return nil
      }
      guard let characteristic = request.characteristic(of: model.peripherals[index].database) else {
        return "no such characteristic"
      }
      guard let bytes = request.bytes, model.setValue(index, characteristic, bytes, at: now) else {
        return "hex: not a valid value of this characteristic"
      }
    case .advertise:
      guard let service = request.service else { return "service is missing" }
      model.advertise(index, service.description, request.bytes, at: now)
    case .name:
      guard let name = request.name else { return "name is missing" }
      model.rename(index, to: name)
    case .log:
      if request.on == false { model.peripherals[index].values.dataLog.clear() }
      model.peripherals[index].values.dataLog.add(request.bytes ?? [])
    case .serve:
      let services = model.peripherals[index].database.services
      guard let service = services.first(where: { $0.uuid == request.service }) else {
        return "no such service: service"
      }
      model.serve(index, service.handle, request.on ?? true)
    case .strength:
      let adapter = request.adapter ?? 0
      guard model.adapters.indices.contains(adapter) else { return "no adapter \(adapter)" }
      model.setStrength(index, request.v, of: adapter, at: now)
    case .silent: model.peripherals[index].radio.isSilent = request.on ?? true
    case .vanish: model.vanish(index, at: now)
    case .return: model.comeBack(index, at: now)
    case .disconnect: model.hangUp(model.key(ofPeripheral: index), at: now)
    case .reset: model.reset(index, at: now)
    case .period:
      guard let value = request.v else { return nil }
      guard let period = UInt16(exactly: value) else { return "v: not a uint16" }
      model.setPeriod(index, period, at: now)
    case .subscription: model.peripherals[index].subscriptionFault = request.subscriptionFault
    case .pairing: model.peripherals[index].security.change(by: request)
    case .forget: model.peripherals[index].security.hasBond = false
    case .writes, .list, .counters, .power, .plug, .le, .scan, .restart, .radio: break
    }
    return nil
  }

  /// Ends bluetoothd, by SIGTERM or SIGKILL, and starts it again.
  private func restart(_ request: ControlRequest) async -> JSONValue {
    guard connection != nil else { return .error("a restart is in progress") }
    if request.how != .kill {
      model.terminate(at: .now)
      performEffects()
    }
    end()
    return await begin(after: .milliseconds(request.ms ?? 100))
  }

  private func end() {
    model.vanish()
    performEffects()
    leaveBus()
  }

  private func begin(after pause: Duration) async -> JSONValue {
    do {
      try await loop.sleep(for: pause)
      try await connect()
      model.restart(at: .now)
      performEffects()
      return .done
    } catch {
      ended.resume(.failure(error))
      return .error("\(error)")
    }
  }
}

/// Identifies a notification.
private struct Notification: Hashable {
  let path: String
  let bytes: [UInt8]
}
