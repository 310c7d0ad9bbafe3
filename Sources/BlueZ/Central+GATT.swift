import DBus
import EventLoop

extension Central {
  /// Reads the value of a characteristic.
  public func read(_ characteristic: Characteristic) async throws(CentralError) -> [UInt8] {
    let reply = try await operate("ReadValue", on: characteristic, [.properties([:])])
    guard let bytes = reply.first?.byteArray else { throw .transient("ReadValue brought no bytes") }
    return bytes
  }

  /// Writes the value of a characteristic and waits for the peripheral's response.
  public func write(_ bytes: [UInt8], to characteristic: Characteristic) async throws(CentralError) {
    _ = try await operate(
      "WriteValue", on: characteristic,
      [.bytes(bytes), .properties(["type": .string("request")])])
  }

  /// From now on `handler` gets, on the loop, each value that the peripheral notifies, until the link ends.
  ///
  /// By a socket of its own where bluetoothd grants one; where somebody has it already, by signals.
  public func subscribe(
    to characteristic: Characteristic, _ handler: @escaping @Sendable ([UInt8]) -> Void
  ) async throws(CentralError) {
    do throws(CentralError) {
      // Not tried again when bluetoothd is busy with it: then somebody else has the socket, or is getting it.
      let reply = try await operate("AcquireNotify", on: characteristic, [.properties([:])], pauses: [])
      guard let descriptor = reply.first?.descriptor else {
        throw .transient("AcquireNotify brought no socket")
      }
      guard let link = links[characteristic.peripheral] else { throw .disconnected }
      let id = characteristic.peripheral
      link.add(
        NotificationStream(
          descriptor, loop: loop, onEnd: { [weak self] in self?.assumeIsolated { $0.streamEnded(id, link) } },
          handler))
    } catch {
      switch error {
      case .disconnected, .gone, .unavailable, .timedOut: throw error
      case .refused, .transient, .busy, .unlikely: break
      }
      log.debug("no socket for notifications: taking signals", ["error": error])
      guard let link = links[characteristic.peripheral] else { throw .disconnected }
      link.listen(to: characteristic.path, handler)
      try await hearValues()
      _ = try await operate("StartNotify", on: characteristic, [])
    }
  }

  /// Mostly the link has ended, and the news of it follow. A link that stays has lost what it is there for.
  private func streamEnded(_ id: PeripheralID, _ link: Link) {
    loop.task(of: self) { central in
      if await central.wait(central.limits.settle, until: { _ in link.hasEnded }) { return }
      central.log.notice("bluetoothd has ended the notifications: ending the link")
      await central.disconnect(id)
    }
  }

  /// One operation on a link: in its turn, again when bluetoothd is busy, and over when the link is.
  private func operate(
    _ member: String, on characteristic: Characteristic, _ arguments: [DBusValue],
    pauses: [Duration]? = nil
  ) async throws(CentralError) -> [DBusValue] {
    guard let link = links[characteristic.peripheral] else { throw .disconnected }
    await link.turn.take()
    let result = await repeatWhileBusy(
      member, on: characteristic, arguments, over: link, pauses: pauses ?? limits.inProgress)
    link.turn.pass()
    if case .failure(.unlikely) = result, await wait(limits.linkLoss, until: { _ in link.hasEnded }) {
      throw .disconnected
    }
    return try result.get()
  }

  private func repeatWhileBusy(
    _ member: String, on characteristic: Characteristic, _ arguments: [DBusValue], over link: Link,
    pauses: [Duration]
  ) async -> Link.OperationResult {
    for pause in pauses {
      let result = await once(member, on: characteristic, arguments, over: link)
      guard case .failure(.busy) = result else { return result }
      try? await loop.sleep(for: pause)
    }
    return await once(member, on: characteristic, arguments, over: link)
  }

  /// One call; it ends with the link at the latest, as bluetoothd never answers for a device that is gone.
  private func once(
    _ member: String, on characteristic: Characteristic, _ arguments: [DBusValue], over link: Link
  ) async -> Link.OperationResult {
    await withCheckedContinuation { continuation in
      // It may have ended while the turn was waited for. Another link to the same peripheral is none of ours.
      guard !link.hasEnded else { return continuation.resume(returning: .failure(.disconnected)) }
      link.begin { continuation.resume(returning: $0) }
      call(
        member, on: BlueZName.characteristic, of: characteristic.path, arguments, timeout: limits.operation
      ) { link.finish($0) }
    }
  }
}
