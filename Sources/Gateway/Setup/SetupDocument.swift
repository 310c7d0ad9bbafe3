import Configuration
import GATT
import JSON

/// The configuration that `init` finds.
struct PresentConfiguration: Equatable {
  /// Where it is, or will be.
  let path: String
  /// Nil: there is none, or it has errors.
  var document: JSONValue?
  var configuration = Configuration()
  /// The errors of the file that is there.
  var problem: String?
  /// Nil: there is none, or it cannot be read.
  var password: [UInt8]?

  var isThere: Bool { document != nil || problem != nil }
  var folder: String { ConfigurationFile.folder(of: path) }

  /// The entries of `devices`; if the key is left out, the default.
  var entries: [JSONValue] {
    guard let document else { return [] }
    return document["devices"]?.elements ?? [SetupDocument.every]
  }

  /// Whether there are entries besides the one for every micro:bit.
  var hasOwnEntries: Bool { entries.contains { $0["match"] != SetupDocument.every["match"] } }
  var hasEveryMicrobit: Bool { entries.contains { $0["match"] == SetupDocument.every["match"] } }

  /// The entry for one micro:bit.
  func entry(of address: BluetoothAddress) -> JSONValue? { entries.first { $0.address == address } }

  /// The broker, for the answers that stay.
  var broker: SetupBroker { SetupBroker(configuration.mqtt, password: password) }
}

/// The document that `init` writes: the present one, with the answers.
enum SetupDocument {
  /// How the names of micro:bits begin.
  static let prefix = "BBC micro:bit"
  /// The entry for every micro:bit.
  static let every: JSONValue = ["match": ["name_prefix": .string(prefix)]]
  /// The file for the password, beside config.json.
  static let passwordFile = "mqtt-password"

  static func document(
    _ present: PresentConfiguration, _ devices: [SetupDevice], servesLater: Bool, _ broker: SetupBroker
  ) -> JSONValue {
    let document = present.document ?? [:]
    return
      document
      .setting("mqtt", to: mqtt(document["mqtt"] ?? [:], broker))
      .setting("devices", to: .array(entries(present.entries, devices, servesLater: servesLater)))
  }

  private static func mqtt(_ present: JSONValue, _ broker: SetupBroker) -> JSONValue {
    let passwordFile: JSONValue? =
      switch broker.password {
      case .none: nil
      case .present: present["password_file"]
      case .typed: .string(name(present["password_file"]))
      case .file(let path, _): .string(path)
      }
    let tls: JSONValue = present["tls"] ?? [:]
    return
      present
      .setting("host", to: .string(broker.host))
      .setting("port", to: .integer(broker.port))
      .setting("username", to: broker.username.map(JSONValue.string))
      .setting("password_file", to: passwordFile)
      .setting(
        "tls", to: broker.isEncrypted ? tls.setting("ca_file", to: broker.caFile.map(JSONValue.string)) : nil)
  }

  /// The name of the file for a password that was typed: that of the present one, if it is beside config.json.
  static func name(_ present: JSONValue?) -> String {
    guard let name = present?.text, !name.contains("/") else { return passwordFile }
    return name
  }

  /// Entries for one micro:bit come before those for several, as the first that matches is used.
  private static func entries(
    _ present: [JSONValue], _ devices: [SetupDevice], servesLater: Bool
  ) -> [JSONValue] {
    var entries = present
    for device in devices {
      if let index = entries.firstIndex(where: { $0.address == device.address }) {
        entries[index] = entry(entries[index], device)
      } else {
        let match: JSONValue = ["match": ["identifier": .string(device.address.description)]]
        let end = entries.firstIndex { $0.address == nil } ?? entries.endIndex
        entries.insert(entry(match, device), at: end)
      }
    }
    let isThere = entries.contains { $0["match"] == every["match"] }
    if servesLater, !isThere { entries.append(every) }
    if !servesLater { entries.removeAll { $0["match"] == every["match"] } }
    return entries
  }

  private static func entry(_ present: JSONValue, _ device: SetupDevice) -> JSONValue {
    present
      .setting("id", to: device.id.map(JSONValue.string))
      .setting("name", to: device.name.map(JSONValue.string))
      .setting("area", to: device.area.map(JSONValue.string))
      .setting("pair", to: device.isPaired ? .bool(true) : present["pair"])
  }

  /// As written to the file.
  static func text(_ document: JSONValue) -> String { document.text(expanded: 2) + "\n" }

  /// The lines that differ, with `-` and `+`.
  static func changes(from old: String, to new: String) -> [String] {
    let (old, new) = (old.split(separator: "\n"), new.split(separator: "\n"))
    var (removed, inserted): (Set<Int>, Set<Int>) = ([], [])
    for change in new.difference(from: old) {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var (lines, i, j): ([String], Int, Int) = ([], 0, 0)
    while i < old.count || j < new.count {
      if removed.contains(i) {
        lines.append("- \(old[i])")
        i += 1
      } else if inserted.contains(j) {
        lines.append("+ \(new[j])")
        j += 1
      } else {
        (i, j) = (i + 1, j + 1)
      }
    }
    return lines
  }
}

/// What `init` writes.
struct SetupPlan: Equatable, Sendable {
  /// Nil: config.json stays as it is.
  var text: String?
  var password: [UInt8]?
  /// The name of the file for the password.
  var passwordFile = SetupDocument.passwordFile

  var isEmpty: Bool { text == nil && password == nil }
}

extension JSONValue {
  /// The address that the entry of `devices` is for.
  var address: BluetoothAddress? {
    self["match"]?["identifier"]?.text.flatMap { BluetoothAddress($0) }
  }
}
