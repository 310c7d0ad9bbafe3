import DBus
import EventLoop

extension Central {
  /// The bus; nil while bluetoothd is not running.
  private var bus: DBusConnection? { bluetoothd?.callable }

  /// Calls a method of bluetoothd; `done` is called with the answer, at once if bluetoothd is not running.
  /// - Parameter timeout: nil: that of a call which bluetoothd answers without the peripheral.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration? = nil, _ done: @escaping @LoopActor (DBusAnswer) -> Void
  ) {
    guard let bus else { return done(.failure(.disconnected)) }
    let call = DBusCall(member, on: interface, of: path, at: BlueZName.busName, arguments)
    bus.call(call, timeout: timeout ?? limits.local, done)
  }

  /// Calls a method of bluetoothd and waits for the answer.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration? = nil
  ) async throws(CentralError) -> [DBusValue] {
    try await call(
      DBusCall(member, on: interface, of: path, at: BlueZName.busName, arguments), timeout: timeout)
  }

  /// Calls a method of bluetoothd and waits for the answer. A failure is only logged.
  func callIgnoringFailure(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration? = nil
  ) async {
    do throws(CentralError) {
      _ = try await call(member, on: interface, of: path, arguments, timeout: timeout)
    } catch {
      log.debug("\(member)", ["error": error])
    }
  }

  /// Calls bluetoothd and waits for the answer.
  func call(_ call: DBusCall, timeout: Duration? = nil) async throws(CentralError) -> [DBusValue] {
    do throws(DBusError) {
      guard let bus else { throw .disconnected }
      return try await bus.call(call, timeout: timeout ?? limits.local)
    } catch {
      throw CentralError(error, during: call.member)
    }
  }

  /// The value of a property of an object of bluetoothd.
  func get(_ property: String, on interface: String, of path: String) async throws(CentralError) -> DBusValue?
  {
    try await call(.get(property, on: interface, of: path, at: BlueZName.busName)).first
  }

  /// Replies to a call of bluetoothd.
  func reply(to call: DBusCall, _ answer: DBusAnswer = .success([])) { try? bus?.reply(to: call, answer) }
}
