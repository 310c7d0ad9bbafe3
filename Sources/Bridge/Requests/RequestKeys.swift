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
  case getProperty = "property/get"
  case setProperty = "property/set"
  case adapterState = "adapter/state"
  case sequence = "device/sequence"
  case resetAdapter = "adapter/reset"
  case setLogLevel = "log_level"

  /// Nil when there are errors.
  func read(_ json: JSONValue, _ errors: inout [ConfigurationError]) -> BridgeRequest.Content? {
    switch self {
    case .devices: NoKeys.read(json, &errors).map { _ in .devices }
    case .health: NoKeys.read(json, &errors).map { _ in .health }
    case .reload: NoKeys.read(json, &errors).map { _ in .reload }
    case .scan: ScanKeys.read(json, &errors).map { .scan(seconds: $0.timeout) }
    case .addDevice:
      AddKeys.read(json, &errors).flatMap { keys in
        keys.identifier.map { .addDevice($0, keys.options, desired: keys.desiredValues) }
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
    case .getProperty:
      PropertyGetKeys.read(json, &errors).flatMap { keys in
        keys.id.flatMap { id in keys.property.map { .getProperty($0, of: id) } }
      }
    case .setProperty: PropertySetKeys.read(json, &errors)?.content
    case .adapterState: AdapterKeys.read(json, &errors).map { .adapterState($0.adapter) }
    case .sequence:
      SequenceKeys.read(json, &errors).flatMap { keys in
        keys.id.map { .sequence($0, keys.steps.compactMap(\.step), seconds: keys.timeout) }
      }
    case .resetAdapter: AdapterKeys.read(json, &errors).map { .resetAdapter($0.adapter) }
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
    ConfigurationRule<Self>.section.read(json, nil, .root, &errors)
  }
}

extension ConfigurationRule<String> {
  /// Its value was read before, so that errors can be answered with it.
  fileprivate static var transaction: Self {
    ConfigurationRule(
      shape: .text(0...CommandPayload.longestTransaction),
      parse: { if case .string(let text) = $0 { text } else { nil } }, write: JSONValue.string)
  }
}

extension ConfigurationPath {
  func missing(_ name: String, hint: String) -> [ConfigurationError] {
    [key(name).error("this is missing", hint: hint)]
  }
}

let idHint = "the device's id, as in its topics"

private struct NoKeys: RequestKeys {
  static var own: [ConfigurationKey<Self>] { [] }
}

private struct ScanKeys: RequestKeys {
  /// In seconds.
  var timeout = 5

  static var own: [ConfigurationKey<Self>] { [ConfigurationKey("timeout", \.timeout, .integer(1...60))] }
}

private struct AddKeys: RequestKeys {
  var identifier: BluetoothAddress?
  var options = DeviceOptions()
  var desired: [Named<JSONValue>] = []
  var period: Int?

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("identifier", \.identifier, .optional(.address)),
      ConfigurationKey("id", \.options.id, .optional(.deviceID)),
      ConfigurationKey("name", \.options.name, .optional(.label)),
      ConfigurationKey("area", \.options.area, .optional(.label)),
      ConfigurationKey("profile", \.options.profile, .optional(.text(longest: TopicWord.longest))),
      ConfigurationKey("properties", \.options.properties, .optional(.list(of: .propertyName))),
      ConfigurationKey("desired", \.desired, .members(of: .any, names: Property.namePattern)),
      ConfigurationKey("period", \.period, .optional(.period)),
      ConfigurationKey("connect", \.options.connect, .optional(.choice)),
      ConfigurationKey("every", \.options.every, .optional(.visitInterval)),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    if identifier == nil {
      return path.missing("identifier", hint: "the Bluetooth address, like C5:A1:B2:C3:D4:E5")
    }
    return period != nil && desired.contains { $0.name == "period" } ? [.periodTwice(at: path)] : []
  }

  /// With the period.
  var desiredValues: [Named<JSONValue>] { desired + (period.map { [Named("period", .integer($0))] } ?? []) }
}

