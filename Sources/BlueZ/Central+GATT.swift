import DBus
import EventLoop

extension Central {
  /// The descriptors of a characteristic.
  public func descriptors(of characteristic: Characteristic) -> [Descriptor] {
    tree.descriptors(of: characteristic)
  }

  /// Reads the value of a characteristic, or of a descriptor of it.
  public func read(
    _ characteristic: Characteristic, _ descriptor: Descriptor? = nil
  ) async -> Result<[UInt8], CentralError> {
    do throws(CentralError) {
      let reply = try await operate(.readValue(of: characteristic, descriptor), on: characteristic)
      guard let bytes = reply.first?.byteArray else { throw .transient("ReadValue returned no bytes") }
      return .success(bytes)
    } catch {
      return .failure(error)
    }
  }

  /// Writes the value of a characteristic with response, and reads it back.
  ///
  /// Both operations are requested at once, which saves a connection interval: bluetoothd sends them in this order, one
  /// after the other (Core Specification Vol 3, Part F, 3.3.2). The read-back counts only if it was answered after the
  /// write and returned the written value. Otherwise it may be older than the write (bluetoothd lets a read join
  /// another program's, and a link may have several bearers), and the value is read again, except after a time-out.
  ///
  /// - Returns: the value read back, or why the read failed; the write has succeeded in either case.
  /// - Throws: if the value was not written, or may not have been.
  @discardableResult
  public func writeAndReadBack(
    _ bytes: [UInt8], to characteristic: Characteristic
  ) async throws(CentralError) -> Result<[UInt8], CentralError> {
    let both = try await exchange(
      [.write(bytes, to: characteristic, withResponse: true), .readValue(of: characteristic)],
      on: characteristic)
    _ = try both[0].get()
    switch both[1] {
    case .success(let reply) where both.isInOrder && reply.first?.byteArray == bytes: return .success(bytes)
    case .failure(.timedOut(let text)): return .failure(.timedOut(text))
    case .success, .failure: return await read(characteristic)
    }
  }

  /// Writes the value of a characteristic without reading it back.
  ///
  /// - Parameter withResponse: whether to wait for the peripheral's response, or only until bluetoothd has the value.
  public func write(
    _ bytes: [UInt8], to characteristic: Characteristic, withResponse: Bool
  ) async throws(CentralError) {
    _ = try await operate(.write(bytes, to: characteristic, withResponse: withResponse), on: characteristic)
  }

  /// Subscribes to a characteristic: `handler` is called with each notified value until the link ends.
  ///
  /// Each read of the value is notified as well.
  /// - Throws: ``CentralError/notifyAcquired`` if another program has acquired the notifications: use
  ///   ``poll(_:every:subscribes:_:)`` then.
  public func subscribe(
    to characteristic: Characteristic, _ handler: @escaping @LoopActor ([UInt8]) -> Void
  ) async throws(CentralError) {
    guard let link = links[characteristic.peripheral] else { throw .disconnected }
    link.listen(to: characteristic, handler)
    // It was granted after the time-out of an earlier attempt.
    if link.isSubscribed(to: characteristic) { return }
    do throws(CentralError) {
      // `exchangeOnce` calls `subscribed` when bluetoothd agrees, even after the time-out.
      let start = DBusCall("StartNotify", on: BlueZName.characteristic, of: characteristic.path)
      _ = try await operate(start, on: characteristic)
    } catch {
      // Meanwhile it was granted to an earlier attempt.
      if link.isSubscribed(to: characteristic) { return }
      link.stopListening(to: characteristic)
      throw error
    }
  }

  /// bluetoothd has agreed to notify. If the link has ended meanwhile, it is withdrawn: bluetoothd would notify on the next link.
  private func subscribed(to characteristic: Characteristic, over link: Link) {
    link.subscribed(to: characteristic)
    if link.hasEnded { unsubscribe(link) }
  }

  /// Ends the notifications of a link. Values that bluetoothd signals before its answers are still delivered.
  func unsubscribe(_ link: Link) {
    for characteristic in link.endNotifications() where tree.contains(characteristic) {
      link.unsubscribing += 1
      call(DBusCall("StopNotify", on: BlueZName.characteristic, of: characteristic.path)) { [weak self] _ in
        link.unsubscribing -= 1
        self?.checkConditions()
      }
    }
  }

  /// Ends the notifications of every link, and waits until bluetoothd has answered: then every value that it has
  /// signalled is delivered. bluetoothd does so at once, long before it ends a link.
  public func unsubscribeAll(within limit: Duration) async {
    let used = links.peripherals.compactMap { links[$0] }
    for link in used { unsubscribe(link) }
    _ = await wait(limit) { used.allSatisfy { $0.hasEnded || $0.unsubscribing == 0 } }
  }

