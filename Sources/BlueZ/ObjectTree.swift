import DBus
import EventLoop
import GATT

/// BlueZ's objects as reported by its signals: one adapter, its devices, their services and characteristics.
///
/// A pure state machine: each event returns what it changed. Signals are authoritative, not the replies to calls (the
/// link may have ended before the reply to Connect is read).
struct ObjectTree: Sendable {
  struct Adapter: Sendable, Equatable {
    var address = ""
    var isPowered = false
    var isDiscovering = false
    /// Whether the adapter can be a central, as those with Bluetooth LE can.
    var isCentral = true
    /// BlueZ 5.65 and newer with experimental features: `on`, `off`, `off-blocked` ….
    var powerState: String?
  }

  struct Device: Sendable, Equatable {
    var peripheral: Peripheral
    /// How many signals have reported `Connected`.
    var linkChanges = 0
    var servicesResolved = false
    /// Why the link ends, if that is known.
    fileprivate var endReason: String?
    fileprivate(set) var services = ServiceTable()

    var isConnected: Bool { peripheral.isConnected }
    var isPaired: Bool { peripheral.isPaired }

    /// Whether the device offers HID over GATT.
    var offersInput: Bool {
      peripheral.services.contains(Self.inputService) || services.offers(Self.inputService)
    }

    /// Whether bluetoothd makes the device a keyboard or mouse of this machine.
    var isInputDevice: Bool { isPaired && offersInput }

    private static let inputService = BluetoothUUID(short: 0x1812)

    /// The end of the link.
    fileprivate var linkEnd: Change { .disconnected(peripheral.id.path, reason: endReason) }
  }

  enum Change: Sendable, Equatable {
    /// The adapter was added, changed or removed, or bluetoothd has ended, and all objects with it.
    case adapter
    /// An adapter of bluetoothd, this or another one, was added or removed.
    case addresses
    /// The device is new or was changed.
    case device(String)
    /// The device offers HID over GATT and has a bond, one of them since now.
    case inputDevice(String)
    /// A characteristic of the device at this path has come or gone, while its services were resolved.
    case characteristics(String)
    /// The link ended, and why, if that is known.
    case disconnected(String, reason: String?)
    /// The device was removed, other than on request.
    case deviceRemoved(String)
  }

  var adapterPath: String
  /// The adapter; nil while it is absent.
  private(set) var adapter: Adapter?
  /// The addresses of all of bluetoothd's adapters, by their names.
  private(set) var addresses: [String: String] = [:]
  /// Whether bluetoothd can monitor advertisements on it: only with its experimental features.
  private(set) var offersMonitors = false
  private(set) var devices: [String: Device] = [:]
  /// How many signals have reported the `RSSI` of any device, or data of its advertisements. bluetoothd removes and adds
  /// a device that is silent for 30 s, and starts anew: what was received is counted across all of that.
  private(set) var advertisements = 0
  private var reportCount = 0
  /// Counts the characteristics that have come.
  private var generation = 0
  /// The devices that are about to be removed on request.
  private(set) var expectedRemovals: Set<String> = []

  init(adapter path: String) { adapterPath = path }

  // MARK: Queries

  func peripheral(at path: String) -> Peripheral? { devices[path]?.peripheral }

  /// The characteristics of a device in the order of their handles.
  func characteristics(of id: PeripheralID) -> [Characteristic] {
    devices[id.path]?.services.characteristics(of: id) ?? []
  }

  /// The descriptors of a characteristic in the order of their handles.
  func descriptors(of characteristic: Characteristic) -> [Descriptor] {
    devices[characteristic.peripheral.path]?.services.descriptors(of: characteristic) ?? []
  }

  /// Whether the device still has the characteristic.
  func contains(_ characteristic: Characteristic) -> Bool {
    devices[characteristic.peripheral.path]?.services.contains(characteristic) == true
  }

  // MARK: Events

  /// The next removal of the device is not reported.
  mutating func expectRemoval(of path: String, _ isExpected: Bool) {
    if isExpected { expectedRemovals.insert(path) } else { expectedRemovals.remove(path) }
  }

  mutating func apply(_ event: BlueZEvent) -> [Change] {
    let changes = applyToObjects(event)
    let before = addresses
    noteAddress(event)
    return addresses == before ? changes : changes + [.addresses]
  }

  /// Adapters beside this one are known by their addresses alone.
  private mutating func noteAddress(_ event: BlueZEvent) {
    switch event {
    case .added(let path, let interfaces):
      guard let adapter = interfaces[BlueZName.adapter] else { return }
      addresses[BlueZName.adapterName(path)] = adapter["Address"]?.text ?? ""
    case .removed(let path, let interfaces) where interfaces.contains(BlueZName.adapter):
      addresses[BlueZName.adapterName(path)] = nil
    case .removed, .changed, .linkEnded, .owner: break
    }
  }

