import DBus
import EventLoop

extension DBusCall {
  /// A call of bluetoothd.
  init(_ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = []) {
    self.init(member, on: interface, of: path, at: BlueZName.busName, arguments)
  }
}

extension Central {
  /// The bus; nil while bluetoothd is not running.
  private var bus: DBusConnection? { bluetoothd?.callable }

  /// Calls bluetoothd; `done` is called with the answer, at once if bluetoothd is not running.
  /// - Parameter timeout: nil: that of a call which bluetoothd answers without the peripheral.
  func call(
    _ call: DBusCall, timeout: Duration? = nil, _ done: @escaping @LoopActor (DBusAnswer) -> Void
  ) {
    guard let bus else { return done(.failure(.disconnected)) }
    bus.call(call, timeout: timeout ?? limits.local, done)
  }

  /// Calls bluetoothd and waits for the answer. A failure is only logged.
  func callIgnoringFailure(_ call: DBusCall, timeout: Duration? = nil) async {
    do throws(CentralError) {
      try await self.call(call, timeout: timeout)
    } catch {
      log.debug(call.member, ["error": error])
    }
  }

  /// Calls bluetoothd and waits for the answer.
  @discardableResult
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
    try await call(
      DBusCall("Get", on: DBusName.properties, of: path, [.string(interface), .string(property)])
    ).first
  }

  /// Replies to a call of bluetoothd.
  func reply(to call: DBusCall, _ answer: DBusAnswer = .success([])) { try? bus?.reply(to: call, answer) }
}
