import Configuration
import Devices
import EventLoop
import JSON
import MQTT

/// Publishes the gateway's `info` and the list of its devices.
@LoopActor package final class BridgeReport {
  /// The time from the first change to the publication: changes come in bursts.
  private static let delay = Duration.milliseconds(250)
  /// The time between publications of the counters, which always change.
  private static let interval = Duration.seconds(60)

  private let publishers: DevicePublishers
  private let spool: Spool
  private let context: BridgeContext
  private var broker: BridgeInfo.Broker
  private var connectedSince: ClockTime?
  /// Why there is no connection; nil while there is one, and until the first attempt has ended.
  private(set) var failure: MQTTError?
  private var commands: UInt64 = 0
  /// What became of the last message for the whole fleet; nil: there is no message, or none is taken.
  package var fleet: FleetStatus? { didSet { if fleet != oldValue { changed() } } }
  private(set) var infoTimer: LoopTimer?
  /// The `info` that was published last, without its counters; nil: it is published in any case.
  private var published: [UInt8]?
  private var devicesTimer: LoopTimer?
  private var pacing = DeviceReportPacing()
  /// Called after each publication of `info`, with one line of it.
  package var onPublished: (String) -> Void = { _ in }

  init(_ publishers: DevicePublishers, _ spool: Spool, _ context: BridgeContext) {
    self.publishers = publishers
    self.spool = spool
    self.context = context
    broker = BridgeInfo.Broker(
      address: context.mqtt.broker, protocolVersion: context.configuration.mqtt.protocolVersion.rawValue)
    spool.onChange = { [weak self] in self?.changed() }
  }

  func start() {
    changed()
    repeatReport()
  }

  private func repeatReport() {
    let started = context.started.current()
    loop.timer(after: Self.interval) { [weak self] in
      guard let self else { return }
      if context.started.current() != started { context.engine.clockWasSet() }
      publishAgain()
      repeatReport()
    }
  }

  var isConnected: Bool { connectedSince != nil }

  func countCommand() { commands += 1 }

  /// What to do about ``failure``, if that is known.
  var hint: String? { failure?.hint(at: broker.address) }

  func failed(_ error: MQTTError) {
    failure = error
    broker.address = context.mqtt.broker
  }

  func connected() {
    failure = nil
    broker.address = context.mqtt.broker
    connectedSince = ClockTime()
    broker.connects += 1
    changed()
  }

  func disconnected(_ error: MQTTError?) {
    failure = error
    connectedSince = nil
    changed()
  }

  /// Something in `info` or `devices` has changed.
  func changed() {
    if infoTimer?.isPending != true {
      infoTimer = loop.timer(after: Self.delay) { [weak self] in self?.publishInfo() }
    }
    if devicesTimer?.isPending != true {
      let delay = max(Self.delay, pacing.delay(at: .now))
      devicesTimer = loop.timer(after: delay) { [weak self] in self?.publishDevices() }
    }
  }

  /// Publishes `info` also if nothing but the counters has changed.
  func publishAgain() {
    published = nil
    changed()
  }

  func publish() {
    published = nil
    publishInfo()
    publishDevices()
  }

  private func publishDevices() {
    devicesTimer?.cancel()
    let list = JSONValue.array(context.engine.devices.map { publishers.listing(of: $0) }).bytes
    if pacing.noteIfNew(list, at: .now) { context.publishState(context.topics.bridgeDevices, list) }
  }

  private func publishInfo() {
    infoTimer?.cancel()
    let info = info
    let rest = info.withoutCounters.json.bytes
    guard rest != published else { return }
    published = rest
    context.publishState(context.topics.bridgeInfo, info.json.bytes)
    let link = connectedSince == nil ? "not connected" : "connected"
    onPublished("\(info.online) of \(info.known) devices online, broker \(link)")
  }

  var info: BridgeInfo {
    let engine = context.engine
    var info = BridgeInfo(
      version: Version.current, started: context.started.current(), run: context.run,
      area: context.configuration.gateway.area, adapters: engine.adapters, broker: broker,
      known: engine.deviceCount, online: engine.onlineCount, permitJoin: engine.permitJoin,
      pairing: engine.pairingCommand, spool: spool.status, fleet: fleet, receivers: engine.receivers,
      strangers: engine.strangers)
    info.broker.connectedSince = connectedSince?.current()
    (info.counters.devices, info.counters.commands) = (engine.counters, commands)
    info.counters.mqtt = context.mqtt.statistics
    info.counters.mqtt.lost += Int(clamping: info.spool.lost)
    return info
  }
}

/// Limits how often the list of devices is published: it changes with each device, and has 270 kB with a thousand.
struct DeviceReportPacing {
  /// The average rate at most.
  private static let bytesPerSecond = 32 * 1024

  private var last: [UInt8] = []
  private var next: Moment?

  /// How long to wait with the next list.
  func delay(at now: Moment) -> Duration { next.map { max(.zero, now.duration(to: $0)) } ?? .zero }

  /// - Returns: whether `list` differs from the last one, and is to be published now.
  mutating func noteIfNew(_ list: [UInt8], at now: Moment) -> Bool {
    guard list != last else { return false }
    last = list
    next = now + .seconds(Double(list.count) / Double(Self.bytesPerSecond))
    return true
  }
}
