import DBus
import EventLoop
import GATT

extension Central {
  /// Reads the value of a characteristic.
  public func read(_ characteristic: Characteristic) async throws(CentralError) -> [UInt8] {
    try Self.bytes(try await operate(.read, on: characteristic))
  }

  /// Writes the value of a characteristic, waits for the peripheral's response, and reads the value back.
  ///
  /// Both are asked for at once: bluetoothd hands them to the peripheral in this order, one after the other (Core
  /// Specification Vol 3, Part F, 3.3.2), and it is a connection interval quicker. Counted is only what is answered
  /// after the write, and is what was written. Anything else may be older than the write (bluetoothd lets a read join
  /// another program's, and a link may have several bearers): the value is read once more.
  ///
  /// - Returns: what was read back, or why that failed; the value is written all the same.
  /// - Throws: when the value was not written, or may not have been.
  @discardableResult
  public func write(
    _ bytes: [UInt8], to characteristic: Characteristic
  ) async throws(CentralError) -> Result<[UInt8], CentralError> {
    let both = await exchange([.write(bytes, withResponse: true), .read], on: characteristic)
    _ = try both[0].get()
    switch both[1] {
    case .success(let reply) where both.isInOrder && reply.first?.byteArray == bytes: return .success(bytes)
    case .failure(.timedOut(let text)): return .failure(.timedOut(text))
    case .success, .failure: break
    }
    return await result(of: characteristic)
  }

  /// Writes the value of a characteristic, and reads nothing back.
  ///
  /// - Parameter withResponse: whether the peripheral acknowledges it; without, it is over when bluetoothd has it.
  public func send(
    _ bytes: [UInt8], to characteristic: Characteristic, withResponse: Bool
  ) async throws(CentralError) {
    _ = try await operate(.write(bytes, withResponse: withResponse), on: characteristic)
  }

  private static func bytes(_ reply: [DBusValue]) throws(CentralError) -> [UInt8] {
    guard let bytes = reply.first?.byteArray else { throw .transient("ReadValue brought no bytes") }
    return bytes
  }

  /// From now on `handler` gets, on the loop, each value that the peripheral notifies, until the link ends.
  ///
  /// - Parameter method: how the notifications come; nil: as the central was told.
  /// - Throws: ``CentralError/notifyAcquired`` when bluetoothd gives the notifications to nobody else: ``poll`` then.
  public func subscribe(
    to characteristic: Characteristic, by method: NotificationMethod? = nil,
    _ handler: @escaping @Sendable ([UInt8]) -> Void
  ) async throws(CentralError) {
    if (method ?? notifications) == .socket, try await acquire(characteristic, handler) { return }
    guard let link = links[characteristic.peripheral] else { throw .disconnected }
    link.listen(to: characteristic, handler)
    do throws(CentralError) {
      _ = try await operate(.startNotify, on: characteristic)
    } catch {
      link.stopListening(to: characteristic)
      throw error
    }
  }

  /// Takes the notifications by a socket; false where bluetoothd does not grant one.
  ///
  /// bluetoothd before 5.84 never answers AcquireNotify, and refuses all notifications from then on, when its first
  /// write of the client configuration fails. So that write is tried by StartNotify first, which fails properly.
  private func acquire(
    _ characteristic: Characteristic, _ handler: @escaping @Sendable ([UInt8]) -> Void
  ) async throws(CentralError) -> Bool {
    _ = try await operate(.startNotify, on: characteristic)
    do throws(CentralError) {
      _ = try await operate(.stopNotify, on: characteristic)
      // Not tried again when bluetoothd is busy with it: then another program takes them by signals.
      let reply = try await operate(.acquireNotify, on: characteristic, pauses: [])
      guard let descriptor = reply.first?.descriptor else {
        throw .transient("AcquireNotify brought no socket")
      }
      guard let link = links[characteristic.peripheral] else { throw .disconnected }
      link.add(
        NotificationStream(
          descriptor, loop: loop,
          onEnd: { [weak self] in self?.assumeIsolated { $0.streamEnded(characteristic, link) } }, handler))
      return true
    } catch {
      switch error {
      case .disconnected, .gone, .unavailable, .timedOut: throw error
      case .refused, .transient, .busy, .unlikely, .notifyAcquired: break
      }
      log.debug("no socket for notifications: taking signals", ["error": error])
      return false
    }
  }

