import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

/// What the page needs from the gateway in addition to requests.
@LoopActor package protocol PageHost: RequestHost {
  var gateway: GatewayID { get }
  /// What the gateway publishes of itself.
  var info: BridgeInfo { get }
}

extension Bridge: PageHost {}

/// What the page shows: the devices, the gateway, and what has happened. Exists only while the page is served.
@LoopActor final class WebState: FrontEnd {
  /// The least time between two events with values for a client.
  static let interval = Duration.milliseconds(50)
  private static let mostEvents = 50

  let engine: DeviceManager
  unowned let host: any PageHost
  private(set) var devices: [BluetoothAddress: WebDevice] = [:]
  /// The devices that were detached to be attached again at once.
  private var replaced: [BluetoothAddress: WebDevice] = [:]
  var history = History()
  private var events: [JSONValue] = []
  private(set) var streams: [EventStream] = []
  /// A bit for each of ``streams``.
  private(set) var streamSet: StreamSet = 0
  private var timer: LoopTimer?
  private var hasBegun = false
  private var wasConnected: Bool?
  private var adapterStates: [String: String] = [:]
  private var sentGateway: [UInt8] = []
  private var numbering: Numbering?
  private var seconds = 0

  init(_ host: any PageHost) {
    engine = host.engine
    self.host = host
  }

  func begin() {
    noteGateway()
    engine.add(self)
    hasBegun = true
  }

  func end() {
    engine.remove(self)
    timer?.cancel()
    for stream in streams { stream.onClose() }
  }

  /// The devices in the order of their ids.
  var sorted: [WebDevice] {
    devices.values.sorted { $0.device.id.description < $1.device.id.description }
  }

  func device(_ id: String) -> WebDevice? { devices.values.first { $0.device.id.description == id } }

  // MARK: Front end

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? {
    let new = WebDevice(device, self)
    if let old = replaced.removeValue(forKey: device.address) {
      new.adopt(old)
      if old.device.id != device.id { renamed(device.id, from: old.device.id) }
    } else if hasBegun {
      add("added", device.id, code: "added")
    }
    devices[device.address] = new
    changed()
    return new
  }

  func detached(_ device: WebDevice, _ reason: DetachReason) {
    let address = device.device.address
    guard devices[address] === device else { return }
    devices[address] = nil
    guard reason == .replaced else { return gone(device) }
    replaced[address] = device
    // Replaced devices are attached again at once: one that is left then had no id or no room.
    loop.timer(after: .zero) { [weak self] in
      if let self, let device = replaced.removeValue(forKey: address) { gone(device) }
    }
  }

  private func gone(_ device: WebDevice) {
    for state in device.properties { forget(state) }
    removed(device.device.id)
    add("removed", device.device.id, code: "removed")
    changed()
  }

  func forget(_ state: PropertyState) {
    for series in state.series.values { history.remove(series) }
  }

  func engineChanged() {
    guard engine.numbering != numbering else { return }
    numbering = engine.numbering
    for stream in streams { stream.needsGateway = true }
    changed()
  }

  // MARK: What has happened

  /// - Parameters:
  ///   - device: nil: the gateway itself.
  ///   - code: the key of the text in the languages of the page; nil: it is English alone.
  ///   - about: what that text is about, by its placeholders.
  func add(_ text: String, _ device: DeviceID? = nil, code: String? = nil, about: JSONValue = [:]) {
    let event: JSONValue = [
      "time": .string(Timestamp.now.description), "device": device.map { .string($0.description) },
      "text": .string(text), "code": code.map(JSONValue.string),
    ]
    events.append(event.merging(about))
    if events.count > Self.mostEvents { events.removeFirst() }
  }

  /// The broker, or an adapter, may have another state.
  func noteGateway() {
    let info = host.info
    let isConnected = info.broker.connectedSince != nil
    if let wasConnected, wasConnected != isConnected {
      add(
        isConnected ? "connected to the broker" : "no connection to the broker",
        code: isConnected ? "broker_connected" : "broker_lost")
    }
    wasConnected = isConnected
    for adapter in info.adapters {
      let state = adapter.state.word
      if let before = adapterStates.updateValue(state, forKey: adapter.name), before != state {
        add(
          "adapter \(adapter.name): \(state.spaced)", code: "adapter",
          about: ["adapter": .string(adapter.name), "state": .string(state)])
      }
    }
  }

