import DBus

/// The central's calls, which fail without a connection.
extension Central {
  /// Calls a method of bluetoothd; `done` gets the answer, an error as D-Bus has it.
  func request(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue], timeout: Duration,
    _ done: @escaping @Sendable (DBusAnswer) -> Void
  ) {
    guard let bluetoothd else { return done(.failure(.disconnected)) }
    bluetoothd.assumeIsolated { $0.call(member, on: interface, of: path, arguments, timeout: timeout, done) }
  }

  /// Calls a method of bluetoothd; `done` gets the answer, an error as a ``CentralError``.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue], timeout: Duration,
    _ done: @escaping @Sendable (Result<[DBusValue], CentralError>) -> Void
  ) {
    request(member, on: interface, of: path, arguments, timeout: timeout) { answer in
      switch answer {
      case .success(let arguments): done(.success(arguments))
      case .failure(let error): done(.failure(CentralError(error, during: member)))
      }
    }
  }

  /// Calls a method of bluetoothd and waits for the answer.
  func call(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    timeout: Duration
  ) async throws(CentralError) -> [DBusValue] {
    try await withCheckedContinuation { continuation in
      call(member, on: interface, of: path, arguments, timeout: timeout) {
        continuation.resume(returning: $0)
      }
    }.get()
  }

  /// Replies to a call of bluetoothd.
  func reply(to call: DBusCall, _ arguments: [DBusValue] = []) {
    bluetoothd?.assumeIsolated { $0.reply(to: call, arguments) }
  }

  /// Replies to a call with an error.
  func reply(to call: DBusCall, error name: String, _ text: String) {
    bluetoothd?.assumeIsolated { $0.reply(to: call, error: name, text) }
  }
}
