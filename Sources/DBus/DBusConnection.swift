import CDBus
import EventLoop

/// A connection to a message bus.
///
/// It lives once: after ``DBusEvent/disconnected`` make a new one. Events go to the one handler, called
/// synchronously on the loop, in the order in which the bus sent them.
public actor DBusConnection {
  nonisolated let loop: EventLoop
  /// The loop's thread: who is on it may enter the actor by `assumeIsolated`.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let handler: @Sendable (DBusEvent) -> Void
  private let feed: ByteFeed?
  private var handle: ConnectionHandle?
  /// Calls on their way, by the serial number that the reply refers to.
  private var inFlight: [UInt32: PendingCall] = [:]
  /// Calls that wait until fewer are on their way.
  private var waiting: ArraySlice<PendingCall> = []

  /// The stock system bus allows a connection 128 replies at a time; further calls wait their turn.
  private static let callsInFlight = 100

  private init(loop: EventLoop, feed: ByteFeed?, handler: @escaping @Sendable (DBusEvent) -> Void) {
    self.loop = loop
    self.feed = feed
    self.handler = handler
  }

  deinit {
    // Whoever lets go of it last may be on any thread; libdbus's watches belong to the loop's.
    if let handle { loop.onLoop { handle.close() } }
  }

  /// Connects to the bus at `address` and greets it.
  /// - Parameter feed: gets the changes of its property; `handler` gets every other signal.
  /// - Throws: ``DBusError/unreachable(address:reason:)``, or what the bus answered to the greeting.
  public static func open(
    _ address: DBusAddress, on loop: EventLoop, feed: ByteFeed? = nil,
    handler: @escaping @Sendable (DBusEvent) -> Void
  ) async throws(DBusError) -> DBusConnection {
    let connection = DBusConnection(loop: loop, feed: feed, handler: handler)
    try await connection.connect(to: address)
    return connection
  }

  private func connect(to address: DBusAddress) async throws(DBusError) {
    let address = address.text
    handle = try ConnectionHandle(address: address, loop: loop) { [weak self] received in
      if let self { loop.enter(self, received) { $0.receive($1) } }
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
    let calls = inFlight.values + waiting
    inFlight = [:]
    waiting = []
    for call in calls {
      call.timer?.cancel()
      call.done(.failure(.disconnected))
    }
  }

  // MARK: Calling

  /// Calls a method. `done` gets the answer, on the loop: the arguments of the reply, or the error that `timeout`
  /// makes at the latest. At once when the call cannot be sent.
  public func call(
    _ call: DBusCall, timeout: Duration, _ done: @escaping @Sendable (DBusAnswer) -> Void
  ) {
    do throws(DBusError) {
      let pending = PendingCall(try OutgoingMessage(call: call), timeout: timeout, done)
      if inFlight.count < Self.callsInFlight { send(pending) } else { waiting.append(pending) }
    } catch {
      done(.failure(error))
    }
  }

  /// Calls a method and waits for its answer, for at most `timeout`. A cancelled task still waits: the
  /// outcome of what was sent must be known.
  /// - Returns: the arguments of the reply.
  public func call(_ call: DBusCall, timeout: Duration) async throws(DBusError) -> [DBusValue] {
    try await withCheckedContinuation { continuation in
      self.call(call, timeout: timeout) { continuation.resume(returning: $0) }
    }.get()
  }

  private func send(_ call: PendingCall) {
    guard let handle, let serial = handle.send(call.message) else {
      return call.done(.failure(.disconnected))
    }
    inFlight[serial] = call
    call.timer = loop.timer(after: call.timeout) { [weak self] in
      self?.assumeIsolated { $0.end(serial, .failure(.timedOut)) }
    }
  }

  /// A call has ended; not for the first time when its reply comes after its time-out.
  private func end(_ serial: UInt32, _ answer: @autoclosure () -> DBusAnswer) {
    guard let call = inFlight.removeValue(forKey: serial) else { return }
    call.timer?.cancel()
    if let next = waiting.popFirst() { send(next) }
    call.done(answer())
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

  /// Sends `signal` to all who have asked the bus for it; nobody may have.
  /// - Throws: ``DBusError/disconnected``; ``DBusError/invalid(_:)``.
  public func emit(_ signal: DBusSignal) throws(DBusError) {
    try send(OutgoingMessage(signal: signal))
  }

  /// Sends `signal`, like the other of this name; it can be sent again.
  public func emit(_ signal: PreparedSignal) throws(DBusError) {
    try send(OutgoingMessage(copy: signal.message))
  }

  private func send(_ message: OutgoingMessage) throws(DBusError) {
    guard handle?.send(message) != nil else { throw .disconnected }
  }

  // MARK: Receiving

  private func receive(_ message: IncomingMessage) {
    switch message.type {
    case DBUS_MESSAGE_TYPE_METHOD_RETURN:
      end(message.answeredSerial, .success(message.arguments))
    case DBUS_MESSAGE_TYPE_ERROR:
      end(
        message.answeredSerial,
        .failure(.remote(name: message.errorName, message: message.arguments.first?.text ?? "")))
    case DBUS_MESSAGE_TYPE_METHOD_CALL:
      handler(.call(DBusCall(message)))
    case DBUS_MESSAGE_TYPE_SIGNAL:
      if feed?.deliver(message) == true { return }
      let signal = DBusSignal(message)
      if signal.interface == DBusName.local, signal.member == "Disconnected", signal.sender == nil {
        close()
        handler(.disconnected)
      } else {
        handler(.signal(signal))
      }
    default:
      break
    }
  }
}

/// Names that the bus itself goes by.
public enum DBusName {
  /// The bus as a destination, as a sender, and as the interface of its own methods and signals.
  public static let bus = "org.freedesktop.DBus"
  /// What libdbus itself says, of the connection.
  static let local = "org.freedesktop.DBus.Local"
  /// The object that the bus's own methods are called on.
  public static let busPath = "/org/freedesktop/DBus"
  /// The interface of Get, Set, GetAll and PropertiesChanged.
  public static let properties = "org.freedesktop.DBus.Properties"
  /// The interface of GetManagedObjects, InterfacesAdded and InterfacesRemoved.
  public static let objectManager = "org.freedesktop.DBus.ObjectManager"
  /// The interface of Introspect, which describes an object in XML.
  public static let introspectable = "org.freedesktop.DBus.Introspectable"
  /// The error of a call to a path where nothing is, or nothing is any more.
  public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
  /// The error of a call that the object's interface does not have.
  public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
}
