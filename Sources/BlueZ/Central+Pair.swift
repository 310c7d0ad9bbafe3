import DBus
import EventLoop

/// Why a peripheral was not paired with.
public enum PairingError: Error, Sendable, Equatable {
  /// The peripheral refuses: it is not in pairing mode, or never pairs.
  case refused
  /// The peripheral displays a passkey, which was not entered in time.
  case passkeyMissing
  /// Another passkey was entered than the peripheral displays.
  case wrongPasskey
  /// The peripheral could not be connected to in time, or bluetoothd does not know it.
  case notInRange
  /// The link ended during pairing.
  case linkLost
  /// The peripheral stopped responding during pairing.
  case timedOut
  /// bluetoothd did not accept the central as a pairing agent.
  case noAgent(String)
  /// No pairing took place.
  case failed(CentralError)
}

/// The pairing in progress.
struct Pairing {
  let peripheral: PeripheralID
  /// The passkey to answer with when bluetoothd asks for it.
  var passkey: Int?
  /// bluetoothd's unanswered call for the passkey.
  var question: DBusCall?
  /// Whether bluetoothd has asked for a passkey.
  var wasAsked = false
  /// Called when bluetoothd asks for a passkey that is not known.
  let passkeyWanted: @Sendable () -> Void
  /// bluetoothd's answer to Pair.
  var answer: DBusAnswer?
}

extension Central {
  /// Pairs with a peripheral, with a bond; one that is paired already is left as it is. Runs like a connect: one at a
  /// time, with scanning paused. Leaves the link up after success, and ends it after a failure.
  ///
  /// - Parameters:
  ///   - passkey: the one that the peripheral displays or has, if it is known beforehand.
  ///   - isNeeded: called on the loop before pairing, which may be long after the call.
  ///   - passkeyWanted: called on the loop when the peripheral requires a passkey that is not known: it is awaited from
  ///     ``enter(passkey:for:)``, until the peripheral ends the link (30 s).
  public func pair(
    _ id: PeripheralID, passkey: Int? = nil, while isNeeded: @Sendable () -> Bool = { true },
    passkeyWanted: @escaping @Sendable () -> Void = {}
  ) async throws(PairingError) {
    await connectMutex.lock(isPreferred: true)
    guard isNeeded() else {
      connectMutex.unlock()
      reconcileScan()
      throw .failed(.disconnected)
    }
    connecting = id
    pairing = Pairing(peripheral: id, passkey: passkey, passkeyWanted: passkeyWanted)
    let result: Result<Void, PairingError>
    do throws(PairingError) {
      result = .success(try await attemptPairing(id, while: isNeeded))
    } catch {
      result = .failure(error)
      if tree.devices[id.path] != nil, state.isOn { await disconnect(id) }
    }
    pairing = nil
    connecting = nil
    connectMutex.unlock()
    reconcileScan()
    checkConditions()
    try result.get()
  }

  /// Enters the passkey that a peripheral displays; false if it is not being paired with.
  @discardableResult
  public func enter(passkey: Int, for id: PeripheralID) -> Bool {
    guard pairing?.peripheral == id else { return false }
    pairing?.passkey = passkey
    if let question = pairing?.question {
      pairing?.question = nil
      reply(to: question, [.uint32(UInt32(passkey))])
    }
    return true
  }

  /// Ends the pairing in progress.
  public func cancelPairing(_ id: PeripheralID) async {
    guard pairing?.peripheral == id else { return }
    do throws(CentralError) {
      _ = try await call("CancelPairing", on: BlueZName.device, of: id.path, timeout: limits.local)
    } catch {
      log.debug("CancelPairing", ["error": error])
    }
  }

  /// Deletes the bond and everything else that bluetoothd knows of a peripheral, its services included. The next scan
  /// finds it again; until then it is reported as out of range.
  public func unpair(_ id: PeripheralID) async throws(CentralError) {
    guard state.isOn, !isStopping else { throw .unavailable }
    guard tree.devices[id.path] != nil else { throw .gone }
    // bluetoothd 5.82 does not remove a device whose encryption has just failed, unless Disconnect was called.
    await disconnect(id)
    // Removal would crash bluetoothd before 5.84.
    guard await !isNotifyAcquired(id) else { throw .notifyAcquired }
    try await remove(id)
    guard await wait(limits.treeUpdate, until: { $0.tree.devices[id.path]?.isPaired != true }) else {
      throw .timedOut("bluetoothd did not remove it in time")
    }
  }

