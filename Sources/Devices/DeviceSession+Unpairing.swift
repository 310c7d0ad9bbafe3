import BlueZ
import EventLoop

/// A device may have a bond that its session has no use for.
extension DeviceSession {
  /// Deletes the bonds of all adapters. A request that arrives meanwhile gets the same answer.
  func unpair(reply: @escaping UnpairingReply) {
    if !unpairing.isEmpty { return unpairing.append(reply) }
    if !context.scheduler.hasLink(device) { adapters.chooseBonded() }
    guard !adapters.peripherals.isEmpty || adapters.isPaired else {
      // What bluetoothd does not know is not paired, unless bluetoothd cannot be asked.
      let isAsked = context.centrals.allSatisfy(\.state.isOn)
      return reply(isAsked ? .success(()) : .failure(RequestError("\(CentralError.unavailable)")))
    }
    linkSession?.endPairing(.failure(RequestError("cancelled by a request to unpair")))
    unpairing.append(reply)
    if let linkSession { linkSession.feed(.unpair) } else { device.task(removalFromBluetoothd()) }
  }

  /// Removes the peripheral from bluetoothd, with its bond and its services.
  func removalFromBluetoothd() -> @LoopActor (Central) async -> Void {
    linkSession?.resetLink()
    let isUnpairing = !unpairing.isEmpty
    let objects = adapters.objectsToRemove(isUnpairing: isUnpairing)
    return { [self] _ in
      var result = Result<Void, RequestError>.success(())
      for (central, peripheral) in objects {
        do throws(CentralError) {
          // The adapter has gone, and has kept its bond.
          guard let peripheral else { throw .unavailable }
          try await central.unpair(peripheral)
        } catch {
          context.log.warning(
            "cannot remove it from bluetoothd: \(error)",
            ["device": device.id, "address": device.address, "adapter": central.adapterName])
          result = .failure(RequestError("\(central.adapterName): \(error)"))
        }
      }
      if case .failure(let error) = result, adapters.isPaired {
        // Pairing again is pointless.
        linkSession?.pairingEnded()
        linkSession?.endPairing(.failure(error))
      }
      guard isUnpairing else { return }
      let replies = unpairing
      unpairing = []
      for reply in replies { reply(result) }
    }
  }
}
