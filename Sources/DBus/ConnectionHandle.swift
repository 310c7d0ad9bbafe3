import CDBus
import EventLoop
import Glibc

/// Owns a libdbus connection: reads and sends its messages on the loop, and closes it.
///
/// libdbus has two watches for the connection's descriptor (one to read, one to write); `epoll` allows one
/// registration, so they are merged here. Replies are received like all other messages, and ``DBusConnection`` matches
/// them to calls and limits their time: libdbus's own `DBusPendingCall` would allocate the time-out error in advance
/// for every call.
@LoopActor final class ConnectionHandle {
  let raw: OpaquePointer
  private let byteSignals: ByteSignals?
  private let receive: @LoopActor (IncomingMessage) -> Void
  /// libdbus's watches.
  private var members: [OpaquePointer] = []
  /// The loop's watch, for all of ``members``.
  private var watch: Watch?
  /// Whether received messages wait.
  private var hasMessages = false
  /// Messages are being read from the socket, and dispatched afterwards.
  private var isReading = false
  private var closed = false

  /// Connects, without the `Hello` that a bus expects first.
  /// - Parameter receive: called with each message that `byteSignals` does not deliver.
  /// - Throws: ``DBusError/unreachable(address:reason:)``.
  init(
    address: String, byteSignals: ByteSignals?,
    receive: @escaping @LoopActor (IncomingMessage) -> Void
  ) throws(DBusError) {
    var error = CDBus.DBusError()
    dbus_error_init(&error)
    guard let raw = dbus_connection_open_private(address, &error) else {
      var reason = error.message.map(String.init(cString:)) ?? "out of memory"
      // "Failed to connect to socket PATH: No such file or directory": the address contains the path.
      if reason.hasPrefix("Failed to connect to socket "), let colon = reason.lastIndex(of: ":") {
        reason = String(reason[colon...].dropFirst(2))
      }
      dbus_error_free(&error)
      throw .unreachable(address: address, reason: reason)
    }
    self.raw = raw
    self.byteSignals = byteSignals
    self.receive = receive
    dbus_connection_set_exit_on_disconnect(raw, 0)
    Self.setCallbacks(of: raw, self)
  }

  /// Sets the callbacks of libdbus. Not isolated: the compiler would let each of them search for the current executor.
  private nonisolated static func setCallbacks(of raw: OpaquePointer, _ handle: ConnectionHandle) {
    // Unretained: `close` removes the callbacks before the object is released.
    let handle = Unmanaged.passUnretained(handle).toOpaque()
    dbus_connection_set_watch_functions(
      raw,
      { watch, handle in
        ConnectionHandle.enter(handle, watch) { $0.add($1!) }
        return 1
      },
      { watch, handle in ConnectionHandle.enter(handle, watch) { $0.remove($1!) } },
      { _, handle in ConnectionHandle.enter(handle, nil) { handle, _ in handle.update() } },
      handle, nil)
    // Messages may be queued other than by a readable socket, for example by a blocking flush.
    dbus_connection_set_dispatch_status_function(
      raw,
      { _, status, handle in
        ConnectionHandle.enter(handle, nil) { handle, _ in
          handle.hasMessages = status != DBUS_DISPATCH_COMPLETE
          if handle.hasMessages, !handle.isReading { loop.timer(after: .zero) { handle.dispatch() } }
        }
      }, handle, nil)
  }

  private nonisolated static func enter(
    _ raw: UnsafeMutableRawPointer?, _ watch: OpaquePointer?,
    _ body: @LoopActor (ConnectionHandle, OpaquePointer?) -> Void
  ) {
    let handle = Unmanaged<ConnectionHandle>.fromOpaque(raw!).takeUnretainedValue()
    // A number, as pointers may not be handed over to an isolation.
    let watch = UInt(bitPattern: watch)
    LoopActor.enter { body(handle, OpaquePointer(bitPattern: watch)) }
  }

  /// Ends the connection; to be called before the object is released. The message that is being dispatched stays valid.
  func close() {
    guard !closed else { return }
    closed = true
    dbus_connection_set_dispatch_status_function(raw, nil, nil, nil)
    // Removes the watches.
    dbus_connection_set_watch_functions(raw, nil, nil, nil, nil, nil)
    dbus_connection_close(raw)
    // Drop received messages.
    while let message = dbus_connection_pop_message(raw) { dbus_message_unref(message) }
    dbus_connection_unref(raw)
  }

  // MARK: Dispatching

  /// Passes on all received messages. `dbus_connection_dispatch` is not used, as it costs more than all processing here.
  func dispatch() {
    while hasMessages, !closed, let message = dbus_connection_pop_message(raw) {
      let received = IncomingMessage(raw: message)
      if byteSignals?.deliver(received) != true { receive(received) }
      dbus_message_unref(message)
    }
  }

  // MARK: Sending

  /// Sends `message`; returns its serial number, or nil if out of memory.
  func send(_ message: OutgoingMessage) -> UInt32? {
    var serial: UInt32 = 0
    return dbus_connection_send(raw, message.raw, &serial) != 0 ? serial : nil
  }

  // MARK: Watches

  private func add(_ member: OpaquePointer) {
    members.append(member)
    update()
  }

  private func remove(_ member: OpaquePointer) {
    members.removeAll { $0 == member }
    update()
  }

  private func update() {
    guard let first = members.first else {
      watch?.cancel()
      watch = nil
      return
    }
    var interest: Readiness = []
    for member in members where dbus_watch_get_enabled(member) != 0 {
      let flags = dbus_watch_get_flags(member)
      if flags & DBUS_WATCH_READABLE.rawValue != 0 { interest.insert(.readable) }
      if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { interest.insert(.writable) }
    }
    if let watch {
      watch.interest = interest
    } else {
      // Unowned: `close` cancels it.
      watch = loop.watch(dbus_watch_get_unix_fd(first), for: interest) { [unowned self] in ready($0) }
    }
  }

  private func ready(_ readiness: Readiness) {
    isReading = true
    // A copy: handling a watch may change the list.
    for member in members where members.contains(member) && dbus_watch_get_enabled(member) != 0 {
      var flags: UInt32 = 0
      if readiness.contains(.readable) { flags |= DBUS_WATCH_READABLE.rawValue }
      if readiness.contains(.writable) { flags |= DBUS_WATCH_WRITABLE.rawValue }
      flags &= dbus_watch_get_flags(member)
      if !readiness.isDisjoint(with: .closed) { flags |= DBUS_WATCH_HANGUP.rawValue }
      if flags != 0 { dbus_watch_handle(member, flags) }
    }
    isReading = false
    dispatch()
  }
}
