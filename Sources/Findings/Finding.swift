import JSON

/// The result of a check, in plain words, and what to do about it. Log, `health` and `doctor` use the same texts.
package struct Finding: Sendable, Equatable {
  package enum Check: String, Sendable, CaseIterable {
    case configuration, clock, state, bus, bluetoothd, adapter, wifi, radio, broker, topics, retained
    case homeAssistant = "home_assistant"
    case gateway, device
  }

  package enum Level: String, Sendable {
    case ok
    /// Works, but not well, or not for long.
    case warning
    /// Something does not work.
    case fault
  }

  package let check: Check
  package let level: Level
  /// What was found, as a sentence without a full stop.
  package let text: String
  /// What the user can do: a command or a change; nil if there is nothing to do.
  package let remedy: String?
  /// The key by which a page in another language finds its own text; nil: it shows this one.
  package private(set) var code: String?
  /// The words of others in the text, by name: `device`, `adapter`, `reason`; and `cause`, a key for what the reason says.
  package private(set) var about: [String: String] = [:]

  /// The finding with a code for translations.
  package func coded(_ code: String?, _ about: [String: String?]) -> Finding {
    var finding = self
    finding.code = code
    finding.about = about.compactMapValues { $0 }
    return finding
  }

  /// The text with the remedy in brackets: for messages of one line.
  package var line: String { text + (remedy.map { " (\($0))" } ?? "") }

  package static func ok(_ check: Check, _ text: String) -> Finding {
    Finding(check: check, level: .ok, text: text, remedy: nil)
  }

  package static func warning(_ check: Check, _ text: String, remedy: String) -> Finding {
    Finding(check: check, level: .warning, text: text, remedy: remedy)
  }

  package static func fault(_ check: Check, _ text: String, remedy: String) -> Finding {
    Finding(check: check, level: .fault, text: text, remedy: remedy)
  }
}

extension Finding {
  /// `{"check":"adapter","level":"fault","text":"the adapter is off","remedy":"bluetoothctl power on"}`.
  package var json: JSONValue {
    [
      "check": .string(check.rawValue), "level": .string(level.rawValue), "text": .string(text),
      "remedy": remedy.map(JSONValue.string), "code": code.map(JSONValue.string),
      "device": about["device"].map(JSONValue.string), "adapter": about["adapter"].map(JSONValue.string),
      "reason": about["reason"].map(JSONValue.string), "cause": about["cause"].map(JSONValue.string),
    ]
  }

  /// Reads a finding; nil for JSON that ``json`` does not write.
  package init?(_ json: JSONValue) {
    guard let check = json["check"]?.text.flatMap(Check.init), let text = json["text"]?.text,
      let level = json["level"]?.text.flatMap(Level.init)
    else { return nil }
    self.init(check: check, level: level, text: text, remedy: json["remedy"]?.text)
    code = json["code"]?.text
    for name in ["device", "adapter", "reason", "cause"] { about[name] = json[name]?.text }
  }
}
