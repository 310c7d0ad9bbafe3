import BlueZ
import EventLoop
import Glibc
import JSON

extension GatewayCommand {
  /// The passkey that at most six digits stand for; nil: the text is none.
  static func passkey(_ text: String) -> Int? {
    text.utf8.count <= 6 && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
  }
}

extension GatewayAccess {
  /// `pair`: asks for the passkey when the peripheral shows one.
  func pair(_ target: Target, passkey: Int?) async throws(CommandFailure) {
    do throws(CommandFailure) {
      try await attempt(target, passkey)
    } catch {
      guard passkey == nil, error.text == PairingError.wrongPasskey.description else { throw error }
      printError("\(error.text): once more")
      try await attempt(target, nil)
    }
    printOutput("\(target.label) is paired")
  }

  private func attempt(_ target: Target, _ passkey: Int?) async throws(CommandFailure) {
    var data = try await request(target, passkey)
    if data["passkey_required"] == .bool(true) {
      data = try await request(target, try await enteredPasskey(target))
    }
    guard data["paired"] == .bool(true) else {
      throw CommandFailure(.refused, "\(target.label) was not paired: the passkey may be wrong")
    }
  }

  private func request(_ target: Target, _ passkey: Int?) async throws(CommandFailure) -> JSONValue {
    try await request(
      "device/pair", target.selector.merging(["passkey": passkey.map(JSONValue.integer)]),
      within: .seconds(160))
  }

  private func enteredPasskey(_ target: Target) async throws(CommandFailure) -> Int {
    guard isatty(STDIN_FILENO) != 0 else {
      throw CommandFailure(
        .refused,
        "\(target.label) shows a passkey (a micro:bit after button A was pressed): repeat with --passkey N")
    }
    let console = Console()
    var question =
      "\(target.label) shows a passkey (a micro:bit after button A was pressed).\nEnter its six digits within 30 s: "
    while let line = await console.ask(question) {
      let digits = line.filter { !$0.isWhitespace }
      if digits.utf8.count == 6, let passkey = GatewayCommand.passkey(digits) { return passkey }
      question = "A passkey has six digits. Enter it again: "
    }
    throw CommandFailure(.usage, "no passkey was entered")
  }
}