  private mutating func applyToObjects(_ event: BlueZEvent) -> [Change] {
    switch event {
    case .added(let path, _) where !isOwn(path), .removed(let path, _) where !isOwn(path),
      .changed(let path, _, _, _) where !isOwn(path), .linkEnded(let path, _) where !isOwn(path):
      return []
    case .added(let path, let interfaces):
      return interfaces.flatMap { add(path, $0.key, $0.value) }
    case .removed(let path, let interfaces):
      return interfaces.flatMap { remove(path, $0) }
    case .changed(let path, let interface, let properties, let invalidated):
      return change(path, interface, properties, invalidated)
    case .linkEnded(let path, let reason):
      // bluetoothd signals it at once, and `Connected` as soon as it is idle; of an attempt without a link, it alone.
      if devices[path]?.isConnected == true { devices[path]?.endReason = reason }
      return []
    case .owner:
      expectedRemovals = []
      let gone = devices.keys.sorted().flatMap { remove($0, BlueZName.device) }
      let counts = (advertisements, reportCount)
      self = ObjectTree(adapter: adapterPath)
      (advertisements, reportCount) = counts
      return gone + [.adapter]
    }
  }

  /// Whether the object is the adapter or one of its devices' objects.
  private func isOwn(_ path: String) -> Bool {
    path.hasPrefix(adapterPath) && [nil, "/"].contains(path.dropFirst(adapterPath.count).first)
  }

  private mutating func add(_ path: String, _ interface: String, _ properties: BlueZEvent.Properties)
    -> [Change]
  {
    switch interface {
    case BlueZName.adapter:
      adapter = Adapter()
      return adapterChanged(properties)
    case BlueZName.device:
      // An object may be reported twice (by GetManagedObjects and by a signal): keep its state.
      if devices[path] == nil {
        guard let address = Self.address(of: properties) else { return [] }
        devices[path] = Device(peripheral: Peripheral(id: PeripheralID(path: path), address: address))
      }
      return deviceChanged(path, properties, [])
    case BlueZName.monitorManager:
      offersMonitors = true
      return [.adapter]
    case BlueZName.gattService:
      guard let uuid = Self.uuid(of: properties), let place = AttributePath(path, depth: 1) else { return [] }
      let wasInputDevice = devices[place.device]?.isInputDevice == true
      guard devices[place.device]?.services.add(service: place.service, uuid) == true else { return [] }
      return inputDevice(place.device, before: wasInputDevice) + [.device(place.device)]
    case BlueZName.characteristic:
      let flags = Characteristic.Flags(names: properties["Flags"]?.textArray ?? [])
      guard let uuid = Self.uuid(of: properties), let place = AttributePath(path, depth: 2),
        devices[place.device]?.services.add(place, uuid, flags, generation: generation + 1) == true
      else { return [] }
      generation += 1
      return characteristicsChanged(of: place.device)
    case BlueZName.descriptor:
      if let uuid = Self.uuid(of: properties), let place = AttributePath(path, depth: 3) {
        devices[place.device]?.services.add(Descriptor(uuid: uuid, path: path), place)
      }
      return []
    default:
      return []
    }
  }

  private static func address(of properties: BlueZEvent.Properties) -> BluetoothAddress? {
    properties["Address"]?.text.flatMap { BluetoothAddress($0) }
  }

  static func uuid(of properties: BlueZEvent.Properties) -> BluetoothUUID? {
    properties["UUID"]?.text.flatMap { BluetoothUUID($0) }
  }

  private mutating func remove(_ path: String, _ interface: String) -> [Change] {
    switch interface {
    case BlueZName.adapter:
      defer { adapter = nil }
      return adapter == nil ? [] : [.adapter]
    case BlueZName.monitorManager:
      offersMonitors = false
      return [.adapter]
    case BlueZName.device:
      guard let device = devices.removeValue(forKey: path) else { return [] }
      let isExpected = expectedRemovals.remove(path) != nil
      return (device.isConnected ? [device.linkEnd] : []) + (isExpected ? [] : [.deviceRemoved(path)])
    case BlueZName.gattService:
      guard let place = AttributePath(path, depth: 1) else { return [] }
      devices[place.device]?.services.remove(service: place.service)
      return characteristicsChanged(of: place.device)
    case BlueZName.characteristic:
      guard let place = AttributePath(path, depth: 2), devices[place.device]?.services.remove(place) == true
      else { return [] }
      return characteristicsChanged(of: place.device)
    default:
      return []
    }
  }

