import Configuration
import GATT
import JSON

/// What `init` knows so far, and the configuration that follows from it.
struct SetupAnswers {
  let present: PresentConfiguration
  /// The options of the command line that answer questions, by their names.
  var given: [String: String] = [:]
  /// Whether the command line has chosen the micro:bits.
  var isChosen = false
  /// The micro:bits that were found, by name; nil: to be looked for.
  var candidates: [SetupDevice]?
  /// Why micro:bits cannot be looked for.
  var scanProblem: String?
  /// The micro:bits that are used.
  var devices: [SetupDevice] = []
  /// Whether micro:bits that come into range later are used as well.
  var servesLater = false
  /// `mqtt` of the new config.json.
  private(set) var mqtt: JSONValue
  private var password: [UInt8]?
  /// Whether the password is still to be written to its file.
  private var isPasswordNew = false
  /// Whether the page for a browser is served; nil: not asked yet.
  var servesPage: Bool?
  /// Whether the service that uses the configuration can read a file.
  var isReadable: (String) -> Bool = { _ in true }
  /// What to do as the broker cannot be used: `t`, try again; `c`, change the answers; `k`, keep them.
  private(set) var reaction: Character = "t"
  /// Whether to turn Bluetooth on, to write the configuration, or to start the service.
  var isAgreed = false

  init(_ present: PresentConfiguration) {
    self.present = present
    let now = present.configuration.mqtt
    mqtt = present.document?["mqtt"] ?? [:]
    if now.hosts == nil { mqtt.set("host", to: .string(now.host)) }
    mqtt.set("port", to: .integer(now.port))
    if now.tls == nil { mqtt.set("tls", to: nil) }
    password = present.password
  }

  // MARK: Micro:bits

  mutating func setFound(_ found: [SetupDevice], _ problem: String?) {
    candidates = found.sorted { ($0.name ?? "", $0.address.value) < ($1.name ?? "", $1.address.value) }
    scanProblem = problem
    for index in devices.indices {
      devices[index].name = found.first { $0.address == devices[index].address }?.name
    }
  }

  /// `1,3-4`, `all`, `none`, `every` or `again`.
  mutating func choose(_ text: String) throws(SetupRefusal) {
    let found = candidates ?? []
    switch text.lowercased() {
    case "again": candidates = nil
    case "every": (devices, servesLater) = (found, true)
    case "none": devices = []
    case "all" where !found.isEmpty: devices = found
    case _ where found.isEmpty: throw SetupRefusal("Please answer again, every or none.")
    case let text:
      let numbers = text.split { $0 == "," || $0 == " " }.flatMap { part -> [Int] in
        let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        guard ends.count <= 2, 1 <= ends[0], ends[0] <= ends[ends.count - 1],
          ends[ends.count - 1] <= found.count
        else { return [0] }
        return Array(ends[0]...ends[ends.count - 1])
      }
      guard !numbers.isEmpty, !numbers.contains(0) else {
        throw SetupRefusal("The list has the numbers 1 to \(found.count): answer for example 1,3 or all.")
      }
      // The devices are taken once each, in the order of the answer.
      devices = numbers.indices.filter { numbers.firstIndex(of: numbers[$0]) == $0 }.map {
        found[numbers[$0] - 1]
      }
    }
  }

  /// The id in topics follows from the name.
  mutating func setName(_ text: String, of index: Int) throws {
    var device = devices[index]
    let letters = device.letters.flatMap(TopicWord.similar)
    if text != device.presetName {
      device.id = TopicWord.similar(to: text) ?? device.id ?? letters
      try device.set("name", text)
    } else if !device.isConfigured {
      device.id = letters
    }
    // An id is part of a device's topics: no two may have the same.
    let chosen = Set(devices.map(\.address))
    let configured = present.entries.filter { entry in entry.address.map { !chosen.contains($0) } ?? true }
    let id = device.entry.topic
    if let other = (devices[..<index].map(\.entry) + configured).first(where: { $0.topic == id }) {
      let owner = other.address.map { "the micro:bit \($0)" } ?? "another entry"
      throw SetupRefusal(
        "\(Excerpt(id ?? "")) is already the name of \(owner) in topics: choose another name.")
    }
    devices[index] = device
  }

  // MARK: The broker

  /// Sets a key of `mqtt`, by the rules of config.json.
  mutating func set(_ key: String, _ value: JSONValue?) throws(SetupRefusal) {
    let document: JSONValue = ["mqtt": ([:] as JSONValue).setting(key, to: value)]
    if case .failure(let errors) = Configuration.parse(document.bytes), let error = errors.errors.first {
      // What follows is about other keys.
      let hint = error.hint?.split(separator: ";").first.map { ": \($0)" } ?? ""
      throw SetupRefusal(error.problem + hint + (key == "host" ? "; the port is asked for later." : "."))
    }
    if key == "host" { mqtt.set("hosts", to: nil) }
    mqtt.set(key, to: value)
  }

