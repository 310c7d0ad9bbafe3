import BlueZ
import EventLoop
import GATT
import MQTT

/// What the gateway says of itself, and what it remembers by the broker.
struct Report {
  /// A publication is due.
  var timer: LoopTimer?
  /// Whether the list of an earlier run has been looked at; until then it must not be overwritten.
  var isRecalled = false
  /// Whether the id of a prefix may be given away: the list was looked at, or the broker takes too long.
  var mayGiveIDs = false
}

extension Gateway {
  /// Changes come in bursts: one publication a quarter of a second after the first of them.
  private static let settling = Duration.milliseconds(250)
  /// Counters change always: so often they are told anyway.
  private static let refresh = Duration.seconds(60)
  /// A broker that keeps a list sends it at once after the subscription.
  private static let recallLimit = Duration.seconds(2)
  private static let recallPatience = Duration.seconds(10)

  /// Something in `…/info` or `…/devices` is no longer so.
  func bridgeChanged() {
    guard report.timer == nil else { return }
    report.timer = loop.timer(after: Self.settling) { [weak self] in
      self?.assumeIsolated { $0.publishBridge() }
    }
  }

  /// Without a broker, devices are not kept waiting for their ids for ever.
  func limitRecall() {
    loop.timer(after: Self.recallPatience) { [weak self] in
      self?.assumeIsolated { $0.report.mayGiveIDs = true }
    }
  }

  func refreshBridge() {
    loop.timer(after: Self.refresh) { [weak self] in
      self?.assumeIsolated {
        $0.bridgeChanged()
        $0.refreshBridge()
      }
    }
  }

  func publishBridge() {
    report.timer?.cancel()
    report.timer = nil
    publishState(topics.bridgeInfo, info.payload)
    let live = byID.values.count { $0.session.state == .live }
    serviceManager.status(
      "\(live) of \(byID.count) devices online, broker \(broker.connectedSince == nil ? "away" : "connected")"
    )
    guard report.isRecalled else { return }
    let listing = byID.values.sorted { $0.id.description < $1.id.description }.map {
      DeviceListing(info: $0.info, state: $0.session.state.rawValue)
    }
    publishState(topics.bridgeDevices, DeviceListing.payload(listing))
  }

  private var info: BridgeInfo {
    var info = BridgeInfo(version: Version.current, started: started, run: run, broker: broker)
    info.area = configuration.gateway.area
    info.adapters = [BridgeInfo.Adapter(adapter, named: configuration.bluetooth.adapter)]
    info.counters = counters.list(mqtt.assumeIsolated { $0.statistics })
    return info
  }

  // MARK: Remembering

  /// The retained list of an earlier run is on its way, if there is one.
  func recallDevices() {
    guard !report.isRecalled else { return }
    loop.timer(after: Self.recallLimit) { [weak self] in self?.assumeIsolated { $0.recalled() } }
  }

  /// Devices of an earlier run are known again, as offline until they are seen: their retained availability
  /// may still say otherwise, and commands for them can be kept.
  func recall(_ payload: [UInt8]) {
    guard !report.isRecalled else { return }
    let known = DeviceListing.devices(in: payload)
    func entry(of device: DeviceListing.Known) -> Configuration.Device? {
      configuration.device(matching: device.address, name: device.name)
    }
    // Who had the id of a prefix has it again, whoever else matches the prefix.
    let owners = known.filter { entry(of: $0)?.id == $0.id }
    for device in owners + known where devices[device.address] == nil {
      if let entry = entry(of: device) { _ = makeDevice(device.address, name: device.name, entry: entry) }
    }
    for device in known where byID[device.id] == nil { forget(device.id) }
    recalled()
  }

  /// A device that is no longer configured, or goes by another id now, leaves nothing behind.
  private func forget(_ id: DeviceID) {
    let topics = topics.topics(of: id)
    for topic in [topics.availability, topics.info] + topics.properties.map(\.value) {
      mqtt.assumeIsolated { [qos] in $0.clearState(topic, qos: qos) }
    }
  }

  private func recalled() {
    guard !report.isRecalled else { return }
    report.isRecalled = true
    report.mayGiveIDs = true
    mqtt.assumeIsolated { [topics] in $0.unsubscribe(TopicFilter(topics.bridgeDevices)) }
    bridgeChanged()
  }
}

extension DeviceListing {
  /// A device as a list that was published before has it.
  struct Known {
    let id: DeviceID
    let address: BluetoothAddress
    /// The Bluetooth name.
    let name: String?
  }

  /// The devices in such a list; what cannot be read is passed over.
  static func devices(in payload: [UInt8]) -> [Known] {
    guard case .array(let entries) = try? JSONParser.parse(payload) else { return [] }
    return entries.compactMap { entry in
      guard case .object(let object) = entry, case .string(let address) = object["identifier"],
        let address = BluetoothAddress(address), case .string(let id) = object["id"],
        let id = try? DeviceID(id)
      else { return nil }
      if case .string(let name) = object["name"] { return Known(id: id, address: address, name: name) }
      return Known(id: id, address: address, name: nil)
    }
  }
}

extension BridgeInfo.Adapter {
  fileprivate init(_ state: CentralState, named name: String) {
    switch state {
    case .noBus, .noBluetoothd, .adapterAbsent: self.init(name: name, state: "absent")
    case .adapterOff: self.init(name: name, state: "off")
    case .adapterBlocked: self.init(name: name, state: "blocked")
    case .on(let adapter, let address):
      self.init(name: adapter, state: "on", address: BluetoothAddress(address))
    }
  }
}
