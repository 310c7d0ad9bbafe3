import Configuration
import GATT

/// Where a value comes from. Commands and requests rank above config.json; of the two the latest counts.
enum ValueSource: String, Sendable {
  /// Nobody named it.
  case `default`
  case configuration = "config.json"
  /// A command on the device's own topics.
  case command
  /// A request to the gateway.
  case request
}

/// A value, and where it comes from.
struct Sourced<Value: Sendable & Equatable>: Sendable, Equatable {
  let value: Value
  let source: ValueSource

  init(_ value: Value, _ source: ValueSource) {
    self.value = value
    self.source = source
  }
}

/// What holds for a device: its entry in the configuration, and over it what requests and commands changed.
struct EffectiveDevice: Sendable, Equatable {
  let identifier: BluetoothAddress
  /// What it is to be called. Where ``hasSharedID``, the first that comes is called so, and the others go by
  /// their addresses.
  let id: Sourced<DeviceID>
  /// The id is that of an entry that several devices may match.
  let hasSharedID: Bool
  let name: Sourced<String?>
  /// Its own, else that of the gateway.
  let area: Sourced<String?>
  /// The wanted period in ms; nil: as the micro:bit has it.
  let period: Sourced<Int?>
  let isEnabled: Sourced<Bool>
  /// The only gateway that serves it; nil: whichever has it in reach.
  let gateway: Sourced<GatewayID?>
}

/// Whose a device is.
enum Ownership: Sendable, Equatable {
  case ours(EffectiveDevice)
  /// It is pinned to another gateway.
  case elsewhere(GatewayID, EffectiveDevice)
  /// No entry of the configuration matches, and no request added it.
  case unmatched
  /// A request removed it.
  case removed
}

extension Configuration {
  /// What holds for the device at `identifier`; nil when it is none of this gateway's.
  ///
  /// - Parameters:
  ///   - name: the Bluetooth name; nil while none was heard in this run: then the recorded one counts.
  ///   - gateway: this gateway.
  func effective(
    _ identifier: BluetoothAddress, name: String?, record: DeviceRecord?, in gateway: GatewayID
  ) -> EffectiveDevice? {
    switch ownership(identifier, name: name, record: record, in: gateway) {
    case .ours(let device): device
    case .elsewhere, .unmatched, .removed: nil
    }
  }

  /// Whose the device at `identifier` is, and what holds for it.
  func ownership(
    _ identifier: BluetoothAddress, name: String?, record: DeviceRecord?, in gateway: GatewayID
  ) -> Ownership {
    if let record, record.isRemoved { return .removed }
    let entry = device(matching: identifier, name: name ?? record?.name)
    guard entry != nil || record?.isAdded == true else { return .unmatched }
    let device = EffectiveDevice(identifier, entry, record, area: self.gateway.area)
    guard let pinned = device.gateway.value, pinned != gateway else { return .ours(device) }
    return .elsewhere(pinned, device)
  }
}

extension EffectiveDevice {
  init(
    _ identifier: BluetoothAddress, _ entry: Configuration.Device?, _ record: DeviceRecord?, area: String?
  ) {
    let changes = record?.changes ?? DeviceOptions()
    self.identifier = identifier
    let id = Self.layered(changes.id, entry?.id)
    self.id = Sourced(id.value ?? DeviceID(identifier), id.source)
    hasSharedID = id.source == .configuration && entry?.match.isIdentifier == false
    name = Self.layered(changes.name, entry?.name)
    self.area = Self.layered(changes.area, entry?.area ?? area)
    let wanted = record?.wanted[Property.microbitPeriod.name]
    period =
      wanted.map { Sourced($0, $0 == changes.period ? .request : .command) }
      ?? Self.layered(changes.period, entry?.period)
    let enabled = Self.layered(changes.isEnabled, entry?.isEnabled)
    isEnabled = Sourced(enabled.value ?? true, enabled.source)
    gateway = Self.layered(changes.gateway, entry?.gateway)
  }

  static func layered<Value>(_ request: Value?, _ configuration: Value?) -> Sourced<Value?> {
    if let request { return Sourced(request, .request) }
    if let configuration { return Sourced(configuration, .configuration) }
    return Sourced(nil, .default)
  }
}
