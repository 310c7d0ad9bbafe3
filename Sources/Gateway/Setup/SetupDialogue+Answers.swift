import Configuration
import GATT
import JSON

/// What the answers mean, and why some cannot be used.
extension SetupDialogue {
  // MARK: Micro:bits

  /// - Returns: false: look for micro:bits again.
  mutating func choose(_ text: String) throws(SetupRefusal) -> Bool {
    let candidates = candidates ?? []
    var chosen: [Int] = []
    switch text.lowercased() {
    case "again": return false
    case "every" where candidates.isEmpty: given[.later] = "y"
    case "none" where present.hasOwnEntries || present.hasEveryMicrobit: break
    case "all" where !candidates.isEmpty: chosen = Array(candidates.indices)
    case let numbers: chosen = try Self.numbers(numbers, upTo: candidates.count)
    }
    devices = chosen.map { index in
      let candidate = candidates[index]
      var device = SetupDevice(address: candidate.address, bluetoothName: candidate.name)
      if let entry = present.entry(of: candidate.address) {
        (device.name, device.id, device.room) = (entry["name"]?.text, entry["id"]?.text, entry["area"]?.text)
      }
      return device
    }
    return true
  }

  /// The indices for `1,3-4`, each once.
  private static func numbers(_ text: String, upTo count: Int) throws(SetupRefusal) -> [Int] {
    guard count > 0 else { throw SetupRefusal("Please type the word again, or the word every.") }
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
    let device = devices[index]
    let isPreset = text.isEmpty || text == presetName(of: device)
    namesWithoutID.remove(index)
    if isPreset, let entry = present.entry(of: device.address) {
      (devices[index].name, devices[index].id) = (entry["name"]?.text, entry["id"]?.text)
      return try checkUnique(entry["id"]?.text ?? device.address.compact, index)
    }
    if isPreset {
      let id = SetupCandidate.letters(of: device.bluetoothName).flatMap(TopicWord.similar)
      if let id { try checkUnique(id, index) }
      (devices[index].name, devices[index].id) = (nil, id)
      return
    }
    try Self.checkLabel(text)
    let id = TopicWord.similar(to: text)
    if let id { try checkUnique(id, index) } else { namesWithoutID.insert(index) }
    (devices[index].name, devices[index].id) = (text, id)
  }

  mutating func setID(_ text: String, of index: Int) throws(SetupRefusal) {
    do throws(DeviceID.Problem) {
      _ = try DeviceID(text)
    } catch {
      let reason =
        switch error {
        case .characters: "may only have the letters a to z, digits, - and _"
        case .reserved: "has another meaning in topics"
        }
      throw SetupRefusal("\(Excerpt(text)) \(reason).")
    }
    try checkUnique(text, index)
    devices[index].id = text
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

  static func checkLabel(_ text: String) throws(SetupRefusal) {
    var errors: [ConfigurationError] = []
    _ = ConfigurationRule<String>.label.read(.string(text), nil, .root, &errors)
    if let error = errors.first { throw SetupRefusal("The name \(error.problem).") }
  }

  // MARK: The broker

  mutating func setEncryption(_ isEncrypted: Bool) {
    if isEncrypted != broker.isEncrypted, broker.port == Self.usualPort(broker.isEncrypted) {
      broker.port = Self.usualPort(isEncrypted)
    }
    broker.isEncrypted = isEncrypted
    if !isEncrypted { broker.caFile = nil }
  }

  /// The absolute name of a file that the service can read.
  func readable(_ file: String) throws(SetupRefusal) -> String {
    let file = Setup.absolute(file)
    guard isReadable(file) else {
      throw SetupRefusal(
        "The service may not read \(file). Make a copy, and name that: \(ServiceAccess.copyCommand(file))")
    }
    return file
  }

  private static func usualPort(_ isEncrypted: Bool) -> Int { isEncrypted ? 8883 : 1883 }

  mutating func setPort(_ text: String) throws(SetupRefusal) {
    guard let port = Int(text), (1...65535).contains(port) else {
      throw SetupRefusal("\(Excerpt(text)) is not a port: a number from 1 to 65535, usually 1883.")
    }
    broker.port = port
  }

  mutating func setUsername(_ answer: String, _ question: SetupQuestion) throws(SetupRefusal) {
    let username = try optional(answer, question) { text throws(SetupRefusal) in
      try check(["username": .string(text)])
    }
    // A password from the command line belongs to this user.
    if username != broker.username, !isAnswered(.password) { broker.password = .none }
    broker.username = username
    if username == nil { broker.password = .none }
  }

  /// Checks keys of `mqtt` by the rules of config.json.
  func check(_ mqtt: JSONValue) throws(SetupRefusal) {
    let document: JSONValue = ["mqtt": mqtt]
    guard case .failure(let errors) = Configuration.parse(document.bytes), let error = errors.errors.first
    else { return }
    throw SetupRefusal("\(error.problem)\(error.hint.map { ": \($0)" } ?? "").")
  }

  // MARK: Kinds of answers

  func isYes(_ answer: String, _ question: SetupQuestion) throws(SetupRefusal) -> Bool {
    switch (answer.isEmpty ? question.preset ?? "" : answer).lowercased() {
    case "y", "yes": return true
    case "n", "no": return false
    default: throw SetupRefusal("Please answer y (yes) or n (no).")
    }
  }

  /// An empty line is the preset; `-` is nothing.
  func optional(
    _ answer: String, _ question: SetupQuestion, _ check: (String) throws(SetupRefusal) -> Void
  ) throws(SetupRefusal) -> String? {
    let text = answer.isEmpty ? question.preset ?? "" : answer
    if text.isEmpty || text == "-" { return nil }
    try check(text)
    return text
  }

  // MARK: The result

  /// The document that the answers make.
  private var document: JSONValue {
    SetupDocument.document(present, devices, servesLater: servesLater, broker)
  }

  /// The configuration that the answers make, with its password.
  var configuration: Result<Configuration, CommandFailure> {
    do throws(ConfigurationErrors) {
      var configuration = try ConfigurationFile.parse(
        Array(SetupDocument.text(document).utf8), in: present.folder
      ).configuration
      configuration.mqtt.password = broker.password.bytes
      if var tls = configuration.mqtt.tls {
        tls.caFile = tls.caFile?.resolved(in: present.folder)
        tls.certFile = tls.certFile?.resolved(in: present.folder)
        tls.keyFile = tls.keyFile?.resolved(in: present.folder)
        configuration.mqtt.tls = tls
      }
      return .success(configuration)
    } catch {
      return .failure(
        CommandFailure(.configuration, error.errors.map(\.description).joined(separator: "\n")))
    }
  }

  /// What differs from what is there.
  var plan: SetupPlan {
    let document = document
    var plan = SetupPlan()
    if document != present.document { plan.text = SetupDocument.text(document) }
    if case .typed(let bytes) = broker.password {
      plan.password = bytes
      plan.passwordFile = SetupDocument.name(present.document?["mqtt"]?["password_file"])
    }
    return plan
  }
}

extension String {
  /// Without white space at its ends.
  var trimmed: String {
    let rest = drop(while: \.isWhitespace)
    return String(rest.reversed().drop(while: \.isWhitespace).reversed())
  }
}