  private func attemptPairing(
    _ id: PeripheralID, while isNeeded: @Sendable () -> Bool
  ) async throws(PairingError) {
    _ = await wait(limits.disconnect) { !$0.disconnecting.contains(id) }
    guard state.isOn, !isStopping else { throw .failed(.unavailable) }
    guard let device = tree.devices[id.path] else { throw .notInRange }
    // bluetoothd 5.66 never answers Pair for a paired device that is connected.
    if device.isPaired { return }
    try await registerAgent()
    await scanBriefly()
    await pauseScan()
    var result = Result<Void, PairingError>.failure(.failed(.disconnected))
    if isNeeded(), state.isOn, !isStopping, tree.devices[id.path] != nil { result = await callPair(id) }
    await unregisterAgent()
    try result.get()
    // From now on the link is one that ``stop(within:)`` ends.
    if isConnected(id), links[id] == nil { links[id] = Link(values) }
    await trust(id)
  }

  private func callPair(_ id: PeripheralID) async -> Result<Void, PairingError> {
    request("Pair", on: BlueZName.device, of: id.path, [], timeout: limits.pair + limits.connect) {
      [weak self] answer in
      self?.assumeIsolated { central in
        guard central.pairing?.peripheral == id else { return }
        central.pairing?.answer = answer
        central.checkConditions()
      }
    }
    // bluetoothd waits for a peripheral that is out of range without a limit.
    let isLinked = await wait(limits.connect) { $0.pairing?.answer != nil || $0.isConnected(id) }
    if isLinked, await wait(limits.pair, until: { $0.pairing?.answer != nil }), let answer = pairing?.answer {
      return PairingError.result(of: answer, pairing)
    }
    await cancelPairing(id)
    _ = await wait(limits.treeUpdate) { $0.pairing?.answer != nil }
    if case .success = pairing?.answer { return .success(()) }
    return .failure(isLinked ? .timedOut : .notInRange)
  }

  /// Lets the peripheral connect and use services without asking an agent.
  private func trust(_ id: PeripheralID) async {
    do throws(CentralError) {
      _ = try await call(
        "Set", on: DBusName.properties, of: id.path,
        [.string(BlueZName.device), .string("Trusted"), .variant(.boolean(true))], timeout: limits.local)
    } catch {
      log.debug("cannot set Trusted", ["error": error])
    }
  }
}

extension PairingError {
  /// What bluetoothd's answer to Pair means (recorded with 5.66 and 5.82).
  fileprivate static func result(of answer: DBusAnswer, _ pairing: Pairing?) -> Result<Void, PairingError> {
    let error: DBusError
    switch answer {
    case .success: return .success(())
    case .failure(let failure): error = failure
    }
    guard case .remote(let name, _) = error else {
      return .failure(.failed(CentralError(error, during: "Pair")))
    }
    let wasAsked = pairing?.wasAsked == true
    let isEntered = wasAsked && pairing?.passkey != nil
    switch name {
    case BlueZName.Failure.alreadyExists: return .success(())
    case BlueZName.Failure.authenticationFailed, BlueZName.Failure.authenticationRejected:
      return .failure(isEntered ? .wrongPasskey : wasAsked ? .passkeyMissing : .refused)
    case BlueZName.Failure.authenticationTimeout: return .failure(.timedOut)
    case BlueZName.Failure.authenticationCanceled:
      return .failure(wasAsked && !isEntered ? .passkeyMissing : .linkLost)
    case BlueZName.Failure.connectionAttemptFailed, BlueZName.Failure.doesNotExist, DBusName.unknownObject:
      return .failure(.notInRange)
    default: return .failure(.failed(CentralError(error, during: "Pair")))
    }
  }
}

extension PairingError: CustomStringConvertible {
  /// A line for the log and for users; it may quote bluetoothd.
  public var description: String {
    switch self {
    case .refused: "it refuses to pair: it may have to be put into pairing mode"
    case .passkeyMissing: "it displays a passkey, which was not entered in time"
    case .wrongPasskey: "wrong passkey"
    case .notInRange: "it is not in range"
    case .linkLost: "the link ended while pairing"
    case .timedOut: "it did not respond while pairing"
    case .noAgent(let reason): "bluetoothd accepts no pairing agent: \(reason)"
    case .failed(let error): error.description
    }
  }
}
