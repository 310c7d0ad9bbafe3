import CDBus
import EventLoop

/// A connection to a message bus.
///
/// A connection cannot be reused after ``DBusEvent/disconnected``. Events are passed to the handler synchronously, in the
/// order in which they were received.
@LoopActor public final class DBusConnection {
  /// A call that ends with its reply, its time-out, or the end of the connection.
  private struct PendingCall {
    let message: OutgoingMessage
    let timeout: Duration
    /// Whether `done` is called again if the reply arrives after the time-out.
    let awaitsLateReply: Bool
    let done: @LoopActor (DBusAnswer) -> Void
    /// Set when the call has been sent.
    var timer: LoopTimer?
  }

  private let handler: @LoopActor (DBusEvent) -> Void
  private let byteSignals: ByteSignals?
  /// The unique names whose signals are received, beside those of the bus itself; nil: everybody's. Whoever is on the system bus may
  /// send signals of 32 MiB, which take twenty times as much when they are decoded.
  public var signalSenders: Set<String>?
  private var handle: ConnectionHandle?
  /// Calls awaiting a reply, by their serial number.
  private var inFlight: [UInt32: PendingCall] = [:]
  /// Calls whose time-out has passed, and whose reply is awaited nevertheless.
  private var late: [UInt32: PendingCall] = [:]
  /// Calls not sent yet.
  private var waiting: ArraySlice<PendingCall> = []

  /// The default system bus allows 128 pending replies per connection.
  private static let callsInFlight = 100

  private init(
    byteSignals: ByteSignals?, signalSenders: Set<String>?, handler: @escaping @LoopActor (DBusEvent) -> Void
  ) {
    self.byteSignals = byteSignals
    self.signalSenders = signalSenders
    self.handler = handler
  }

  deinit {
    // The last reference may be released on any thread; libdbus's watches belong to the loop's.
    if let handle { loop.onLoop { handle.close() } }
  }

  /// Connects to the bus at `address` (D-Bus specification, "Server Addresses") and registers with it (`Hello`).
  /// - Parameters:
  ///   - byteSignals: receives the changes of its property; `handler` receives all other signals.
  ///   - signalSenders: see the property.
  /// - Throws: ``DBusError/unreachable(address:reason:)``.
  public static func open(
    _ address: String, byteSignals: ByteSignals? = nil, signalSenders: Set<String>? = nil,
    handler: @escaping @LoopActor (DBusEvent) -> Void
  ) async throws(DBusError) -> DBusConnection {
    let connection = DBusConnection(byteSignals: byteSignals, signalSenders: signalSenders, handler: handler)
    try await connection.connect(to: address)
    return connection
  }

  private func connect(to address: String) async throws(DBusError) {
    handle = try ConnectionHandle(address: address, byteSignals: byteSignals) {
      [weak self] in self?.receive($0)
    }
    do {
      let reply = try await callBus("Hello")
      guard let name = reply.first?.text else { throw DBusError.invalid("the reply to Hello has no name") }
      // The connection may have ended since the reply.
      guard let handle else { throw DBusError.disconnected }
      dbus_bus_set_unique_name(handle.raw, name)
    } catch {
      close()
      throw .unreachable(address: address, reason: "\(error)")
    }
  }

  /// Ends the connection; pending calls fail with ``DBusError/disconnected``. Harmless when repeated.
  public func close() {
    handle?.close()
    handle = nil
    let calls = inFlight.values + waiting
    inFlight = [:]
    late = [:]
    waiting = []
    for call in calls {
      call.timer?.cancel()
      call.done(.failure(.disconnected))
    }
  }

  // MARK: Calling

  /// Calls a method. `done` is called with the reply's arguments or an error, at the latest `timeout` after
  /// it is sent; up to 100 others may have to be answered first. At once if the call cannot be sent.
  /// - Parameter awaitsLateReply: whether `done` is called again if the reply arrives after the time-out.
  public func call(
    _ call: DBusCall, timeout: Duration, awaitsLateReply: Bool = false,
    _ done: @escaping @LoopActor (DBusAnswer) -> Void
  ) {
    do throws(DBusError) {
      let pending = PendingCall(
        message: try OutgoingMessage(call: call), timeout: timeout, awaitsLateReply: awaitsLateReply,
        done: done)
      if inFlight.count < Self.callsInFlight { send(pending) } else { waiting.append(pending) }
    } catch {
      done(.failure(error))
    }
  }

