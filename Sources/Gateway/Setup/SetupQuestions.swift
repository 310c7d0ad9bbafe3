import EventLoop
import JSON

/// The questions of `init`: who may open the page, the broker, which micro:bits, the area.
extension SetupInterview {
  /// What only machines set.
  mutating func takeIdentity() throws(CommandFailure) {
    try take("--id") { try $0.set("gateway", "id", .string($1)) }
    try take("--fleet") { answers, _ in answers.setFleet() }
  }

  @LoopActor mutating func askForPage() async throws(CommandFailure) {
    try await ask(
      .choice(
        "Who may open the page?",
        [
          "", "A page in the browser shows and sets the micro:bits. `network`: everybody in this",
          "network who knows its password; `computer`: browsers on this computer.",
        ], answers.page, option: "--http"
      ) { $0.page = $1 })
    guard answers.page == .network else { return }
    let hint = answers.hasPagePassword ? "; Enter keeps the present one" : ""
    try await ask(
      SetupQuestion(
        prompt: "Password for the page (typing is not shown\(hint))",
        preset: answers.hasPagePassword ? "" : nil, isSecret: true, option: "--http-password-file"
      ) { try $0.setPagePassword($1) })
  }

  @LoopActor mutating func askForBroker() async throws(CommandFailure) {
    try await ask(
      SetupQuestion(
        prompt: "Broker (name or address)",
        lines: [
          "", "Where is the MQTT broker? It is the program (for example Mosquitto) through",
          "which gateway, Home Assistant and scripts exchange messages. localhost is this",
          "computer (`install` says how to install one here); with Home Assistant's app",
          "Mosquitto broker it is that computer, for example homeassistant.local.",
        ], preset: answers.mqtt["host"]?.text ?? "", option: "--broker"
      ) {
        if $1 == "install" {
          throw SetupRefusal("At another terminal: sudo apt install mosquitto. Then answer localhost.")
        }
        // Several brokers in the file stay.
        if !$1.isEmpty { try $0.setHost($1) }
      })
    try await askForEncryption()
    try await ask(
      SetupQuestion(prompt: "Port", preset: answers.mqtt["port"]?.shown, option: "--port") {
        guard let port = Int($1), (1...65535).contains(port) else {
          throw SetupRefusal("\(Excerpt($1)) is not a port: a number from 1 to 65535, usually 1883.")
        }
        try $0.set("mqtt", "port", .integer(port))
      })
    try await askForCredentials()
  }

  @LoopActor private mutating func askForEncryption() async throws(CommandFailure) {
    let isEncrypted = answers.mqtt["tls"] != nil
    try await ask(
      .choice(
        "Does it need an encrypted connection (TLS)?", [], isEncrypted ? SetupConsent.yes : .no,
        option: "--tls"
      ) { $0.setEncryption($1 == .yes) })
    if let tls = answers.mqtt["tls"] {
      let file = tls["ca_file"]?.text
      let hint = file == nil ? "empty: those of this computer" : "- for those of this computer"
      try await ask(
        SetupQuestion(
          prompt: "File with the CA certificate (\(hint))", preset: file ?? "", option: "--ca-file"
        ) { try $0.setTLSFile("ca_file", $1.unlessDash) })
    }
    // The broker's client certificate, which only machines have.
    try take("--cert-file") { try $0.setTLSFile("cert_file", $1) }
    try take("--key-file") { try $0.setTLSFile("key_file", $1) }
  }

  @LoopActor private mutating func askForCredentials() async throws(CommandFailure) {
    let name = answers.mqtt["username"]?.text
    try await ask(
      SetupQuestion(
        prompt: name == nil ? "User name (may be empty)" : "User name (- for none)", preset: name ?? "",
        option: "--username"
      ) { try $0.setUsername($1.unlessDash) })
    guard answers.mqtt["username"] != nil else { return }
    let hint = answers.mqtt["password_file"] == nil ? "" : "; Enter keeps the present one"
    try await ask(
      SetupQuestion(
        prompt: "Password (typing is not shown\(hint))", preset: "", isSecret: true, option: "--password-file"
      ) {
        if !$1.isEmpty { try $0.setPassword($1) }
      })
  }

  @LoopActor mutating func askForMicrobits() async throws(CommandFailure) {
    if let preset = answers.microbits {
      try await ask(
        .choice(
          "Which micro:bits?",
          [
            "", "`all`: every micro:bit in range, those of the class next door too. `join`: those",
            "that you let join, on the page or with: sudo microbit-gateway permit-join",
          ], preset, option: "--all"
        ) { $0.microbits = $1 })
    } else {
      try take("--all") { $0.microbits = .init(rawValue: $1) }
    }
    let area = answers.area
    let hint = area == nil ? ", for example Kitchen (may be empty)" : " (- for none)"
    try await ask(
      SetupQuestion(
        prompt: "Area of this gateway\(hint)", lines: [""], preset: area ?? "", option: "--area"
      ) { try $0.set("gateway", "area", $1.unlessDash.map(JSONValue.string)) })
  }
}

extension String {
  /// The text; nil for none, and for `-`, which removes a present one.
  fileprivate var unlessDash: String? { isEmpty || self == "-" ? nil : self }
}
