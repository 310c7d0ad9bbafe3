import Configuration
import GATT
import JSON

/// The micro:bits in the dialogue: those that were found, those that are chosen, and their names.
struct SetupMicrobits {
  /// What an answer to the question for micro:bits means.
  enum Choice {
    /// The devices are chosen.
    case devices
    /// Every micro:bit is used as soon as it is in range.
    case every
    /// Look for micro:bits again.
    case again
  }

  private let present: PresentConfiguration
  /// Nil: not looked for yet.
  private(set) var candidates: [SetupCandidate]?
  /// Why micro:bits cannot be looked for.
  private(set) var scanProblem: String?
  private(set) var devices: [SetupDevice]
  /// Whether micro:bits that come into range later are used as well.
  private(set) var servesLater = false

  /// - Parameter devices: those that the command line names.
  init(_ present: PresentConfiguration, _ devices: [SetupDevice]) {
    self.present = present
    self.devices = devices
  }

  // MARK: The scan

  /// In the order of their names, which is the same for each scan.
  mutating func found(_ found: [SetupCandidate]) {
    candidates = found.sorted { ($0.name ?? "", $0.address.value) < ($1.name ?? "", $1.address.value) }
    for index in devices.indices {
      devices[index].bluetoothName = found.first { $0.address == devices[index].address }?.name
    }
  }

  mutating func scanFailed(_ problem: String) { (candidates, scanProblem) = ([], problem) }

  // MARK: Answers

  mutating func choose(_ text: String) throws(SetupRefusal) -> Choice {
    let candidates = candidates ?? []
    var choice = Choice.devices
    var chosen: [Int] = []
    switch text.lowercased() {
    case "again":
      (self.candidates, scanProblem) = (nil, nil)
      return .again
    case "every" where candidates.isEmpty: choice = .every
    case "none" where present.hasOwnEntries || present.hasEveryMicrobit: break
    case "all" where !candidates.isEmpty: chosen = Array(candidates.indices)
    case let numbers: chosen = try Self.numbers(numbers, upTo: candidates.count)
    }
    devices = chosen.map { index in
      let candidate = candidates[index]
      var device = SetupDevice(address: candidate.address, bluetoothName: candidate.name)
      if let entry = present.entry(of: candidate.address) {
        (device.name, device.id, device.area) = (entry["name"]?.text, entry["id"]?.text, entry["area"]?.text)
      }
      return device
    }
    return choice
  }

