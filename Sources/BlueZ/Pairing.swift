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
  /// A passkey was given, and the peripheral pairs without one (JustWorks).
  case passkeyNotUsed
  /// The peripheral could not be connected to in time.
  case notInRange
  /// The link ended during pairing.
  case linkLost
  /// The peripheral stopped responding during pairing.
  case timedOut
  /// bluetoothd did not accept the central as a pairing agent.
  case noAgent(String)
  /// Any other error.
  case failed(CentralError)

  /// Another program's attempt with the peripheral is in progress.
  var isBusy: Bool { if case .failed(let error) = self { error.isBusy } else { false } }
}

extension PairingError: CustomStringConvertible {
  /// A line for the log and for users; it may quote bluetoothd.
  public var description: String {
    switch self {
    case .refused: "it refuses to pair: it may have to be put into pairing mode"
    case .passkeyMissing: "it displays a passkey, which was not entered in time"
    case .wrongPasskey: "wrong passkey"
    case .passkeyNotUsed: "it does not ask for the passkey: it may be another device than expected"
    case .notInRange: "it is not in range"
    case .linkLost: "the link ended while pairing"
    case .timedOut: "it did not respond while pairing"
    case .noAgent(let reason): "bluetoothd accepts no pairing agent: \(reason)"
    case .failed(let error): error.description
    }
  }
}

/// A pairing: bluetoothd's request for the passkey, and its answer to Pair.
@LoopActor final class Pairing {
  private var passkey: Int?
  private let passkeyRequested: @LoopActor () -> Void
  /// Whether bluetoothd has requested a passkey.
  private var wasRequested = false
  /// bluetoothd's unanswered call for the passkey.
  private var request: DBusCall?
  /// bluetoothd's answer to Pair.
  private var answer: DBusAnswer?

  /// - Parameters:
  ///   - passkey: to answer with when bluetoothd requests it, if it is known.
  ///   - passkeyRequested: called when bluetoothd requests a passkey that is not known.
  init(passkey: Int?, passkeyRequested: @escaping @LoopActor () -> Void) {
    self.passkey = passkey
    self.passkeyRequested = passkeyRequested
  }

  // MARK: Passkey

  /// bluetoothd requests the passkey.
  /// - Returns: the passkey; nil if it is not known, and the call is to be answered later.
  func passkey(for call: DBusCall) -> Int? {
    wasRequested = true
    if let passkey { return passkey }
    request = call
    passkeyRequested()
    return nil
  }

  /// bluetoothd no longer waits for the passkey.
  func cancelRequest() { request = nil }

  /// The passkey has become known.
  /// - Returns: the call to be answered with it.
  func enter(_ passkey: Int) -> DBusCall? {
    self.passkey = passkey
    defer { request = nil }
    return request
  }

  /// Whether the peripheral may pair without a passkey (JustWorks).
  var permitsJustWorks: Bool { passkey == nil }

  /// Whether JustWorks was used, although a passkey is known. bluetoothd 5.66 accepts JustWorks for the
  /// caller of Pair without asking its agent.
  var hasBypassedPasskey: Bool { !wasRequested && !permitsJustWorks }

  // MARK: Result

  var isAnswered: Bool { answer != nil }

  /// bluetoothd has answered Pair.
  func finish(_ answer: DBusAnswer) { self.answer = answer }

  /// What bluetoothd's answer to Pair means (recorded with 5.66 and 5.82); nil before that.
  var result: Result<Void, PairingError>? {
    let error: DBusError
    switch answer {
    case nil: return nil
    case .success: return .success(())
    case .failure(let failure): error = failure
    }
    let isEntered = wasRequested && passkey != nil
    switch error.name {
    case BlueZName.Failure.alreadyExists: return .success(())
    case BlueZName.Failure.authenticationFailed, BlueZName.Failure.authenticationRejected:
      return .failure(isEntered ? .wrongPasskey : wasRequested ? .passkeyMissing : .refused)
    case BlueZName.Failure.authenticationTimeout: return .failure(.timedOut)
    case BlueZName.Failure.authenticationCanceled:
      return .failure(wasRequested && !isEntered ? .passkeyMissing : .linkLost)
    case BlueZName.Failure.connectionAttemptFailed: return .failure(.notInRange)
    default: return .failure(.failed(CentralError(error, during: "Pair")))
    }
  }
}