  /// Reads the value again and again: for what cannot be subscribed to. Now and then it is tried to subscribe all the
  /// same, as the program that has the notifications may let them go.
  ///
  /// - Parameters:
  ///   - pause: asked before each read for the time until then.
  ///   - handler: gets each value, or why it could not be read.
  /// - Returns: true when it is subscribed to, and `handler` gets what is notified; false when the link has ended.
  public func poll(
    _ characteristic: Characteristic, every pause: @Sendable () -> Duration,
    _ handler: @escaping @Sendable (Result<[UInt8], CentralError>) -> Void
  ) async -> Bool {
    guard let link = links[characteristic.peripheral] else { return false }
    var nextTry = Moment.now + limits.notifyRetry
    while true {
      try? await loop.sleep(for: pause())
      if link.hasEnded || !tree.contains(characteristic) { return false }
      if nextTry <= .now {
        nextTry = .now + limits.notifyRetry
        do throws(CentralError) {
          try await subscribe(to: characteristic) { handler(.success($0)) }
          return true
        } catch {
          log.debug("no notifications yet", ["error": error])
        }
      }
      let result = await result(of: characteristic)
      if link.hasEnded { return false }
      handler(result)
    }
  }

  /// Reads the value every `interval`, until the link ends.
  public func poll(
    _ characteristic: Characteristic, every interval: Duration,
    _ handler: @escaping @Sendable (Result<[UInt8], CentralError>) -> Void
  ) async {
    guard let link = links[characteristic.peripheral] else { return }
    while true {
      try? await loop.sleep(for: interval)
      if link.hasEnded || !tree.contains(characteristic) { return }
      let result = await result(of: characteristic)
      if link.hasEnded { return }
      handler(result)
    }
  }

  private func result(of characteristic: Characteristic) async -> Result<[UInt8], CentralError> {
    do throws(CentralError) {
      return .success(try await read(characteristic))
    } catch {
      return .failure(error)
    }
  }

  /// Mostly the link has ended, and the news of it follow. A link that stays has lost what it is there for.
  private func streamEnded(_ characteristic: Characteristic, _ link: Link) {
    loop.task(of: self) { central in
      if await central.wait(
        central.limits.settle, until: { link.hasEnded || !$0.tree.contains(characteristic) })
      {
        return
      }
      central.log.notice("bluetoothd has ended the notifications: ending the link")
      await central.disconnect(characteristic.peripheral)
    }
  }

  /// One operation by itself.
  private func operate(
    _ operation: Operation, on characteristic: Characteristic, pauses: [Duration]? = nil
  ) async throws(CentralError) -> [DBusValue] {
    try await exchange([operation], on: characteristic, pauses: pauses)[0].get()
  }

  /// Operations on a link: in their turn, again when bluetoothd is busy, and over when the link is.
  private func exchange(
    _ operations: [Operation], on characteristic: Characteristic, pauses: [Duration]? = nil
  ) async -> Exchange {
    guard let link = links[characteristic.peripheral] else { return .disconnected(of: operations.count) }
    await link.turn.take()
    let exchange = await repeatWhileBusy(
      operations, on: characteristic, over: link, pauses: pauses ?? limits.inProgress)
    link.turn.pass()
    if exchange.isUnlikely, await wait(limits.linkLoss, until: { _ in link.hasEnded }) {
      exchange.linkHasEnded()
    }
    return exchange
  }

  private func repeatWhileBusy(
    _ operations: [Operation], on characteristic: Characteristic, over link: Link, pauses: [Duration]
  ) async -> Exchange {
    for pause in pauses {
      let exchange = await once(operations, on: characteristic, over: link)
      guard case .failure(.busy) = exchange[0] else { return exchange }
      try? await loop.sleep(for: pause)
    }
    return await once(operations, on: characteristic, over: link)
  }

  /// One call for each; all end with the link at the latest, as bluetoothd never answers for a device that is gone.
  private func once(
    _ operations: [Operation], on characteristic: Characteristic, over link: Link
  ) async -> Exchange {
    await withCheckedContinuation { continuation in
      let exchange = Exchange(of: operations.count) { continuation.resume(returning: $0) }
      // It may have ended while the turn was waited for. Another link to the same peripheral is none of ours.
      guard !link.hasEnded else { return exchange.end() }
      link.begin(exchange, on: characteristic)
      for (index, operation) in operations.enumerated() {
        link.unanswered += 1
        call(
          operation.method, on: BlueZName.characteristic, of: characteristic.path, operation.arguments,
          // One follows the other on the air.
          timeout: limits.operation * (index + 1)
        ) { answer in
          if case .failure(.timedOut) = answer {} else { link.unanswered -= 1 }
          exchange.answer(index, answer)
        }
      }
    }
  }
}

/// A method of `org.bluez.GattCharacteristic1`, and its arguments.
private struct Operation {
  let method: String
  let arguments: [DBusValue]

  static let read = Operation(method: "ReadValue", arguments: [.properties([:])])
  static let acquireNotify = Operation(method: "AcquireNotify", arguments: [.properties([:])])
  static let startNotify = Operation(method: "StartNotify", arguments: [])
  static let stopNotify = Operation(method: "StopNotify", arguments: [])

  static func write(_ bytes: [UInt8], withResponse: Bool) -> Operation {
    let type = DBusValue.string(withResponse ? "request" : "command")
    return Operation(method: "WriteValue", arguments: [.bytes(bytes), .properties(["type": type])])
  }
}