private struct DeviceKeys: RequestKeys {
  var id: DeviceID?

  static var own: [ConfigurationKey<Self>] { [ConfigurationKey("id", \.id, .optional(.deviceID))] }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    id == nil ? path.missing("id", hint: idHint) : []
  }
}

/// A device by its id, or by its address; for `device/inspect` also another peripheral.
private struct ReferenceKeys: RequestKeys {
  var id: DeviceID?
  var identifier: BluetoothAddress?

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.id, .optional(.deviceID)),
      ConfigurationKey("identifier", \.identifier, .optional(.address)),
    ]
  }

  var reference: DeviceReference? { id.map { .id($0) } ?? identifier.map { .address($0) } }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (id, identifier) {
    case (nil, nil): path.missing("id", hint: "\(idHint); or identifier, its Bluetooth address")
    case (.some, .some): [path.key("identifier").error("the device is named twice", hint: "leave out id")]
    case (.some, nil), (nil, .some): []
    }
  }
}

private struct PairKeys: RequestKeys {
  var device = ReferenceKeys()
  var passkey: Int?

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.device.id, .optional(.deviceID)),
      ConfigurationKey("identifier", \.device.identifier, .optional(.address)),
      ConfigurationKey("passkey", \.passkey, .optional(.passkey)),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] { device.problems(at: path) }
}

private struct RenameKeys: RequestKeys {
  var id: DeviceID?
  var to: DeviceID?

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.id, .optional(.deviceID)),
      ConfigurationKey("to", \.to, .optional(.deviceID)),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    (id == nil ? path.missing("id", hint: idHint) : [])
      + (to == nil ? path.missing("to", hint: "the new id") : [])
  }
}

private struct OptionsKeys: RequestKeys {
  var id: DeviceID?
  var options: DeviceOptionsUpdate?

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.id, .optional(.deviceID)),
      ConfigurationKey("options", \.options, .optional(.section)),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    (id == nil ? path.missing("id", hint: idHint) : [])
      + (options == nil
        ? path.missing(
          "options", hint: "an object of \(DeviceOptionsUpdate.keys.map(\.name).joined(separator: ", "))")
        : [])
  }
}

private struct SequenceKeys: RequestKeys {
  var id: DeviceID?
  var steps: [StepKeys] = []
  /// In seconds.
  var timeout = 60

  static var own: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("id", \.id, .optional(.deviceID)),
      ConfigurationKey("steps", \.steps, .list(of: .section)),
      ConfigurationKey("timeout", \.timeout, .integer(1...300)),
    ]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    var errors = id == nil ? path.missing("id", hint: idHint) : []
    if steps.isEmpty {
      errors += path.missing("steps", hint: #"a list like [{"read":"temperature"}]"#)
    } else if steps.count > DeviceManager.mostSteps {
      errors.append(
        path.key("steps").error("\(steps.count) steps, the maximum is \(DeviceManager.mostSteps)"))
    }
    return errors
  }
}

private struct StepKeys: ConfigurationSection {
  var write: WriteKeys?
  var read: String?

  static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey("write", \.write, .optional(.section)),
      ConfigurationKey("read", \.read, .optional(.propertyName)),
    ]
  }

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

  static var keys: [ConfigurationKey<Self>] {
    [
      ConfigurationKey(required: "property", \.property, .propertyName),
      ConfigurationKey(required: "value", \.value, .any),
    ]
  }
}

private struct AdapterKeys: RequestKeys {
  var adapter: String?

  static var own: [ConfigurationKey<Self>] { [ConfigurationKey("adapter", \.adapter, .optional(.adapter))] }
}

private struct LevelKeys: RequestKeys {
  var level: LogLevel?

  static var own: [ConfigurationKey<Self>] {
    [ConfigurationKey("level", \.level, .optional(.choice { .string($0.name) }))]
  }

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    level == nil
      ? path.missing("level", hint: LogLevel.allCases.map(\.name).joined(separator: ", ")) : []
  }
}
