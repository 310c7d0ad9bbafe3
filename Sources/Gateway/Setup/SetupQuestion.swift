import GATT
import JSON

/// What `init` has to know.
enum SetupTopic: Hashable, Sendable {
  /// Which of the micro:bits that were found.
  case devices
  /// Of the chosen micro:bit with this index.
  case name(Int)
  case area(Int)
  /// Whether the chosen micro:bits are to be paired with.
  case pairing
  /// Whether micro:bits that come later are used as well.
  case later
  case host
  case tls
  case caFile
  case port
  case username
  case password
  /// What to do as the broker cannot be used.
  case brokerTrouble
  case confirmation
  /// Whether to start the service.
  case service
}

/// A question of `init`.
struct SetupQuestion: Equatable {
  let topic: SetupTopic
  /// What is shown before it.
  var lines: [String] = []
  let prompt: String
  /// The answer that an empty line stands for; nil: a person has to answer.
  var preset: String?
  /// Whether the answer is not shown while it is typed.
  var isSecret = false

  /// As shown: `Port [1883]: `.
  var text: String {
    prompt + (preset.map { $0.isEmpty ? ": " : " [\(Excerpt.harmless($0))]: " } ?? ": ")
  }
}

/// What an answer means.
extension SetupQuestion {
  /// An empty line is the preset.
  func value(of answer: String) -> String { answer.isEmpty ? preset ?? "" : answer }

  /// `-` is nothing.
  func optionalValue(of answer: String) -> String? {
    let text = value(of: answer)
    return text.isEmpty || text == "-" ? nil : text
  }

  func isYes(_ answer: String) throws(SetupRefusal) -> Bool {
    switch value(of: answer).lowercased() {
    case "y", "yes": return true
    case "n", "no": return false
    default: throw SetupRefusal("Please answer y (yes) or n (no).")
    }
  }
}

/// Why an answer cannot be used.
struct SetupRefusal: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

/// A micro:bit that was found.
struct SetupCandidate: Equatable, Sendable {
  let address: BluetoothAddress
  let name: String?
  /// In dBm; nil: it is connected, and does not advertise.
  var signal: Int?

  /// The letters in brackets of `BBC micro:bit [zugev]`.
  static func letters(of name: String?) -> String? {
    guard let name, name.hasPrefix(SetupDocument.prefix), name.hasSuffix("]"),
      let bracket = name.lastIndex(of: "[")
    else { return nil }
    let letters = name[name.index(after: bracket)...].dropLast()
    return letters.isEmpty ? nil : String(letters)
  }
}

/// A micro:bit that is to be used.
struct SetupDevice: Equatable {
  let address: BluetoothAddress
  /// Its Bluetooth name; nil: unknown.
  var bluetoothName: String?
  /// Nil: the Bluetooth name is used.
  var name: String?
  /// Nil: the address is used.
  var id: String?
  var area: String?
  /// Whether it is to be paired with; false: as its entry says.
  var isPaired = false
}
