import EventLoop

/// The result of a request to pair.
package enum PairingProgress: Sendable, Equatable {
  case paired
  /// The peripheral displays a passkey: another request has to give it within 30 s.
  case passkeyRequired
}

/// The answer to a request to pair.
package typealias PairingReply = @LoopActor (Result<PairingProgress, RequestError>) -> Void

/// The answer to a request to unpair.
package typealias UnpairingReply = @LoopActor (Result<Void, RequestError>) -> Void

/// The requests to pair and to unpair that await their answer: one to pair, any number to unpair.
@LoopActor struct PairingRequests: Sendable {
  private enum Pairing {
    case none
    /// - Parameter deadline: ends a request that others delay for too long.
    case requested(passkey: Int?, PairingReply, deadline: LoopTimer)
    /// The peripheral displays a passkey; the request was answered, and another one has to give it.
    case passkeyDisplayed
  }

  private var pairing = Pairing.none
  private var unpairing: [UnpairingReply] = []

  var isPairing: Bool { if case .requested = pairing { true } else { false } }
  var isPasskeyDisplayed: Bool { if case .passkeyDisplayed = pairing { true } else { false } }
  /// The passkey that the request to pair gives.
  var passkey: Int? { if case .requested(let passkey, _, _) = pairing { passkey } else { nil } }

  mutating func pair(_ passkey: Int?, deadline: LoopTimer, _ reply: @escaping PairingReply) {
    pairing = .requested(passkey: passkey, reply, deadline: deadline)
  }

  /// The request is given more time.
  mutating func extend(to deadline: LoopTimer) {
    guard case .requested(let passkey, let reply, _) = pairing else { return deadline.cancel() }
    pairing = .requested(passkey: passkey, reply, deadline: deadline)
  }

  /// Another request has to give the passkey that the peripheral displays.
  /// - Returns: the answer to the one that there is.
  mutating func passkeyIsDisplayed() -> PairingReply? {
    let reply = takePairing()
    pairing = .passkeyDisplayed
    return reply
  }

  /// Ends the request to pair, if there is one, which the caller answers.
  mutating func takePairing() -> PairingReply? {
    defer { pairing = .none }
    guard case .requested(_, let reply, let deadline) = pairing else { return nil }
    deadline.cancel()
    return reply
  }

  var isUnpairing: Bool { !unpairing.isEmpty }

  mutating func unpair(_ reply: @escaping UnpairingReply) { unpairing.append(reply) }

  /// The requests to unpair, which the caller answers.
  mutating func takeUnpairing() -> [UnpairingReply] {
    defer { unpairing = [] }
    return unpairing
  }
}