  private func characteristicsChanged(of device: String) -> [Change] {
    devices[device]?.servicesResolved == true ? [.characteristics(device)] : []
  }

  private mutating func change(
    _ path: String, _ interface: String, _ properties: BlueZEvent.Properties, _ invalidated: [String]
  ) -> [Change] {
    switch interface {
    case BlueZName.adapter: adapterChanged(properties)
    case BlueZName.device: deviceChanged(path, properties, invalidated)
    default: []
    }
  }

  private mutating func adapterChanged(_ properties: BlueZEvent.Properties) -> [Change] {
    guard var adapter else { return [] }
    if let address = properties["Address"]?.text { adapter.address = address }
    if let powered = properties["Powered"]?.bool { adapter.isPowered = powered }
    if let discovering = properties["Discovering"]?.bool { adapter.isDiscovering = discovering }
    if let state = properties["PowerState"]?.text { adapter.powerState = state }
    if let roles = properties["Roles"]?.textArray { adapter.isCentral = roles.contains("central") }
    self.adapter = adapter
    return [.adapter]
  }

  private mutating func deviceChanged(
    _ path: String, _ properties: BlueZEvent.Properties, _ invalidated: [String]
  ) -> [Change] {
    guard var device = devices[path] else { return [] }
    let (wasConnected, wasInputDevice) = (device.isConnected, device.isInputDevice)
    var peripheral = device.peripheral
    if let address = Self.address(of: properties) { peripheral.address = address }
    if let type = properties["AddressType"]?.text { peripheral.hasPublicAddress = type == "public" }
    if let name = properties["Name"]?.text { peripheral.name = name }
    if let rssi = properties["RSSI"]?.integer {
      peripheral.rssi = rssi == Self.unknownStrength ? -127 : rssi
      advertisements &+= 1
      peripheral.lastAdvertisement = advertisements
    }
    if invalidated.contains("RSSI") { peripheral.rssi = nil }
    // What is listed without a signal strength was received earlier.
    if peripheral.rssi != nil {
      if properties["ManufacturerData"] != nil { peripheral.lastReports.manufacturerData = nextReport() }
      if properties["ServiceData"] != nil { peripheral.lastReports.serviceData = nextReport() }
    }
    if let connected = properties["Connected"]?.bool {
      peripheral.isConnected = connected
      if connected { device.endReason = nil }
      device.linkChanges &+= 1
    }
    if let paired = properties["Paired"]?.bool { peripheral.isPaired = paired }
    if let resolved = properties["ServicesResolved"]?.bool { device.servicesResolved = resolved }
    if let uuids = properties["UUIDs"]?.textArray {
      peripheral.services = uuids.compactMap { BluetoothUUID($0) }
    }
    peripheral.advertised.update(properties)
    device.peripheral = peripheral
    devices[path] = device
    return inputDevice(path, before: wasInputDevice)
      + (wasConnected && !device.isConnected ? [device.linkEnd] : []) + [.device(path)]
  }

  /// What a controller reports that cannot tell the signal strength of an advertisement (Core Specification Vol 4, Part E,
  /// 7.7.65.2): for the central the weakest one, not the strongest.
  private static let unknownStrength = 127

  private mutating func nextReport() -> Int {
    reportCount &+= 1
    return reportCount
  }

  private func inputDevice(_ path: String, before: Bool) -> [Change] {
    !before && devices[path]?.isInputDevice == true ? [.inputDevice(path)] : []
  }
}

extension AdvertisedData {
  /// Takes over those properties of a device that hold data of its advertisements.
  mutating func update(_ properties: BlueZEvent.Properties) {
    if let entries = properties["ManufacturerData"]?.entries {
      manufacturerData = Self.bytes(entries) { $0.integer.flatMap(UInt16.init(exactly:)).map(Int.init) }
    }
    if let entries = properties["AdvertisingData"]?.entries {
      other = Self.bytes(entries) { $0.integer.flatMap(UInt8.init(exactly:)).map(Int.init) }
    }
    if let bytes = properties["AdvertisingFlags"]?.byteArray { flags = bytes }
    if let entries = properties["ServiceData"]?.entries {
      serviceData = Self.bytes(entries) { $0.text.flatMap { BluetoothUUID($0) } }
    }
  }

  /// The values of the entries that have a valid key.
  private static func bytes<Key>(
    _ entries: [DBusValue.Entry], by read: (DBusValue) -> Key?
  ) -> [Key: [UInt8]] {
    var bytes: [Key: [UInt8]] = [:]
    for entry in entries {
      if let key = read(entry.key) { bytes[key] = entry.value.byteArray ?? [] }
    }
    return bytes
  }
}
