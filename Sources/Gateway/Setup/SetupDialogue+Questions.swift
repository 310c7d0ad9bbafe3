import Configuration
import JSON

/// The texts of the questions.
extension SetupDialogue {
  func question(_ topic: SetupTopic) -> SetupQuestion {
    switch topic {
    case .devices: microbits.choiceQuestion
    case .name(let index): microbits.nameQuestion(index)
    case .area(let index): microbits.areaQuestion(index)
    case .pairing:
      SetupQuestion(
        topic: topic, lines: [""],
        prompt: "Do your micro:bits need pairing? (MakeCode: JustWorks or Passkey) (y/n)", preset: "n")
    case .later:
      SetupQuestion(
        topic: topic, lines: [""],
        prompt: "Also use every other micro:bit that comes into range later? (y/n)",
        preset: present.hasEveryMicrobit ? "y" : "n")
    case .host:
      SetupQuestion(
        topic: topic,
        lines: [
          "", "Where is the MQTT broker? localhost is this computer; with Home Assistant's",
          "Mosquitto add-on it is its computer, for example homeassistant.local.",
        ], prompt: "Broker (name or address)", preset: broker.host)
    case .tls:
      SetupQuestion(
        topic: topic, prompt: "Does it need an encrypted connection (TLS)? (y/n)",
        preset: broker.isEncrypted || given[.port] == "8883" || given[.caFile] != nil ? "y" : "n")
    case .caFile:
      SetupQuestion(
        topic: topic,
        prompt: broker.caFile == nil
          ? "File with the CA certificate (empty: those of this computer)"
          : "File with the CA certificate (- for those of this computer)", preset: broker.caFile ?? "")
    case .port: SetupQuestion(topic: topic, prompt: "Port", preset: "\(broker.port)")
    case .username:
      SetupQuestion(
        topic: topic, prompt: broker.username == nil ? "User name (may be empty)" : "User name (- for none)",
        preset: broker.username ?? "")
    case .password:
      SetupQuestion(
        topic: topic,
        prompt: broker.password == .none
          ? "Password (is not shown)" : "Password (is not shown; empty: as before)", preset: "",
        isSecret: true)
    case .brokerTrouble:
      SetupQuestion(
        topic: topic, lines: brokerTrouble,
        prompt: "t = try again, c = change the answers, k = keep them anyway")
    case .confirmation:
      SetupQuestion(topic: topic, lines: summary, prompt: "Write this? (y/n)", preset: "y")
    case .service:
      SetupQuestion(
        topic: topic,
        prompt: service == .running
          ? "Restart the service, so that it uses this? (y/n)"
          : "Start the service, now and whenever this computer starts? (y/n)", preset: "y")
    }
  }

  // MARK: The end

  private var summary: [String] {
    let plan = plan
    var lines = [""]
    if let text = plan.text {
      if let before = present.document {
        lines += ["Changes in \(present.path):", ""]
        lines += SetupDocument.changes(from: SetupDocument.text(before), to: text).map { "  \($0)" }
      } else {
        lines += ["\(present.path):", ""] + text.split(separator: "\n").map { "  \($0)" }
      }
      lines.append("")
      if present.isThere { lines.append("The present file is kept as \(backup).") }
    }
    if plan.password != nil {
      lines.append("The password goes to \(plan.passwordFile) beside it, readable only by the gateway.")
    }
    return lines.map(Excerpt.harmless)
  }

  var closing: [String] {
    let run = "\(program.shellWord) run --config \(present.path.shellWord)"
    return switch service {
    case .running: ["The running gateway uses this after: sudo systemctl restart microbit-gateway"]
    case .stopped: ["Start the gateway with: sudo systemctl enable --now microbit-gateway"]
    case .absent where isRunning:
      ["A gateway is running: to use this, end that one, and start it with: \(run)"]
    case .absent: ["Start the gateway with: \(run)"]
    }
  }

  func unattendedFailure(_ question: SetupQuestion) -> String {
    let lines = question.lines.filter { !$0.isEmpty }
    let remedy =
      switch question.topic {
      case .devices: ["Nothing was changed. Name micro:bits with --device, or use --all."]
      case .brokerTrouble: ["Nothing was changed. --no-test writes the configuration without this test."]
      default: ["Nothing was changed."]
      }
    let problem = question.topic == .devices ? [microbits.scanProblem ?? "no micro:bit was found"] : lines
    return (problem + remedy).joined(separator: "\n")
  }
}

extension SetupTopic {
  /// The option of the command line that answers it.
  var option: String? {
    switch self {
    case .name, .area: "--device"
    case .host: "--broker"
    case .port: "--port"
    case .caFile: "--ca-file"
    case .username: "--username"
    case .devices, .pairing, .later, .tls, .password, .brokerTrouble, .confirmation, .service: nil
    }
  }
}
