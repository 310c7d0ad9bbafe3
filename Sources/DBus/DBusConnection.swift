import CDBus
import EventLoop

/// A connection to a message bus.
///
/// It lives once: after ``DBusEvent/disconnected`` make a new one. Events go to the one handler, called
/// synchronously on the loop, in the order in which the bus sent them.
public actor DBusConnection {
  public nonisolated let loop: EventLoop
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let handler: @Sendable (DBusEvent) -> Void
  private var handle: ConnectionHandle?
  private var inFlight: [ObjectIdentifier: PendingCall] = [:]
  private var slotsTaken = 0
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// The stock system bus allows a connection 128 replies at a time; further calls wait their turn.
  private static let callsInFlight = 100

  private init(loop: EventLoop, handler: @escaping @Sendable (DBusEvent) -> Void) {
    self.loop = loop
    self.handler = handler
  }

  deinit {
    // Whoever lets go of it last may be on any thread; libdbus's watches belong to the loop's.
    if let handle { loop.onLoop { handle.close() } }
  }

  /// Connects to the bus at `address` and greets it.
  /// - Throws: ``DBusError/unreachable(address:reason:)``, or what the bus answered to the greeting.
  public static func open(
    _ address: DBusAddress, on loop: EventLoop, handler: @escaping @Sendable (DBusEvent) -> Void
  ) async throws(DBusError) -> DBusConnection {
    let connection = DBusConnection(loop: loop, handler: handler)
    try await connection.connect(to: address)
    return connection
  }

  private func connect(to address: DBusAddress) async throws(DBusError) {
    let address = address.text
    handle = try ConnectionHandle(address: address, loop: loop) { [weak self] received in
      self?.assumeIsolated { $0.receive(received) }
    }
    do {
      let reply = try await call(
        DBusCall("Hello", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus), timeout: .seconds(10))
      guard let name = reply.first?.text else { throw DBusError.invalid("Hello brought no name") }
      // The bus may have died since it answered.
      guard let handle else { throw DBusError.disconnected }
      dbus_bus_set_unique_name(handle.raw, name)
    } catch {
      close()
      throw .unreachable(address: address, reason: "\(error)")
    }
  }

  /// Ends the connection; calls in flight fail with ``DBusError/disconnected``. Harmless when repeated.
  public func close() {
    handle?.close()
    handle = nil
    // Each that ends lets one in that waits, which then finds the connection gone.
    for call in Array(inFlight.values) { call.finish(.failure(.disconnected)) }
  }

  // MARK: Calling

  /// Calls a method and waits for its answer, for at most `timeout`. A cancelled task still waits: the
  /// outcome of what was sent must be known.
  /// - Returns: the arguments of the reply.
  public func call(_ call: DBusCall, timeout: Duration) async throws(DBusError) -> [DBusValue] {
    // Whether there is a slot, and below whether there is still a connection, is asked inside the bodies:
    // between the call of `withCheckedContinuation` and its body other jobs of the actor may run.
    await withCheckedContinuation { continuation in
      if slotsTaken < Self.callsInFlight {
        slotsTaken += 1
        continuation.resume()
      } else {
        waiting.append(continuation)
      }
    }
    let message: OutgoingMessage
    do {
      message = try OutgoingMessage(call: call)
    } catch {
      releaseSlot()
      throw error
    }
    let result: Result<[DBusValue], DBusError> = await withCheckedContinuation { continuation in
      guard let handle else {
        releaseSlot()
        return continuation.resume(returning: .failure(.disconnected))
      }
      let pending = PendingCall {
        continuation.resume(returning: $0)
      } onEnd: { [weak self] call in
        self?.assumeIsolated { $0.finished(call) }
      }
      inFlight[ObjectIdentifier(pending)] = pending
      pending.send(message, over: handle, timeout: timeout, loop: loop)
    }
    return try result.get()
  }

  private func finished(_ call: PendingCall) {
    inFlight[ObjectIdentifier(call)] = nil
    releaseSlot()
  }

  private func releaseSlot() {
    // The slot passes on, so that a newcomer cannot slip in between.
    if waiting.isEmpty { slotsTaken -= 1 } else { waiting.removeFirst().resume() }
  }

  /// Asks the bus for the signals that match `rule`, and returns when it will send them.
  public func addMatch(_ rule: String) async throws(DBusError) {
    _ = try await call(
      DBusCall(
        "AddMatch", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus, [.string(rule)]),
      timeout: .seconds(10))
  }

  // MARK: Serving

  /// Takes the well-known name `name`; false when somebody else has it.
  public func requestName(_ name: String) async throws(DBusError) -> Bool {
    let doNotQueue = UInt32(DBUS_NAME_FLAG_DO_NOT_QUEUE)
    let reply = try await call(
      DBusCall(
        "RequestName", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus,
        [.string(name), .uint32(doNotQueue)]),
      timeout: .seconds(10))
    return reply.first?.integer == Int(DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER)
  }

  /// Answers a received call; nothing is sent when the caller wants no reply.
  public func reply(to call: DBusCall, _ arguments: [DBusValue] = []) throws(DBusError) {
    guard let serial = call.replySerial else { return }
    try send(OutgoingMessage(replyTo: serial, sender: call.sender, error: nil, arguments))
  }

  /// Answers a received call with an error.
  public func reply(to call: DBusCall, error name: String, _ text: String) throws(DBusError) {
    guard let serial = call.replySerial else { return }
    try send(OutgoingMessage(replyTo: serial, sender: call.sender, error: name, [.string(text)]))
  }

  public func emit(_ signal: DBusSignal) throws(DBusError) {
    try send(OutgoingMessage(signal: signal))
  }

  private func send(_ message: OutgoingMessage) throws(DBusError) {
    guard let handle else { throw .disconnected }
    dbus_connection_send(handle.raw, message.raw, nil)
  }

  // MARK: Receiving

  private func receive(_ received: ConnectionHandle.Received) {
    let message = received.message
    let path = dbus_message_get_path(message).map(String.init(cString:)) ?? ""
    let interface = dbus_message_get_interface(message).map(String.init(cString:))
    let member = dbus_message_get_member(message).map(String.init(cString:)) ?? ""
    let sender = dbus_message_get_sender(message).map(String.init(cString:))
    if received.type == DBUS_MESSAGE_TYPE_METHOD_CALL {
      let serial = dbus_message_get_no_reply(message) != 0 ? nil : dbus_message_get_serial(message)
      handler(
        .call(
          DBusCall(
            received: member, interface: interface, path: path, sender: sender, replySerial: serial,
            arguments: arguments(of: message))))
    } else if interface == "org.freedesktop.DBus.Local", member == "Disconnected", sender == nil {
      close()
      handler(.disconnected)
    } else {
      handler(
        .signal(
          DBusSignal(
            member, on: interface ?? "", of: path, arguments(of: message), sender: sender)))
    }
  }
}

/// Names that the bus itself goes by.
public enum DBusName {
  public static let bus = "org.freedesktop.DBus"
  public static let busPath = "/org/freedesktop/DBus"
  public static let properties = "org.freedesktop.DBus.Properties"
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"
  public static let introspectable = "org.freedesktop.DBus.Introspectable"
  public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
  public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
}
