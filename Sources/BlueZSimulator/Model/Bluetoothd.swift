import EventLoop
import DBus
import GATT
import Peripherals

/// bluetoothd 5.66 with its adapters and the peripherals: a pure state machine.
///
/// Inputs are method calls, time, clients that leave the bus, and control commands; ``takeEffects()`` says what is to be
/// done then, in order. The order of signals and replies, the error names and the defaults of ``Timing`` were recorded.
struct Bluetoothd: Sendable {
  static let mtu: UInt16 = 23

  /// A scheduled event. `attempt` and `scan` tell events that are no longer valid.
  enum Event: Sendable {
    /// Something happens to a link, unless that has ended.
    case link(LinkEvent, of: DeviceKey, attempt: UInt64)
    /// A peripheral advertises.
    case found(peripheral: DeviceKey, scan: UInt64)
    /// A scan ends and the next begins.
    case scanEnds(adapter: Int, UInt64)
    /// A sensor takes a sample for subscribers, or a generator sets the next value.
    case values(peripheral: Int)
    /// The passkey for a call of Pair was not entered in time.
    indirect case passkeyMissing(peripheral: DeviceKey, DBusCall)
    /// A temporary device may have expired.
    case expires(peripheral: DeviceKey)
    /// A micro:bit has started after a reset.
    case started(peripheral: Int)
  }

  enum LinkEvent: Sendable {
    /// The link is established.
    case linked
    /// The features are exchanged: Connect is answered.
    case featured
    /// Service discovery is complete.
    case resolved
    /// The Connect times out.
    case connectTimesOut
    /// The delay of a Disconnect is over.
    case disconnects
    /// The supervision time-out is over.
    case supervisionEnds
    /// An ATT request is answered.
    case answered
    /// The peripheral, which does not answer, ends the link.
    case hangsUp
    /// Pairing was not confirmed in time.
    case pairingEnds
  }

  let timing: Timing
  var tree = ObjectTree()
  var adapters: [Adapter]
  var peripherals: [Peripheral]
  var devices: [DeviceKey: Device] = [:]
  /// What it keeps on disk, and therefore knows after its restart: the peripherals that were connected, and not removed since.
  var stored: Set<DeviceKey> = []
  /// The peripherals with which it has a bond, also kept on disk.
  var bonds: Set<DeviceKey> = []
  /// The paths of the agents, by the clients that registered them.
  var agents: [String: String] = [:]

  var schedule = Schedule<Event>()
  var random: SplitMix
  private var lastNumber: UInt64 = 0
  var out: [Effect] = []

  init(_ options: SimulatorOptions, at now: Moment) {
    var random = SplitMix(seed: options.seed)
    timing = options.timing
    adapters = (0..<options.adapters).map { Adapter(number: $0) }
    peripherals = options.peripherals(at: now, random: &random)
    self.random = random
    export()
    out.removeAll()
    for index in peripherals.indices { expectValues(of: index) }
  }

  // MARK: Inputs

  /// When ``advance(to:)`` is to be called next.
  var nextEvent: Moment? { schedule.next }

  /// Performs all events that are due by `now`.
  mutating func advance(to now: Moment) {
    while let (event, deadline) = schedule.pop(by: now) {
      switch event {
      case .values(let index): takeValues(of: index, deadline, at: now)
      case .found(let index, let scan): find(index, scan, at: now)
      case .scanEnds(let adapter, let scan): endScan(of: adapter, scan, at: now)
      case .link(let event, let index, let attempt):
        if devices[index]?.attempt == attempt { happen(event, to: index, at: now) }
      case .passkeyMissing(let index, let call): endPasskey(index, call, at: now)
      case .expires(let index): expire(index, deadline, at: now)
      case .started(let index): start(index, at: now)
      }
    }
  }

  private mutating func happen(_ event: LinkEvent, to index: DeviceKey, at now: Moment) {
    switch event {
    case .linked: linked(index, at: now)
    case .featured: featured(index, at: now)
    case .resolved: resolved(index, at: now)
    case .connectTimesOut: cancelConnect(index, .abortByLocal, at: now)
    case .disconnects: finishDisconnecting(index, at: now)
    case .supervisionEnds: superviseLink(index, at: now)
    case .answered: answer(index, at: now)
    case .hangsUp: hangUp(index, at: now)
    case .pairingEnds: endPairing(index, at: now)
    }
  }

  /// Schedules an event of the device's present link, or of the present attempt to make one.
  /// Without a delay it happens at once.
  mutating func expect(_ event: LinkEvent, of index: DeviceKey, after delay: Duration, at now: Moment) {
    guard let attempt = devices[index]?.attempt else { return }
    if delay == .zero { return happen(event, to: index, at: now) }
    schedule.add(.link(event, of: index, attempt: attempt), at: now + delay)
  }

  /// Handles a method call.
  mutating func handle(_ request: DBusCall, at now: Moment) {
    do throws(DBusError) {
      try dispatch(request, at: now)
    } catch {
      refuse(request, error)
    }
  }

  /// A client has left the bus.
  mutating func clientLeft(_ name: String) {
    agents[name] = nil
    endDiscovery(ofLeaving: name)
    endNotifications(ofLeaving: name)
  }

  /// A client has closed its notification socket.
  mutating func channelClosed(_ channel: ChannelID) {
    for (index, device) in devices {
      for (handle, subscription) in device.subscriptions where subscription.channel == channel {
        releaseSocket(index, handle)
      }
    }
  }

  // MARK: Output

  mutating func emit(_ effect: Effect) { out.append(effect) }

  mutating func reply(to call: DBusCall, _ arguments: DBusValue...) {
    emit(.answer(call, .success(arguments)))
  }

  mutating func refuse(_ call: DBusCall, _ error: DBusError) { emit(.answer(call, .failure(error))) }

  mutating func emit(_ signal: DBusSignal) { out.append(.signal(signal)) }

  mutating func emit(_ signals: [DBusSignal]) { out += signals.map(Effect.signal) }

  /// What the inputs have led to, once.
  mutating func takeEffects() -> [Effect] {
    defer { out.removeAll(keepingCapacity: true) }
    return out
  }

  /// A number for an attempt to connect or a channel. No two have the same, so that events of a removed device do not
  /// apply to its successor.
  mutating func makeNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  mutating func change(adapter number: Int, _ changes: [ObjectTree.Property]) {
    emit(tree.set(adapters[number].path, BlueZName.adapter, changes))
  }

  mutating func change(device index: DeviceKey, _ changes: [ObjectTree.Property]) {
    guard let device = devices[index] else { return }
    emit(tree.set(device.path, BlueZName.device, changes))
  }

  mutating func change(characteristic handle: UInt16, of index: DeviceKey, _ name: String, _ value: DBusValue)
  {
    guard let path = path(of: handle, in: index) else { return }
    emit(tree.set(path, BlueZName.characteristic, [(name, value)]))
  }

  /// The object path of a characteristic.
  func path(of handle: UInt16, in index: DeviceKey) -> String? {
    guard let device = devices[index], let service = peripherals[index].database.service(of: handle) else {
      return nil
    }
    return Self.characteristicPath(device.path, service.handle, handle)
  }

  static func servicePath(_ device: String, _ service: UInt16) -> String {
    "\(device)/service\(Hexadecimal.text(service, bytes: 2))"
  }

  static func characteristicPath(_ device: String, _ service: UInt16, _ characteristic: UInt16) -> String {
    "\(servicePath(device, service))/char\(Hexadecimal.text(characteristic, bytes: 2))"
  }
}
