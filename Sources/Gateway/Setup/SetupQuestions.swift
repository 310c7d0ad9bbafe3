import JSON

/// The questions of `init`.
extension SetupQuestion {
  /// A question by the answers so far; nil: it is not asked.
  typealias Form = (SetupAnswers) -> SetupQuestion?

  // MARK: Bluetooth

  static func unblocking(_ answers: SetupAnswers) -> SetupQuestion? {
    yesOrNo(
      "Turn Bluetooth on now? It stays on.",
      [
        "", "Bluetooth is blocked on this computer (soft-blocked), as on a new Raspberry Pi:",
        "no micro:bit can be found, or connected to.",
      ], preset: true
    ) { $0.isAgreed = $1 }
  }

  // MARK: Micro:bits

  static func devices(_ answers: SetupAnswers) -> SetupQuestion? {
    guard !answers.isChosen else { return nil }
    let found = answers.candidates ?? []
    let reason =
      answers.scanProblem ?? """
        No micro:bit was found. A program with Bluetooth services must be running on it,
        and no phone or tablet may be connected to it.
        """
    let others = [
      "`every` uses every micro:bit that comes into range, those of the class next door",
      "too. Others can join at any time: microbit-gateway permit-join", "",
    ]
    let rows = aligned(found.enumerated().map { ["  \($0 + 1)"] + $1.row }) + [""]
    let known = found.indices.filter { found[$0].isConfigured }.map { "\($0 + 1)" }.joined(separator: ",")
    let other = answers.present.hasOwnEntries ? "none" : found.isEmpty ? nil : "all"
    return SetupQuestion(
      prompt: found.isEmpty
        ? "What now? (again / every / none)"
        : "Which micro:bits? (1,3 / all / every / none / again)",
      lines: [""] + (found.isEmpty ? [reason] : rows) + others,
      preset: !known.isEmpty ? known : answers.scanProblem == nil || !found.isEmpty ? other : nil,
      failure: """
        \(answers.scanProblem ?? "no micro:bit was found")
        Nothing was changed. Name micro:bits with --device, or use --all.
        """
    ) { try $0.choose($1) }
  }

  /// The questions about each chosen micro:bit, and about all.
  static func microbits(_ count: Int) -> [Form] {
    let each = (0..<count).flatMap { index -> [Form] in
      [
        { answers in
          let device = answers.devices[index]
          return SetupQuestion(
            prompt: index == 0 ? "  Name, for example Window" : "  Name",
            lines: ["", "\(Excerpt.harmless(device.name ?? "micro:bit")) (\(device.address))"],
            preset: device.presetName, option: "--device", given: device.given.map { $0.first ?? "" }
          ) { try $0.setName($1, of: index) }
        },
        { answers in
          let device = answers.devices[index]
          let area = device.entry["area"]?.text
          let hint = area != nil ? " (- for none)" : index == 0 ? ", for example Kitchen (may be empty)" : ""
          return SetupQuestion(
            prompt: "  Area\(hint)", preset: area ?? "", option: "--device",
            given: device.given.map { $0.count > 1 ? $0[1] : "" }
          ) { try $0.devices[index].set("area", $1.unlessDash) }
        },
      ]
    }
    let all: [Form] = [
      { answers in
        let present = answers.present
        // Otherwise it is the configuration that the package has installed.
        guard !answers.isChosen, !answers.servesLater, present.hasEveryMicrobit, present.hasOwnEntries else {
          return nil
        }
        return yesOrNo(
          "Also use every other micro:bit that comes into range, as until now?", [""], preset: true
        ) { $0.servesLater = $1 }
      }
    ]
    return each + all
  }

  // MARK: The broker

  static var broker: [Form] {
    [
      { answers in
        // Brokers in the file stay.
        if answers.mqtt["hosts"] != nil, answers.given["--broker"] == nil { return nil }
        return SetupQuestion(
          prompt: "Broker (name or address)",
          lines: [
            "", "Where is the MQTT broker? It is the program (for example Mosquitto) through",
            "which gateway, Home Assistant and scripts exchange messages. localhost is this",
            "computer; with Home Assistant's app Mosquitto broker it is that computer, for",
            "example homeassistant.local.",
          ], preset: answers.mqtt["host"]?.text, option: "--broker"
        ) {
          if Int($1) != nil {
            throw SetupRefusal("\(Excerpt($1)) is a number: the port is asked for later.")
          }
          try $0.set("host", .string($1))
        }
      },
      { answers in
        yesOrNo(
          "Does it need an encrypted connection (TLS)?",
          preset: answers.mqtt["tls"] != nil || answers.given["--port"] == "8883"
            || answers.given["--ca-file"] != nil, option: "--tls"
        ) { $0.setEncryption($1) }
      },
      { answers in
        guard let tls = answers.mqtt["tls"] else { return nil }
        let file = tls["ca_file"]?.text
        let hint = file == nil ? "empty: those of this computer" : "- for those of this computer"
        return SetupQuestion(
          prompt: "File with the CA certificate (\(hint))", preset: file ?? "", option: "--ca-file"
        ) { try $0.setCAFile($1.unlessDash) }
      },
      { answers in
        SetupQuestion(prompt: "Port", preset: answers.mqtt["port"]?.shown, option: "--port") {
          guard let port = Int($1), (1...65535).contains(port) else {
            throw SetupRefusal("\(Excerpt($1)) is not a port: a number from 1 to 65535, usually 1883.")
          }
          try $0.set("port", .integer(port))
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
        let hint = answers.mqtt["password_file"] == nil ? "" : "; empty: as before"
        return SetupQuestion(
          prompt: "Password (is not shown\(hint))", preset: "", isSecret: true, option: "--password-file"
        ) {
          if !$1.isEmpty { $0.setPassword(Array($1.utf8)) }
        }
      },
    ]
  }

  // MARK: The page

  static func page(_ answers: SetupAnswers) -> SetupQuestion? {
    yesOrNo(
      "Show them on a page in the browser of this computer as well?", [""],
      preset: answers.present.configuration.http.isEnabled
    ) { $0.servesPage = $1 }
  }

  /// What to do as the broker cannot be used.
  static func trouble(_ lines: [String]) -> Form {
    { _ in
      SetupQuestion(
        prompt: "t = try again, c = change the answers, k = keep them anyway", lines: lines,
        failure: lines.joined(separator: "\n")
          + "\nNothing was changed. --no-test writes the configuration without this test."
      ) { try $0.setReaction($1) }
    }
  }

  static func confirmation(_ plan: SetupPlan, backup: String) -> Form {
    { answers in
      let present = answers.present
      var lines = [""]
      if let text = plan.text {
        lines += ["\(present.document == nil ? "" : "Changes in ")\(present.path):", ""]
        lines += present.changes(to: text) + [""]
        if present.isThere { lines.append("The present file is kept as \(backup).") }
      }
      if plan.password != nil {
        lines.append("The password goes to \(plan.passwordFile) beside it, readable only by the gateway.")
      }
      return yesOrNo("Write this?", lines.map(Excerpt.harmless), preset: true) { $0.isAgreed = $1 }
    }
  }

  static func service(_ state: ServiceUnit.State) -> Form {
    { _ in
      yesOrNo(
        state == .running
          ? "Restart the service, so that it uses this?"
          : "Start the service, now and whenever this computer starts?", preset: true
      ) { $0.isAgreed = $1 }
    }
  }
}

extension String {
  /// The text; nil for none, and for `-`, which removes a present one.
  fileprivate var unlessDash: String? { isEmpty || self == "-" ? nil : self }
}