  mutating func setEncryption(_ isEncrypted: Bool) {
    let usual = mqtt["tls"] == nil ? 1883 : 8883
    if mqtt["port"] == .integer(usual) {
      mqtt.set("port", to: .integer(isEncrypted ? 8883 : 1883))
    }
    mqtt.set("tls", to: isEncrypted ? mqtt["tls"] ?? [:] : nil)
  }

  /// - Parameter file: a typed path is relative to the working folder, one in config.json to the folder of config.json.
  mutating func setCAFile(_ file: String?) throws(SetupRefusal) {
    guard let tls = mqtt["tls"], file != tls["ca_file"]?.text else { return }
    let path = file?.absolutePath
    if let path, !isReadable(path) {
      throw SetupRefusal(
        "The service may not read \(path). Make a copy, and name that: "
          + ServiceAccess.copyCommand(path, to: present.folder))
    }
    mqtt.set("tls", to: tls.setting("ca_file", to: path.map(JSONValue.string)))
  }

  mutating func setUsername(_ username: String?) throws(SetupRefusal) {
    let before = mqtt["username"]?.text
    try set("username", username.map(JSONValue.string))
    // The password was that of another user.
    if username != before { setPassword(nil, in: nil) }
  }

  /// Puts the password into the file beside config.json. A file elsewhere may be another program's too.
  mutating func setPassword(_ password: [UInt8]) {
    let file = present.document?["mqtt"]?["password_file"]?.text
    if password == present.password { return setPassword(password, in: file) }
    let name = file.flatMap { $0.contains("/") ? nil : $0 } ?? SetupPlan().passwordFile
    setPassword(password, in: name, isNew: true)
  }

  private mutating func setPassword(_ password: [UInt8]?, in file: String?, isNew: Bool = false) {
    (self.password, isPasswordNew) = (password, isNew)
    mqtt.set("password_file", to: file.map(JSONValue.string))
  }

  mutating func setReaction(_ answer: String) throws(SetupRefusal) {
    guard let letter = answer.lowercased().first, "tck".contains(letter) else {
      throw SetupRefusal("Please answer t, c or k.")
    }
    reaction = letter
    if letter == "c" { given = [:] }
  }

  // MARK: The result

  private var document: JSONValue {
    var document = (present.document ?? [:]).setting("mqtt", to: mqtt)
    if let servesPage, servesPage != present.configuration.http.isEnabled {
      document.set("http", to: (document["http"] ?? [:]).setting("enabled", to: .bool(servesPage)))
    }
    return document.setting("devices", to: .array(entries))
  }

  /// Entries for one micro:bit come before those for several, as the first that matches is used.
  private var entries: [JSONValue] {
    var entries = present.entries
    for device in devices {
      if let index = entries.firstIndex(where: { $0.address == device.address }) {
        entries[index] = device.entry
      } else {
        entries.insert(device.entry, at: entries.firstIndex { $0.address == nil } ?? entries.endIndex)
      }
    }
    if !servesLater {
      entries.removeAll(where: \.isForEveryMicrobit)
    } else if !entries.contains(where: \.isForEveryMicrobit) {
      entries.append(.everyMicrobit)
    }
    return entries
  }

  /// The configuration that the answers make, with its password.
  func configuration() throws(CommandFailure) -> Configuration {
    do throws(ConfigurationErrors) {
      let bytes = Array(PresentConfiguration.text(document).utf8)
      var configuration = try ConfigurationFile.parse(bytes, in: present.folder).configuration
      configuration.mqtt.password = password
      if var tls = configuration.mqtt.tls {
        for file in [\Configuration.TLS.caFile, \.certFile, \.keyFile] {
          tls[keyPath: file] = tls[keyPath: file]?.resolved(in: present.folder)
        }
        configuration.mqtt.tls = tls
      }
      return configuration
    } catch {
      throw CommandFailure(.configuration, error.errors.map(\.description).joined(separator: "\n"))
    }
  }

  /// The changes to write.
  var plan: SetupPlan {
    SetupPlan(
      text: document == present.document ? nil : PresentConfiguration.text(document),
      password: isPasswordNew ? password : nil, passwordFile: mqtt["password_file"]?.text ?? "mqtt-password")
  }
}

/// What `init` writes.
struct SetupPlan: Equatable, Sendable {
  /// The new config.json; nil: it stays as it is.
  var text: String?
  var password: [UInt8]?
  /// The name of the file for the password, beside config.json.
  var passwordFile = "mqtt-password"

  var isEmpty: Bool { text == nil && password == nil }
}
