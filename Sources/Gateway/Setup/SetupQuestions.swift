import JSON

/// The questions of `init`: who may open the page, the broker, which micro:bits, the area.
extension SetupQuestion {
  /// What only machines set; the broker's client certificate follows the question for TLS.
  static var identity: [Form] {
    [
      option("--id") { try $0.set("gateway", "id", .string($1)) },
      option("--fleet") { answers, _ in answers.setFleet() },
    ]
  }

  static var page: [Form] {
    [
      { answers in
        choice(
          "Who may open the page?",
          [
            "", "A page in the browser shows and sets the micro:bits. `network`: everybody in this",
            "network who knows its password; `computer`: browsers on this computer.",
          ], answers.page, option: "--http"
        ) { $0.page = $1 }
      },
      { answers in
        guard answers.page == .network else { return nil }
        let hint = answers.hasPagePassword ? "; Enter keeps the present one" : ""
        return SetupQuestion(
          prompt: "Password for the page (typing is not shown\(hint))",
          preset: answers.hasPagePassword ? "" : nil,
          isSecret: true, option: "--http-password-file"
        ) { try $0.setPagePassword($1) }
      },
    ]
  }

  static var broker: [Form] {
    [
      { answers in
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
        }
      },
      { answers in
        let isGiven = answers.mqtt["tls"] != nil
        return choice(
          "Does it need an encrypted connection (TLS)?", [], isGiven ? SetupConsent.yes : .no, option: "--tls"
        ) { $0.setEncryption($1 == .yes) }
      },
      { answers in
        guard let tls = answers.mqtt["tls"] else { return nil }
        let file = tls["ca_file"]?.text
        let hint = file == nil ? "empty: those of this computer" : "- for those of this computer"
        return SetupQuestion(
          prompt: "File with the CA certificate (\(hint))", preset: file ?? "", option: "--ca-file"
        ) { try $0.setTLSFile("ca_file", $1.unlessDash) }
      },
      option("--cert-file") { try $0.setTLSFile("cert_file", $1) },
      option("--key-file") { try $0.setTLSFile("key_file", $1) },
      { answers in
        SetupQuestion(prompt: "Port", preset: answers.mqtt["port"]?.shown, option: "--port") {
          guard let port = Int($1), (1...65535).contains(port) else {
            throw SetupRefusal("\(Excerpt($1)) is not a port: a number from 1 to 65535, usually 1883.")
          }
          try $0.set("mqtt", "port", .integer(port))
        }
      },
      { answers in
        let name = answers.mqtt["username"]?.text
        return SetupQuestion(
          prompt: name == nil ? "User name (may be empty)" : "User name (- for none)", preset: name ?? "",
          option: "--username"
        ) { try $0.setUsername($1.unlessDash) }
      },
      { answers in
        guard answers.mqtt["username"] != nil else { return nil }
        let hint = answers.mqtt["password_file"] == nil ? "" : "; Enter keeps the present one"
        return SetupQuestion(
          prompt: "Password (typing is not shown\(hint))", preset: "", isSecret: true,
          option: "--password-file"
        ) {
          if !$1.isEmpty { try $0.setPassword($1) }
        }
      },
    ]
  }

  static var microbits: [Form] {
    [
      { answers in
        guard let preset = answers.microbits else {
          return SetupQuestion(prompt: "", option: "--all") { $0.microbits = .init(rawValue: $1) }
        }
        return choice(
          "Which micro:bits?",
          [
            "", "`all`: every micro:bit in range, those of the class next door too. `join`: those",
            "that you let join, on the page or with: sudo microbit-gateway permit-join",
          ], preset, option: "--all"
        ) { $0.microbits = $1 }
      },
      { answers in
        let area = answers.area
        let hint = area == nil ? ", for example Kitchen (may be empty)" : " (- for none)"
        return SetupQuestion(
          prompt: "Area of this gateway\(hint)", lines: [""], preset: area ?? "", option: "--area"
        ) { try $0.set("gateway", "area", $1.unlessDash.map(JSONValue.string)) }
      },
    ]
  }
}

extension String {
  /// The text; nil for none, and for `-`, which removes a present one.
  fileprivate var unlessDash: String? { isEmpty || self == "-" ? nil : self }
}
