import EventLoop
import JSON

/// `setup`: asks the running gateway for the addresses and the code of its page for set-up.
enum Invitation {
  /// How long a gateway that was just started has to open its socket.
  private static let patience = Duration.seconds(5)

  @LoopActor static func run() async throws(CommandFailure) {
    let gateway = try await open()
    defer { gateway.close() }
    for line in lines(try await gateway.request("setup")) { printOutput(line) }
  }

  @LoopActor private static func open() async throws(CommandFailure) -> GatewayAccess {
    let deadline = Moment.now + patience
    repeat {
      if let gateway = try GatewayAccess.open() { return gateway }
      try? await loop.sleep(for: .milliseconds(200))
    } while Moment.now < deadline
    throw GatewayAccess.noneRuns(configuration: nil)
  }

  static func lines(_ answer: JSONValue) -> [String] {
    let code = answer["code"]?.text ?? ""
    return [
      "Open one of these addresses in a browser, and type the code \(code)",
      "(valid for \(answer["minutes"]?.integer ?? 0) minutes; if it is refused: sudo microbit-gateway setup):",
    ] + (answer["urls"]?.elements.compactMap { $0.text.map { "  \($0)" } } ?? [])
  }
}