  /// Reads the value repeatedly.
  ///
  /// - Parameters:
  ///   - pause: returns the time to wait before the next read.
  ///   - subscribes: whether to try to subscribe from time to time: another program has acquired the notifications, and may
  ///     release them.
  ///   - handler: called with each value, or the reason why the read failed.
  /// - Returns: true once subscribed, when `handler` is called with notified values; false when the link has ended.
  @discardableResult
  public func poll(
    _ characteristic: Characteristic, every pause: @LoopActor () -> Duration, subscribes: Bool,
    _ handler: @escaping @LoopActor (Result<[UInt8], CentralError>) -> Void
  ) async -> Bool {
    var nextSubscription = Moment.now + limits.notifyRetry
    while let result = await read(characteristic, after: pause()) {
      handler(result)
      guard subscribes, nextSubscription <= .now else { continue }
      nextSubscription = .now + limits.notifyRetry
      do throws(CentralError) {
        try await subscribe(to: characteristic) { handler(.success($0)) }
        return true
      } catch {
        log.debug("notifications are still unavailable", ["error": error])
      }
    }
    return false
  }

  /// Reads the value after a pause; nil if the link or the characteristic is gone.
  private func read(
    _ characteristic: Characteristic, after pause: Duration
  ) async -> Result<[UInt8], CentralError>? {
    guard let link = links[characteristic.peripheral] else { return nil }
    // Ends with the link: the pause may be days long.
    if await wait(pause, until: { link.hasEnded || !self.tree.contains(characteristic) }) { return nil }
    let result = await read(characteristic)
    return link.hasEnded ? nil : result
  }

  /// A single operation.
  private func operate(
    _ operation: DBusCall, on characteristic: Characteristic
  ) async throws(CentralError) -> [DBusValue] {
    try await exchange([operation], on: characteristic)[0].get()
  }

  /// Performs operations on a link, one exchange at a time; retries them while bluetoothd is busy.
  /// - Throws: if they cannot be requested.
  private func exchange(
    _ operations: [DBusCall], on characteristic: Characteristic
  ) async throws(CentralError) -> Exchange {
    let isWrite = operations.contains { $0.member == "WriteValue" }
    if isWrite, characteristic.isFirmwareUpdate {
      throw .refused("\(characteristic.uuid) replaces the peripheral's firmware: never written")
    }
    guard let link = links[characteristic.peripheral] else { throw .disconnected }
    // A write goes before reads that wait.
    await link.mutex.lock(isPreferred: isWrite)
    var exchange = await exchangeOnce(operations, on: characteristic, over: link)
    var backOff = limits.busyBackOff
    for _ in 0..<limits.busyRetries {
      guard case .failure(.busy) = exchange[0] else { break }
      try? await loop.sleep(for: backOff.next())
      exchange = await exchangeOnce(operations, on: characteristic, over: link)
    }
    link.mutex.unlock()
    if exchange.hasUnlikelyError, await wait(limits.linkLoss, until: { link.hasEnded }) {
      exchange.linkHasEnded()
    }
    return exchange
  }

  /// Calls a method for each operation. All end with the link, as bluetoothd never answers for a device that is gone.
  private func exchangeOnce(
    _ operations: [DBusCall], on characteristic: Characteristic, over link: Link
  ) async -> Exchange {
    await withCheckedContinuation { continuation in
      let exchange = Exchange(of: operations.count, on: characteristic, over: link) {
        continuation.resume(returning: $0)
      }
      // The link may have ended while the lock was awaited, and a new link is not meant.
      guard !link.hasEnded else { return exchange.end() }
      guard let bus = bluetoothd?.callable else { return exchange.end(.unavailable) }
      guard tree.contains(characteristic) else { return exchange.end(.characteristicRemoved) }
      link.begin(exchange)
      for (index, operation) in operations.enumerated() {
        // The operations run one after the other.
        bus.call(operation, timeout: limits.operation * (index + 1), awaitsLateReply: true) {
          [weak self] answer in
          if operation.member == "StartNotify", case .success = answer {
            self?.subscribed(to: characteristic, over: link)
          }
          exchange.answer(
            index,
            answer.mapError {
              let error = CentralError($0, during: operation.member)
              // The peripheral itself is there.
              return error == .gone && self?.isConnected(characteristic.peripheral) == true
                ? .characteristicRemoved : error
            })
        }
      }
    }
  }
}

extension DBusCall {
  fileprivate static func readValue(of characteristic: Characteristic, _ descriptor: Descriptor? = nil)
    -> Self
  {
    DBusCall(
      "ReadValue", on: descriptor == nil ? BlueZName.characteristic : BlueZName.descriptor,
      of: descriptor?.path ?? characteristic.path, [.properties([:])])
  }

  fileprivate static func write(
    _ bytes: [UInt8], to characteristic: Characteristic, withResponse: Bool
  ) -> Self {
    DBusCall(
      "WriteValue", on: BlueZName.characteristic, of: characteristic.path,
      [.bytes(bytes), .properties(["type": .string(withResponse ? "request" : "command")])])
  }
}