  func happened(_ id: DeviceID, _ property: Property, _ reading: Reading) {
    guard !streams.isEmpty else { return }
    let data: JSONValue = [
      "device": .string(id.description), "property": .string(property.name),
      "value": property.codec.json(reading.value), "time": .string(reading.time.description),
    ]
    for stream in streams { stream.happened(data) }
  }

  func renamed(_ id: DeviceID, from before: DeviceID) {
    removed(before)
    add("was called \(before) before", id, code: "renamed", about: ["before": .string(before.description)])
  }

  private func removed(_ id: DeviceID) {
    for stream in streams { stream.removed(id) }
    // Another device may have got the id already: it is told after that.
    devices.values.first { $0.device.id == id }?.waiting = streamSet
  }

  // MARK: JSON

  func json(_ device: WebDevice) -> JSONValue {
    let fresh = engine.device(device.device.id) ?? device.device
    return device.json(host.listing(of: fresh), owner: host.otherOwner(of: fresh))
  }

  func gatewayJSON(isReadOnly: Bool = false) -> JSONValue { gatewayJSON(host.info, isReadOnly: isReadOnly) }

  private func gatewayJSON(_ info: BridgeInfo, isReadOnly: Bool = false) -> JSONValue {
    // What is shown is noted, however short it was.
    noteGateway()
    let (health, links) = (host.health, engine.adapterLinks)
    let adapters = info.adapters.map { adapter in
      adapter.json.setting(
        "links", to: ["used": .integer(links.used[adapter.name] ?? 0), "most": .integer(links.most)])
    }
    let own: JSONValue = [
      "id": .string(host.gateway.description), "uptime": .integer(health.uptime),
      "healthy": .bool(health.isHealthy), "problems": .array(health.problems.map(JSONValue.string)),
      "findings": .array(health.troubles.map(\.json)),
      "read_only": isReadOnly ? .bool(true) : nil, "events": .array(events),
      "numbering": engine.numberingJSON,
      "recording": host.recorder.current.map {
        ["name": .string($0.name), "started": .string($0.started.description)]
      },
    ]
    return info.json.setting("run", to: nil).setting("adapters", to: .array(adapters)).merging(own)
  }

  // MARK: Streams

  /// A new stream; nil if there are as many as possible. For a client that may change something, one of a client that may
  /// not is ended.
  func addStream(isReadOnly: Bool = false) -> EventStream? {
    if streamSet == .max, !isReadOnly { streams.first { $0.isReadOnly }?.onClose() }
    guard let bit = (0..<StreamSet.bitWidth).map({ StreamSet(1) << $0 }).first(where: { streamSet & $0 == 0 })
    else { return nil }
    let stream = EventStream(bit, self, isReadOnly: isReadOnly)
    streams.append(stream)
    streamSet |= bit
    for device in devices.values { device.waiting |= bit }
    return stream
  }

  func remove(_ stream: EventStream) {
    guard let index = streams.firstIndex(where: { $0 === stream }) else { return }
    streams.remove(at: index)
    streamSet &= ~stream.bit
    for device in devices.values { device.clear(stream.bit) }
  }

  /// Something is to be sent to the streams.
  func changed() {
    guard timer?.isPending != true, streamSet != 0 else { return }
    timer = loop.timer(after: Self.interval) { [weak self] in
      for stream in self?.streams ?? [] { stream.onReady() }
    }
  }

  /// Called once a second.
  func tick() {
    guard streamSet != 0 else { return }
    seconds += 1
    let compared = gatewayJSON(host.info.withoutCounters).setting("uptime", to: nil).bytes
    // Counters alone change with each reading: they are sent once a minute.
    if compared != sentGateway || seconds % 60 == 0 {
      sentGateway = compared
      for stream in streams { stream.needsGateway = true }
    }
    for device in devices.values { device.setOwner(host.otherOwner(of: device.device)) }
    if seconds % 5 == 0 {
      for device in devices.values { device.setRSSI(engine.device(device.device.id)?.rssi) }
    }
    for stream in streams { stream.tick() }
    changed()
  }
}
