import Configuration
import GATT
import JSON

/// A micro:bit that was found, or is to be used.
struct SetupDevice {
  let address: BluetoothAddress
  /// The Bluetooth name; nil: unknown.
  var name: String?
  /// The signal in dBm; nil: unknown.
  let signal: Int?
  /// Whether the micro:bit is connected: it does not advertise then.
  let isConnected: Bool
  /// The entry in config.json: the present one, or a new one.
  var entry: JSONValue
  /// Whether config.json has the entry already.
  let isConfigured: Bool
  /// The name and the area by the command line, as far as they are given; nil if it does not name the micro:bit.
  private(set) var given: [String]?

  init(
    _ address: BluetoothAddress, name: String? = nil, signal: Int? = nil, isConnected: Bool = false,
    in present: PresentConfiguration
  ) {
    (self.address, self.name, self.signal, self.isConnected) = (address, name, signal, isConnected)
    let entry = present.entries.first { $0.address == address }
    isConfigured = entry != nil
    self.entry = entry ?? ["match": ["identifier": .string(address.description)]]
  }

  /// Reads the option `--device`: `ADDRESS=NAME,AREA`.
  init(option text: String, in present: PresentConfiguration) throws(CommandFailure) {
    let parts = text.split(separator: "=", maxSplits: 1)
    guard
      let address = parts.first.flatMap({ BluetoothAddress($0) ?? BluetoothAddress(compact: $0.lowercased()) }
      )
    else {
      throw CommandFailure(
        .usage, "--device \(text): must begin with an address such as C5:A1:B2:C3:D4:E5 (see init or scan)")
    }
    self.init(address, in: present)
    given = parts.dropFirst().joined().split(separator: ",", maxSplits: 1).map(String.init)
  }

  /// The letters in brackets of `BBC micro:bit [zugev]`.
  var letters: String? { name.flatMap(Profile.microbitLetters) }

  /// What the micro:bit is called if no other name is given.
  var presetName: String { entry["name"]?.text ?? id ?? letters ?? address.compact }

  var id: String? {
    get { entry["id"]?.text }
    set { entry.set("id", to: newValue.map(JSONValue.string)) }
  }

  /// Sets the name or the area.
  mutating func set(_ key: String, _ text: String?) throws(SetupRefusal) {
    var errors: [ConfigurationError] = []
    if let text { _ = ConfigurationRule<String>.label.read(.string(text), nil, .root, &errors) }
    if let error = errors.first { throw SetupRefusal("The name \(error.problem).") }
    entry.set(key, to: text.map(JSONValue.string))
  }

  /// What the list of found micro:bits shows. The signal helps to tell them apart.
  var row: [String] {
    let strength = signal.map { "\($0) dBm, " + ($0 >= -60 ? "strong" : $0 >= -80 ? "good" : "weak") }
    let parts = [strength, isConnected ? "connected" : nil].compactMap { $0 }
    let configured = "configured" + (id.map { " as \(Excerpt.harmless($0))" } ?? "")
    return [
      name.map(Excerpt.harmless) ?? "-", address.description, parts.joined(separator: ", "),
      isConfigured ? configured : "",
    ]
  }
}

extension JSONValue {
  static let everyMicrobit: JSONValue = ["match": ["name_prefix": .string(Profile.microbitNamePrefix)]]

  var isForEveryMicrobit: Bool { self["match"] == Self.everyMicrobit["match"] }

  /// The address that the entry names; nil: it is for several devices.
  var address: BluetoothAddress? {
    self["match"]?["identifier"]?.text.flatMap { BluetoothAddress($0) }
  }

  /// The name of the device in topics.
  var topic: String? { self["id"]?.text ?? address?.compact }
}
