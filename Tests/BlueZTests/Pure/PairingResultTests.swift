import DBus
import EventLoop
import Testing

@testable import BlueZ

/// What bluetoothd's answer to Pair means, which depends on whether it has requested a passkey.
@LoopActor @Suite struct PairingResultTests {
  private static let request = DBusCall("RequestPasskey", on: "org.bluez.Agent1", of: "/agent", at: ":1.1")

  private func result(_ error: String, _ prepare: (Pairing) -> Void) -> PairingError? {
    let pairing = Pairing(passkey: nil) {}
    #expect(pairing.result == nil)
    prepare(pairing)
    pairing.finish(.failure(.remote(name: "org.bluez.Error." + error, message: "")))
    guard case .failure(let reason)? = pairing.result else { return nil }
    return reason
  }

  @Test func aFailureDependsOnThePasskey() {
    let requested: (Pairing) -> Void = { _ = $0.passkey(for: Self.request) }
    let entered: (Pairing) -> Void = { pairing in
      _ = pairing.passkey(for: Self.request)
      #expect(pairing.enter(123_456)?.member == "RequestPasskey")
      #expect(pairing.enter(123_456) == nil)
    }
    #expect(result("AuthenticationFailed") { _ in } == .refused)
    #expect(result("AuthenticationFailed", requested) == .passkeyMissing)
    #expect(result("AuthenticationFailed", entered) == .wrongPasskey)
    #expect(result("AuthenticationCanceled") { _ in } == .linkLost)
    #expect(result("AuthenticationCanceled", requested) == .passkeyMissing)
    #expect(result("AuthenticationCanceled", entered) == .linkLost)
    #expect(result("ConnectionAttemptFailed") { _ in } == .notInRange)
    // It is paired already.
    #expect(result("AlreadyExists") { _ in } == nil)
  }

  @Test func aPasskeyThatIsKnownIsAnsweredAtOnce() {
    let pairing = Pairing(passkey: 7) { Issue.record("the passkey is known") }
    #expect(pairing.passkey(for: Self.request) == 7)
    #expect(pairing.enter(8) == nil)
    #expect(pairing.passkey(for: Self.request) == 8)
  }

  @Test func withdrawnPasskeyRequestIsNotAnswered() {
    let pairing = Pairing(passkey: nil) {}
    #expect(pairing.passkey(for: Self.request) == nil)
    pairing.cancelRequest()
    #expect(pairing.enter(7) == nil)
  }
}
