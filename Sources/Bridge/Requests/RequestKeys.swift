import Configuration
import Devices
import GATT
import JSON
import Log

/// The requests and their keys.
enum Verb: String, CaseIterable, Sendable {
  case devices
  case health
  case reload
  case scan
  case addDevice = "device/add"
  case removeDevice = "device/remove"
  case reconnectDevice = "device/reconnect"
  case renameDevice = "device/rename"
  case pairDevice = "device/pair"
  case unpairDevice = "device/unpair"
  case setOptions = "device/options"
  case inspectDevice = "device/inspect"
  case identifyDevice = "device/identify"
  case getProperty = "property/get"
  case setProperty = "property/set"
  case removeValue = "value/remove"
  case adapterState = "adapter/state"
  case sequence = "device/sequence"
  case resetAdapter = "adapter/reset"
  case setLogLevel = "log_level"
  case permitJoin = "permit_join"

  /// Nil when there are errors.
  func read(_ json: JSONValue, _ errors: inout [ConfigurationError]) -> BridgeRequest.Content? {
    switch self {
    case .devices: NoKeys.read(json, &errors).map { _ in .devices }
    case .health: NoKeys.read(json, &errors).map { _ in .health }
    case .reload: NoKeys.read(json, &errors).map { _ in .reload }
    case .scan: ScanKeys.read(json, &errors).map { .scan(seconds: $0.timeout) }
    case .addDevice:
      AddKeys.read(json, &errors).flatMap { keys in
        keys.identifier.map { .addDevice($0, keys.options) }
      }
    case .removeDevice: DeviceKeys.read(json, &errors)?.id.map { .removeDevice($0) }
    case .reconnectDevice: DeviceKeys.read(json, &errors)?.id.map { .reconnectDevice($0) }
    case .renameDevice:
      RenameKeys.read(json, &errors).flatMap { keys in
        keys.id.flatMap { id in keys.to.map { .renameDevice(id, to: $0) } }
      }
    case .pairDevice:
      PairKeys.read(json, &errors).flatMap { keys in
        keys.device.reference.map { .pairDevice($0, passkey: keys.passkey) }
      }
    case .unpairDevice: ReferenceKeys.read(json, &errors)?.reference.map { .unpairDevice($0) }
    case .setOptions:
      OptionsKeys.read(json, &errors).flatMap { keys in
        keys.id.flatMap { id in keys.options.map { .setOptions(id, $0) } }
      }
    case .inspectDevice: ReferenceKeys.read(json, &errors)?.reference.map { .inspectDevice($0) }
    case .identifyDevice: DeviceKeys.read(json, &errors)?.id.map { .identifyDevice($0) }
    case .getProperty:
      PropertyGetKeys.read(json, &errors).flatMap { keys in
        keys.id.flatMap { id in keys.property.map { .getProperty($0, of: id) } }
      }
    case .setProperty: PropertySetKeys.read(json, &errors)?.content
    case .removeValue:
      PropertyGetKeys.read(json, &errors).flatMap { keys in
        keys.id.flatMap { id in keys.property.map { .removeValue($0, of: id) } }
      }
    case .adapterState: AdapterKeys.read(json, &errors).map { .adapterState($0.adapter) }
    case .sequence:
      SequenceKeys.read(json, &errors).flatMap { keys in
        keys.id.map { .sequence($0, keys.steps.compactMap(\.step), seconds: keys.timeout) }
      }
    case .resetAdapter: AdapterKeys.read(json, &errors).map { .resetAdapter($0.adapter) }
    case .permitJoin: PermitJoinKeys.read(json, &errors).map { .permitJoin(seconds: $0.time, $0.device) }
    case .setLogLevel: LevelKeys.read(json, &errors)?.level.map { .setLogLevel($0) }
    }
  }
}

/// The keys of a request: the section's own, and `transaction`.
package protocol RequestKeys: ConfigurationSection {
  static var own: [ConfigurationKey<Self>] { get }
}

extension RequestKeys {
  package static var keys: [ConfigurationKey<Self>] {
    own + [ConfigurationKey(ignored: "transaction", .transaction)]
  }

  static func read(_ json: JSONValue, _ errors: inout [ConfigurationError]) -> Self? {
    read(json, nil, .root, &errors)
  }
}

extension ConfigurationRule<String> {
  /// Its value was read before, so that errors can be answered with it.
  fileprivate static var transaction: Self {
    ConfigurationRule(
      shape: .text(0...Sender.longestTransaction),
      parse: \.text, write: JSONValue.string)
  }
}

let idHint = "the device's id, as in its topics"

extension ConfigurationKey {
  /// The device that a request is about.
  static func id(_ place: WritableKeyPath<Section, DeviceID?> & Sendable) -> Self {
    ConfigurationKey(required: "id", place, .deviceID, hint: idHint)
  }
}

private struct NoKeys: RequestKeys {
  static let own: [ConfigurationKey<Self>] = []
}