  /// The indices for `1,3-4`, each once.
  private static func numbers(_ text: String, upTo count: Int) throws(SetupRefusal) -> [Int] {
    guard count > 0 else { throw SetupRefusal("Please answer again or every.") }
    var indices: [Int] = []
    for part in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
      let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
      guard ends.count <= 2, let first = ends[0], let last = ends[ends.count - 1], first <= last else {
        throw SetupRefusal("\(Excerpt(String(part))) is not a number: answer for example 1,3 or all.")
      }
      guard first >= 1, last <= count else {
        throw SetupRefusal("The list has the numbers 1 to \(count).")
      }
      for index in first - 1..<last where !indices.contains(index) { indices.append(index) }
    }
    guard !indices.isEmpty else { throw SetupRefusal("Please choose one at least: for example 1 or all.") }
    return indices
  }

  mutating func setName(_ text: String, of index: Int) throws(SetupRefusal) {
    var device = devices[index]
    let letters = SetupCandidate.letters(of: device.bluetoothName).flatMap(TopicWord.similar)
    if !text.isEmpty, text != presetName(of: device) {
      try Self.checkLabel(text)
      device.name = text
      device.id = TopicWord.similar(to: text) ?? device.id ?? letters
    } else if present.entry(of: device.address) == nil {
      device.id = letters
    }
    try checkUnique(device.id ?? device.address.compact, index)
    devices[index] = device
  }

  mutating func setArea(_ area: String?, of index: Int) throws(SetupRefusal) {
    if let area { try Self.checkLabel(area) }
    devices[index].area = area
  }

  /// - Parameter isPaired: false: what is configured stays.
  mutating func setPairing(_ isPaired: Bool) {
    for index in devices.indices where needsPairingAnswer(devices[index]) {
      devices[index].isPaired = isPaired
    }
  }

  private func needsPairingAnswer(_ device: SetupDevice) -> Bool {
    present.entry(of: device.address)?["pair"] == nil
  }

  mutating func setServesLater(_ servesLater: Bool) throws(SetupRefusal) {
    if !servesLater, devices.isEmpty, !present.hasOwnEntries {
      throw SetupRefusal("Then no micro:bit would be used at all. Please answer y.")
    }
    self.servesLater = servesLater
  }

  /// An id is part of a device's topics: no two may have the same.
  private func checkUnique(_ id: String, _ index: Int) throws(SetupRefusal) {
    let address = devices[index].address
    let other = devices[..<index].first { ($0.id ?? $0.address.compact) == id }?.address
    let chosen = Set(devices.map(\.address))
    let configured = present.entries.first { entry in
      entry.address.map { $0 != address && !chosen.contains($0) } ?? true
        && (entry["id"]?.text ?? entry.address?.compact) == id
    }
    guard other != nil || configured != nil else { return }
    let owner = (other ?? configured?.address).map { "the micro:bit \($0)" } ?? "another entry"
    throw SetupRefusal("\(Excerpt(id)) is already the name of \(owner) in topics: choose another name.")
  }

  private static func checkLabel(_ text: String) throws(SetupRefusal) {
    var errors: [ConfigurationError] = []
    _ = ConfigurationRule<String>.label.read(.string(text), nil, .root, &errors)
    if let error = errors.first { throw SetupRefusal("The name \(error.problem).") }
  }

  // MARK: Questions

  /// The questions about the chosen ones.
  var topics: [SetupTopic] {
    devices.indices.flatMap { [SetupTopic.name($0), .area($0)] }
      + (devices.contains(where: needsPairingAnswer) ? [.pairing] : [])
  }

  var choiceQuestion: SetupQuestion { candidates?.isEmpty == false ? whichDevices : nothingFound }

  private var whichDevices: SetupQuestion {
    let candidates = candidates ?? []
    let rows = candidates.enumerated().map { index, candidate in
      [
        "  \(index + 1)", candidate.name.map(Excerpt.harmless) ?? "-", candidate.address.description,
        candidate.signal.map(Self.describe) ?? "connected",
        present.entry(of: candidate.address).map { entry in
          "configured" + (entry["id"]?.text.map { " as \(Excerpt.harmless($0))" } ?? "")
        } ?? "",
      ]
    }
    let known = candidates.indices.filter { present.entry(of: candidates[$0].address) != nil }
    let preset =
      !known.isEmpty
      ? known.map { "\($0 + 1)" }.joined(separator: ",")
      : present.hasOwnEntries ? "none" : "all"
    return SetupQuestion(
      topic: .devices, lines: [""] + aligned(rows) + [""],
      prompt: "Which micro:bits? (1,3 / all\(none) / again)", preset: preset)
  }

  /// The answer that leaves the micro:bits as they are.
  private var none: String { present.hasOwnEntries || present.hasEveryMicrobit ? " / none" : "" }

  /// `-53 dBm, strong`: helps the user to tell micro:bits apart.
  private static func describe(_ signal: Int) -> String {
    "\(signal) dBm, " + (signal >= -60 ? "strong" : signal >= -80 ? "good" : "weak")
  }

  private var nothingFound: SetupQuestion {
    let reason =
      scanProblem.map { [$0] } ?? [
        "No micro:bit was found. A program with Bluetooth services must be running on it, and no phone or",
        "tablet may be connected to it.",
      ]
    return SetupQuestion(
      topic: .devices,
      lines: [""] + reason + [
        "Type again to scan again, or every to use every micro:bit that comes into range."
      ], prompt: "What now? (again / every\(none))",
      preset: present.hasOwnEntries && scanProblem == nil ? "none" : nil)
  }

  func nameQuestion(_ index: Int) -> SetupQuestion {
    let device = devices[index]
    let title = device.bluetoothName.map(Excerpt.harmless) ?? device.address.description
    return SetupQuestion(
      topic: .name(index), lines: ["", "\(title) (\(device.address))"],
      prompt: index == 0 ? "  Name, for example Window" : "  Name", preset: presetName(of: device))
  }

  private func presetName(of device: SetupDevice) -> String {
    let entry = present.entry(of: device.address)
    return entry?["name"]?.text ?? entry?["id"]?.text ?? SetupCandidate.letters(of: device.bluetoothName)
      ?? device.address.compact
  }

  func areaQuestion(_ index: Int) -> SetupQuestion {
    let area = devices[index].area
    let hint = area != nil ? " (- for none)" : index == 0 ? ", for example Kitchen (may be empty)" : ""
    return SetupQuestion(topic: .area(index), prompt: "  Area\(hint)", preset: area ?? "")
  }
}
