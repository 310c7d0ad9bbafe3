import EventLoop
import DBus
import GATT
import Peripherals

/// bluetoothd 5.66 with its adapters and the peripherals: a pure state machine.
///
/// Inputs are method calls, time, clients that leave the bus, and control commands, each at ``now``; ``takeEffects()`` says
/// what is to be done then, in order. The order of signals and replies, the error names and the defaults of ``Timing`` were
/// recorded.
struct Bluetoothd: Sendable {
  /// What happens to the model at a certain time.
  typealias Event = @Sendable (inout Self) -> Void

  static let mtu: UInt16 = 23

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

  /// The time of the present input.
  private(set) var now: Moment
  private var schedule = Schedule<Event>()
  var random: SplitMix
  private var lastNumber: UInt64 = 0
  var out: [Effect] = []

  init(_ options: SimulatorOptions, at now: Moment) {
    var random = SplitMix(seed: options.seed)
    self.now = now
    timing = options.timing
    adapters = (0..<options.adapters).map { Adapter(number: $0) }
    peripherals = options.peripherals(at: now, random: &random)
    self.random = random
    export()
    out.removeAll()
    for index in peripherals.indices { expectValues(of: index) }
  }

  // MARK: Inputs

  /// Gives the model an input.
  mutating func take(at now: Moment, _ input: (inout Self) throws -> Void) rethrows {
    self.now = now
    try input(&self)
  }

  /// When ``advance()`` is to be called next.
  var nextEvent: Moment? { schedule.next }

  /// Performs all events that are due.
  mutating func advance() {
    while let event = schedule.pop(by: now) { event(&self) }
  }

  /// Handles a method call.
  mutating func handle(_ request: DBusCall) {
    do throws(DBusError) {
      try dispatch(request)
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

  // MARK: Events

  mutating func plan(at deadline: Moment, _ event: @escaping Event) { schedule.add(event, at: deadline) }

  /// Plans an event of the device's present link, or of the present attempt to make one: it does not happen when that has
  /// ended. Without a delay it happens at once.
  mutating func planForLink(of index: DeviceKey, after delay: Duration, _ event: @escaping Event) {
    guard let attempt = devices[index]?.attempt else { return }
    if delay == .zero { return event(&self) }
    plan(at: now + delay) { model in
      if model.devices[index]?.attempt == attempt { event(&model) }
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

  mutating func add(
    _ path: String, _ role: ObjectTree.Role, under parent: String, _ interfaces: [ObjectTree.Interface]
  ) {
    emit(tree.add(path, role, under: parent, interfaces))
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
