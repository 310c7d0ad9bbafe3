import CDBus
import EventLoop
import Glibc

/// The owner of a libdbus connection: its watches on the loop, its dispatching, its end.
///
/// libdbus reports a descriptor as two watches (one to read, one to write); `epoll` wants one
/// registration, so they are joined here. Which reply belongs to which call is the connection's actor's business, and
/// so is a call's time: libdbus's own `DBusPendingCall` makes the error of a time-out beforehand, with every call. So
/// no `DBusTimeout` ever exists.
final class ConnectionHandle: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone; the loop checks that at each watch.

  let raw: OpaquePointer
  private let loop: EventLoop
  private let receive: @Sendable (IncomingMessage) -> Void
  private var watches: [Int32: Joined] = [:]
  private var dispatching = false
  /// Messages are read from the socket, and dispatched after that.
  private var isReading = false
  private var closing = false
  private var closed = false

  /// The watches of one descriptor.
  private struct Joined {
    var members: [OpaquePointer] = []
    var watch: Watch?
  }

  /// Connects, without the greeting (`Hello`) that a bus wants first.
  /// - Throws: ``DBusError/unreachable(address:reason:)``.
  init(
    address: String, loop: EventLoop, receive: @escaping @Sendable (IncomingMessage) -> Void
  ) throws(DBusError) {
    var error = CDBus.DBusError()
    dbus_error_init(&error)
    guard let raw = dbus_connection_open_private(address, &error) else {
      let reason = error.message.map(String.init(cString:)) ?? "out of memory"
      dbus_error_free(&error)
      throw .unreachable(address: address, reason: reason)
    }
    self.raw = raw
    self.loop = loop
    self.receive = receive
    dbus_connection_set_exit_on_disconnect(raw, 0)
    // Unretained: `close` takes both callbacks out again before this object can go.
    let me = Unmanaged.passUnretained(self).toOpaque()
    dbus_connection_set_watch_functions(
      raw,
      { watch, me in
        ConnectionHandle.from(me).add(watch!)
        return 1
      },
      { watch, me in ConnectionHandle.from(me).remove(watch!) },
      { watch, me in ConnectionHandle.from(me).update(dbus_watch_get_unix_fd(watch)) },
      me, nil)
    // Messages may be queued by something other than a readable socket, by a blocking flush for one.
    dbus_connection_set_dispatch_status_function(
      raw,
      { _, status, me in
        let handle = ConnectionHandle.from(me)
        guard status == DBUS_DISPATCH_DATA_REMAINS, !handle.isReading else { return }
        handle.loop.timer(after: .zero) { handle.dispatch() }
      }, me, nil)
  }

  /// Ends the connection; its owner must call it before letting go. While a message is being dispatched it waits until that is done.
  func close() {
    guard !closed else { return }
    if dispatching {
      closing = true
      return
    }
    closed = true
    dbus_connection_set_dispatch_status_function(raw, nil, nil, nil)
    dbus_connection_set_watch_functions(raw, nil, nil, nil, nil, nil)
    for joined in watches.values { joined.watch?.cancel() }
    watches.removeAll()
    dbus_connection_close(raw)
    // What has arrived is let go here, unseen.
    while let message = dbus_connection_pop_message(raw) { dbus_message_unref(message) }
    dbus_connection_unref(raw)
  }

  private static func from(_ raw: UnsafeMutableRawPointer?) -> ConnectionHandle {
    Unmanaged<ConnectionHandle>.fromOpaque(raw!).takeUnretainedValue()
  }

  // MARK: Dispatching

  /// Handles what has arrived, until nothing remains. Taken from the queue one by one, as libdbus's own dispatching
  /// costs more than all that is done with a message here.
  func dispatch() {
    guard !dispatching, !closed else { return }
    dispatching = true
    while !closing, let message = dbus_connection_pop_message(raw) {
      receive(IncomingMessage(raw: message))
      dbus_message_unref(message)
    }
    dispatching = false
    if closing { close() }
  }

  // MARK: Sending

  /// Sends `message`; returns its serial number, or nil when there is no memory for it.
  func send(_ message: OutgoingMessage) -> UInt32? {
    var serial: UInt32 = 0
    return dbus_connection_send(raw, message.raw, &serial) != 0 ? serial : nil
  }

  // MARK: Watches

  private func add(_ watch: OpaquePointer) {
    let fd = dbus_watch_get_unix_fd(watch)
    watches[fd, default: Joined()].members.append(watch)
    update(fd)
  }

  private func remove(_ watch: OpaquePointer) {
    let fd = dbus_watch_get_unix_fd(watch)
    watches[fd]?.members.removeAll { $0 == watch }
    update(fd)
  }

  private func update(_ fd: Int32) {
    guard var joined = watches[fd] else { return }
    var interest: Readiness = []
    for watch in joined.members where dbus_watch_get_enabled(watch) != 0 {
      let flags = dbus_watch_get_flags(watch)
      if flags & DBUS_WATCH_READABLE.rawValue != 0 { interest.insert(.readable) }
      if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { interest.insert(.writable) }
    }
    if joined.members.isEmpty {
      joined.watch?.cancel()
      watches[fd] = nil
      return
    }
    if let watch = joined.watch {
      watch.interest = interest
    } else {
      joined.watch = loop.watch(fd, for: interest) { [weak self] in self?.ready(fd, $0) }
    }
    watches[fd] = joined
  }

  private func ready(_ fd: Int32, _ readiness: Readiness) {
    isReading = true
    // A copy: handling a watch may change the list.
    for watch in watches[fd]?.members ?? [] {
      guard watches[fd]?.members.contains(watch) == true, dbus_watch_get_enabled(watch) != 0 else {
        continue
      }
      var flags: UInt32 = 0
      if readiness.contains(.readable) { flags |= DBUS_WATCH_READABLE.rawValue }
      if readiness.contains(.writable) { flags |= DBUS_WATCH_WRITABLE.rawValue }
      flags &= dbus_watch_get_flags(watch)
      if !readiness.isDisjoint(with: .closed) { flags |= DBUS_WATCH_HANGUP.rawValue }
      if flags != 0 { dbus_watch_handle(watch, flags) }
    }
    isReading = false
    dispatch()
  }
}
