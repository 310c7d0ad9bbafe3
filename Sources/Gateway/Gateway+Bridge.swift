import BlueZ
import EventLoop
import GATT
import JSON
import MQTT

/// What the gateway says of itself.
extension Gateway {
  /// Changes come in bursts: one publication a quarter of a second after the first of them.
  private static let settling = Duration.milliseconds(250)
  /// Counters change always: so often they are told anyway.
  private static let refresh = Duration.seconds(60)

  /// Something in `…/info` or `…/devices` is no longer so.
  func bridgeChanged() {
    if report == nil {
      report = loop.timer(after: Self.settling) { [weak self] in
        self?.assumeIsolated { $0.publishBridgeInfo() }
      }
    }
    if deviceReport == nil {
      let delay = max(Self.settling, deviceReportPacing.delay(at: .now))
      deviceReport = loop.timer(after: delay) { [weak self] in
        self?.assumeIsolated { $0.publishBridgeDevices() }
      }
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
    publishBridgeInfo()
    publishBridgeDevices()
  }

  private func publishBridgeDevices() {
    deviceReport?.cancel()
    deviceReport = nil
    let list = JSONValue.array(listing.map(\.json)).bytes
    if deviceReportPacing.mayPublish(list, at: .now) { publishState(topics.bridgeDevices, list) }
  }

  private func publishBridgeInfo() {
    report?.cancel()
    report = nil
    publishState(topics.bridgeInfo, info.payload)
    serviceManager.status(
      "\(liveCount) of \(byID.count) devices online, broker \(broker.connectedSince == nil ? "away" : "connected")"
    )
  }

  var liveCount: Int { byID.values.count { $0.isLive } }

  /// The known devices, in the order of their ids.
  var listing: [DeviceListing] {
    byID.values.sorted { $0.id.description < $1.id.description }.map(DeviceListing.init)
  }

  private var info: BridgeInfo {
    var info = BridgeInfo(version: Version.current, started: started, run: run, broker: broker)
    info.area = configuration.gateway.area
    info.adapters = [BridgeInfo.Adapter(adapter, named: configuration.bluetooth.adapter)]
    info.devices = BridgeInfo.Devices(known: byID.count, online: liveCount)
    info.counters = counters.list(mqtt.assumeIsolated { $0.statistics })
    return info
  }
}

extension BridgeInfo.Adapter {
  fileprivate init(_ state: CentralState, named name: String) {
    switch state {
    case .on(let adapter, let address):
      self.init(name: adapter, state: state.word, address: BluetoothAddress(address))
    case .noBus, .adapterInUse, .noBluetoothd, .adapterAbsent, .adapterOff, .adapterBlocked:
      self.init(name: name, state: state.word)
    }
  }
}

extension CentralState {
  /// The adapter's state, in one word.
  var word: String {
    switch self {
    case .noBus, .noBluetoothd, .adapterAbsent: "absent"
    case .adapterInUse: "in_use"
    case .adapterOff: "off"
    case .adapterBlocked: "blocked"
    case .on: "on"
    }
  }
}
