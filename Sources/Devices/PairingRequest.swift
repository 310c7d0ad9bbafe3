import EventLoop

/// The result of a request to pair.
package enum PairingProgress: Sendable, Equatable {
  case paired
  /// The peripheral displays a passkey: another request has to give it within 30 s.
  case passkeyRequired
}

package typealias PairingReply = @LoopActor (Result<PairingProgress, RequestError>) -> Void

package typealias UnpairingReply = @LoopActor (Result<Void, RequestError>) -> Void

/// The request to pair that awaits its answer.
enum PairingRequest {
  case none
  case requested(passkey: Int?, PairingReply)
  /// The peripheral displays a passkey; the request was answered, and another one has to give it.
  case passkeyDisplayed

  var isRequested: Bool { if case .requested = self { true } else { false } }
  var isPasskeyDisplayed: Bool { if case .passkeyDisplayed = self { true } else { false } }
  var passkey: Int? { if case .requested(let passkey, _) = self { passkey } else { nil } }
}