private struct ScanKeys: RequestKeys {
  /// In seconds.
  var timeout = 5

  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("timeout", \.timeout, .integer(1...60))]
}

private struct AddKeys: RequestKeys {
  var identifier: BluetoothAddress?
  var options = DeviceOptionsPatch()

  static let own: [ConfigurationKey<Self>] =
    [
      ConfigurationKey(
        required: "identifier", \.identifier, .address, hint: "the Bluetooth address, like C5:A1:B2:C3:D4:E5")
    ] + DeviceOptionTable.all.filter(\.requests.includesAdd).map { ConfigurationKey($0, \.options.options) }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { options.problems(at: path) }
}

private struct DeviceKeys: RequestKeys {
  var id: DeviceID?

  static let own: [ConfigurationKey<Self>] = [.id(\.id)]
}

/// A device by its id, or by its address; for `device/inspect` also another peripheral.
private struct ReferenceKeys: RequestKeys {
  var id: DeviceID?
  var identifier: BluetoothAddress?

  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.id, .optional(.deviceID)),
    ConfigurationKey("identifier", \.identifier, .optional(.address)),
  ]

  var reference: DeviceReference? { id.map { .id($0) } ?? identifier.map { .address($0) } }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (id, identifier) {
    case (nil, nil):
      [path.key("id").error("this is missing", hint: "\(idHint); or identifier, its Bluetooth address")]
    case (.some, .some): [path.key("identifier").error("the device is named twice", hint: "leave out id")]
    case (.some, nil), (nil, .some): []
    }
  }
}

private struct PairKeys: RequestKeys {
  var device = ReferenceKeys()
  var passkey: Int?

  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.device.id, .optional(.deviceID)),
    ConfigurationKey("identifier", \.device.identifier, .optional(.address)),
    ConfigurationKey("passkey", \.passkey, .optional(.passkey)),
  ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { device.problems(at: path) }
}

private struct RenameKeys: RequestKeys {
  var id: DeviceID?
  var to: DeviceID?

  static let own: [ConfigurationKey<Self>] = [
    .id(\.id), ConfigurationKey(required: "to", \.to, .deviceID, hint: "the new id"),
  ]
}

private struct OptionsKeys: RequestKeys {
  var id: DeviceID?
  var options: DeviceOptionsPatch?

  static let own: [ConfigurationKey<Self>] = {
    let names = DeviceOptionsPatch.keys.map(\.name).joined(separator: ", ")
    return [
      .id(\.id), ConfigurationKey(required: "options", \.options, .section, hint: "an object of \(names)"),
    ]
  }()
}

private struct SequenceKeys: RequestKeys {
  var id: DeviceID?
  var steps: [StepKeys] = []
  /// In seconds.
  var timeout = 60

  static let own: [ConfigurationKey<Self>] = [
    .id(\.id), ConfigurationKey("steps", \.steps, .list(of: .section)),
    ConfigurationKey("timeout", \.timeout, .integer(1...300)),
  ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    let path = path.key("steps")
    if steps.isEmpty {
      return [path.error("this is missing", hint: #"a list like [{"read":"temperature"}]"#)]
    }
    guard steps.count > DeviceManager.mostSteps else { return [] }
    return [path.error("\(steps.count) steps, the maximum is \(DeviceManager.mostSteps)")]
  }
}

private struct StepKeys: ConfigurationSection {
  var write: WriteKeys?
  var read: String?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("write", \.write, .optional(.section)),
    ConfigurationKey("read", \.read, .optional(.propertyName)),
  ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    (write == nil) == (read == nil) ? [path.error("a step has one key: write or read")] : []
  }

  var step: SequenceStep? {
    if let read { return .read(property: read) }
    guard let property = write?.property, let value = write?.value else { return nil }
    return .write(property: property, value: value)
  }
}

private struct WriteKeys: ConfigurationSection {
  var property: String?
  var value: JSONValue?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "property", \.property, .propertyName),
    ConfigurationKey(required: "value", \.value, .any),
  ]
}

private struct AdapterKeys: RequestKeys {
  var adapter: String?

  static let own: [ConfigurationKey<Self>] = [ConfigurationKey("adapter", \.adapter, .optional(.adapter))]
}

private struct PermitJoinKeys: RequestKeys {
  /// In seconds.
  var time = 254
  var device: BluetoothAddress?

  static let own: [ConfigurationKey<Self>] = [
    ConfigurationKey("time", \.time, .integer(0...DeviceManager.longestPermitJoin)),
    ConfigurationKey("device", \.device, .optional(.address)),
  ]
}

private struct LevelKeys: RequestKeys {
  var level: LogLevel?

  static let own: [ConfigurationKey<Self>] = {
    let names = LogLevel.allCases.map(\.name).joined(separator: ", ")
    return [ConfigurationKey(required: "level", \.level, .choice { .string($0.name) }, hint: names)]
  }()
}
