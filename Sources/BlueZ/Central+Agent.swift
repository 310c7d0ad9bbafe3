import DBus

/// The pairing agent (`org.bluez.Agent1`), from which bluetoothd requests passkeys and confirmations.
///
/// bluetoothd uses the agent of the connection that called Pair. It is registered for that call only, and never as the
/// default agent, so that other programs' pairings and the desktop's agent are not affected.
extension Central {
  private static let agentPath = "/microbit_gateway/agent"

  func registerAgent() async throws(PairingError) {
    do throws(CentralError) {
      // The agent can enter a passkey that the peripheral displays, but cannot display one.
      try await call(
        DBusCall(
          "RegisterAgent", on: BlueZName.agentManager, of: BlueZName.root,
          [.objectPath(Self.agentPath), .string("KeyboardOnly")]))
    } catch .refused(let reason) {
      throw .noAgent(reason)
    } catch .transient(let reason) {
      // An earlier UnregisterAgent was not answered in time.
      if !reason.hasPrefix("AlreadyExists") { throw .noAgent(reason) }
    } catch {
      throw .failed(error)
    }
  }

  func unregisterAgent() async {
    await callIgnoringFailure(
      DBusCall(
        "UnregisterAgent", on: BlueZName.agentManager, of: BlueZName.root, [.objectPath(Self.agentPath)]))
  }

  /// Answers a call of bluetoothd to the agent.
  func answer(_ call: DBusCall) {
    guard call.path == Self.agentPath else { return reply(to: call, .failure(.noSuchMethod)) }
    switch call.member {
    case "Release":
      reply(to: call)
    case "Cancel":
      queue.current?.pairing?.cancelRequest()
      reply(to: call)
    case "RequestPasskey":
      guard let pairing = pairing(about: call) else { return reject(call) }
      if let passkey = pairing.passkey(for: call) { reply(to: call, passkey) }
    case "RequestConfirmation", "RequestAuthorization":
      if pairing(about: call)?.permitsJustWorks == true { reply(to: call) } else { reject(call) }
    default:
      reject(call)
    }
  }

  /// Answers RequestPasskey.
  func reply(to request: DBusCall, _ passkey: Int) {
    reply(to: request, .success([.uint32(UInt32(passkey))]))
  }

  private func reject(_ call: DBusCall) {
    reply(to: call, .failure(.remote(name: BlueZName.Failure.rejected, message: "not requested")))
  }

  /// The pairing in progress, if the call names its peripheral.
  private func pairing(about call: DBusCall) -> Pairing? {
    call.arguments.first?.text.flatMap { pairing(of: PeripheralID(path: $0)) }
  }
}