  /// Calls a method and waits for the reply, for at most `timeout`. Cancellation does not end the wait: the outcome of
  /// a call that was sent must be known.
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
    var sent = call
    sent.timer = loop.timer(after: call.timeout) { [weak self] in
      if call.awaitsLateReply { self?.awaitLateReply(to: serial, call) }
      self?.end(serial, .failure(.timedOut))
    }
    inFlight[serial] = sent
  }

  /// Of replies that never arrive, those to the oldest calls are no longer awaited.
  private func awaitLateReply(to serial: UInt32, _ call: PendingCall) {
    late[serial] = call
    if late.count > Self.callsInFlight, let oldest = late.keys.min() { late[oldest] = nil }
  }

  /// Completes a call.
  private func end(_ serial: UInt32, _ answer: @autoclosure () -> DBusAnswer) {
    guard let call = inFlight.removeValue(forKey: serial) else {
      late.removeValue(forKey: serial)?.done(answer())
      return
    }
    call.timer?.cancel()
    if let next = waiting.popFirst() { send(next) }
    // The slice keeps what it has removed until its memory is released.
    if waiting.isEmpty { waiting = [] }
    call.done(answer())
  }

  /// Calls a method of the bus itself.
  public func callBus(_ member: String, _ arguments: DBusValue...) async throws(DBusError) -> [DBusValue] {
    try await call(
      DBusCall(member, on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus, arguments),
      timeout: .seconds(10))
  }

  /// Subscribes to the signals that meet the conditions (D-Bus specification, "Match Rules"); returns when the bus has
  /// confirmed it.
  public func addMatch(_ conditions: KeyValuePairs<String, String>) async throws(DBusError) {
    let rule = "type='signal'" + conditions.map { ",\($0.key)='\($0.value)'" }.joined()
    _ = try await callBus("AddMatch", .string(rule))
  }

  // MARK: Serving

  /// Acquires the well-known name `name`, unless this connection has it; false if another one owns it.
  public func requestName(_ name: String) async throws(DBusError) -> Bool {
    let reply = try await callBus("RequestName", .string(name), .uint32(UInt32(DBUS_NAME_FLAG_DO_NOT_QUEUE)))
    let owned = [DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER, DBUS_REQUEST_NAME_REPLY_ALREADY_OWNER].map(Int.init)
    return reply.first?.integer.map(owned.contains) ?? false
  }

  /// Replies to a received call; sends nothing if the caller expects no reply.
  /// - Parameter answer: an error must be ``DBusError/remote(name:message:)``; another one is thrown.
  public func reply(to call: DBusCall, _ answer: DBusAnswer) throws(DBusError) {
    guard let serial = call.replySerial else { return }
    switch answer {
    case .success(let arguments):
      try send(OutgoingMessage(replyTo: serial, sender: call.sender, error: nil, arguments))
    case .failure(.remote(let name, let text)):
      try send(OutgoingMessage(replyTo: serial, sender: call.sender, error: name, [.string(text)]))
    case .failure(let error): throw error
    }
  }

  /// Sends `signal` to all connections that subscribed to it.
  /// - Throws: ``DBusError/disconnected``; ``DBusError/invalid(_:)``.
  public func emit(_ signal: DBusSignal) throws(DBusError) {
    try send(OutgoingMessage(signal: signal))
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
      let name = message.errorName
      end(
        message.answeredSerial, .failure(.remote(name: name, message: message.arguments.first?.text ?? "")))
      // The bus counts the calls that were never answered; for a new connection it starts at zero.
      if name == DBusName.Failure.limitsExceeded { lost(.tooManyCalls) }
    case DBUS_MESSAGE_TYPE_METHOD_CALL:
      handler(.call(DBusCall(message)))
    case DBUS_MESSAGE_TYPE_SIGNAL:
      if let signalSenders, let sender = message.sender, sender != DBusName.bus,
        !signalSenders.contains(sender)
      {
        return
      }
      let signal = DBusSignal(message)
      if signal.interface == DBusName.local, signal.member == "Disconnected", signal.sender == nil {
        lost(.disconnected)
      } else {
        handler(.signal(signal))
      }
    default:
      break
    }
  }

  private func lost(_ error: DBusError) {
    guard handle != nil else { return }
    close()
    handler(.disconnected(error))
  }
}
