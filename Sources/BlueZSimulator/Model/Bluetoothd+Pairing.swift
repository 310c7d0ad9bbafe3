import EventLoop
import DBus

/// Pair, CancelPairing and agents, as recorded (Tests/RealBlueZ/recordings/pairing-debian12.tsv). Without an agent of
/// its own a caller cannot pair: default agents are not simulated.
extension Bluetoothd {
  /// The peripheral and the kernel wait for each other this long.
  private static let timeout = Duration.seconds(30)

  mutating func agentCall(_ request: DBusCall) throws(DBusError) {
    switch request.member {
    case "RegisterAgent":
      guard agents[request.client] == nil else { throw .alreadyExists }
      agents[request.client] = request.arguments.first?.text
    case "UnregisterAgent":
      guard agents.removeValue(forKey: request.client) != nil else { throw .doesNotExist }
    case "RequestDefaultAgent":
      guard agents[request.client] != nil else { throw .doesNotExist }
    default: break
    }
    reply(to: request)
  }

  mutating func pair(_ request: DBusCall, _ index: DeviceKey) throws(DBusError) {
    guard adapters[of: index].power == .on else { throw .notReady }
    guard let device = devices[index] else { return }
    guard device.pairing == nil else { throw .inProgress }
    devices[index]?.pairing = request
    // Pair is not answered until the link ends if there is a bond.
    if bonds.contains(index) { return }
    switch device.link {
    // The attempt has no time-out.
    case .none: beginConnecting(index, request)
    case .up: beginPairing(index)
    // Begins when the link is up.
    case .waiting, .linking, .linked, .resolving, .disconnecting: break
    }
  }

  mutating func cancelPairing(_ request: DBusCall, _ index: DeviceKey) throws(DBusError) {
    guard let device = devices[index], device.pairing != nil else { throw .doesNotExist }
    if device.isConnected {
      hangUp(index)
    } else {
      cancelConnect(index, .authenticationCanceled)
      endPairing(index, .failure(.authenticationCanceled))
    }
    reply(to: request)
  }

  /// The link is up: asks the peripheral to pair.
  mutating func beginPairing(_ index: DeviceKey) {
    guard let device = devices[index], let pairing = device.pairing, !bonds.contains(index) else { return }
    guard let agent = agents[pairing.client] else {
      return endPairing(index, .failure(.authenticationFailed))
    }
    let fault = peripherals[index].security.fault
    peripherals[index].security.fault = nil
    switch fault {
    case .drop: return hangUp(index)
    case .silence: return planForLink(of: index, after: Self.timeout) { $0.hangUp(index) }
    case .error, nil: break
    }
    guard peripherals[index].security.pairs else { return refusePairing(index) }
    guard peripherals[index].security.passkey != nil else { return completePairing(index) }
    plan(at: now + Self.timeout) { $0.endPasskey(index, pairing) }
    emit(.askPasskey(agent: agent, of: pairing.client, device: device.path, for: pairing))
  }

  /// The agent's answer; nil: it refuses.
  mutating func passkeyEntered(_ passkey: Int?, for call: DBusCall) {
    guard let index = devices.first(where: { $0.value.pairing == call })?.key else { return }
    switch passkey {
    case nil: endPairing(index, .failure(.authenticationFailed))
    case peripherals[index].security.passkey: completePairing(index)
    default: refusePairing(index)
    }
  }

  /// The passkey for a call of Pair was perhaps not entered in time.
  private mutating func endPasskey(_ index: DeviceKey, _ call: DBusCall) {
    if devices[index]?.pairing == call, !bonds.contains(index) { hangUp(index) }
  }

  private mutating func refusePairing(_ index: DeviceKey) {
    endPairing(index, .failure(.authenticationFailed))
    hangUp(index)
  }

  private mutating func completePairing(_ index: DeviceKey) {
    bonds.insert(index)
    peripherals[index].security.hasBond = true
    // The object keeps its path until bluetoothd is started again (`device_update_addr` in its `src/device.c`).
    if let identity = peripherals[index].security.identity {
      peripherals[index].address = identity
      change(device: index, [("Address", .string(identity))])
    }
    change(device: index, [("Bonded", .boolean(true)), ("Paired", .boolean(true))])
    if devices[index]?.isUsable == true { endPairing(index, .success([])) }
  }

  /// Answers the call of Pair.
  mutating func endPairing(_ index: DeviceKey, _ answer: DBusAnswer) {
    guard let pairing = devices[index]?.pairing else { return }
    devices[index]?.pairing = nil
    emit(.answer(pairing, answer))
  }
}
