import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// One device, from its discovery to its removal: its session, its channels, its observers.
@LoopActor final class Device {
  let context: DeviceContext
  var description: DeviceDescription
  /// The advertised data accumulated in this run and earlier ones.
  private(set) var advertisement: Advertisement
  /// The last advertisement, to notice changes.
  private var lastAdvertisement = Advertisement()
  /// The owner as the front end has decided; this gateway as soon as the device comes online here.
  var owner = Owner.unknown
  /// The channel of each property, in the order of the profile's properties.
  private(set) var channels: [Channel] = []
  private(set) var observers: [(observer: any DeviceObserver, frontEnd: ObjectIdentifier)] = []
  private(set) lazy var session = description.profile.session.init(
    of: self, DeviceAdapters(context, pinned: settings.adapter))
  private(set) lazy var values = DeviceValues(of: self)
  private(set) lazy var dataLog = DataLog(of: self)
  /// The sequence number of the last reading in this run.
  var sequence: UInt64 = 0
  /// When the last reading of this run came, or was heard once more.
  var lastReading: Timestamp?
  /// How many tasks run for the device: a link on demand or in turns lasts until they have ended.
  private(set) var tasks = 0
  /// Whether a request's steps are being carried out.
  var isInSequence = false
  /// Whether the device's LEDs show its name, or blink.
  var isIdentifying = false
  /// The lock for each access to LEDs that no property uses.
  let ledMutex = AsyncMutex()

  init(_ description: DeviceDescription, _ advertisement: Advertisement, context: DeviceContext) {
    self.context = context
    self.description = description
    self.advertisement = advertisement
    channels = description.profile.properties.indices.map { Channel(index: $0, of: self) }
    self.description.namedValues = values.described
    self.description.isSentToByRadio = isSentToByRadio
  }

  var id: DeviceID { description.id }
  var address: BluetoothAddress { description.address }
  var settings: DeviceSettings { description.settings }
  /// What is kept over a restart; changed by ``DeviceStore/change(_:isPrompt:_:)``. Only what is offered is set before that, by
  /// ``DeviceDescription/learn(offered:usable:isNewLink:)``.
  var record: DeviceRecord { description.record }
  /// No id is stored for the device: it was neither connected nor published as offline.
  var hasNoStoredID: Bool { record.id == nil }
  var state: SessionState { session.state }
  var isLive: Bool { state == .live }
  private var isSentToByRadio: Bool { session.radioSession != nil && context.transmitter.canSend }
  /// Anybody can send advertisements from a thousand addresses: only devices that the configuration calls by a name or an
  /// id fill the log.
  var isAnonymous: Bool {
    type(of: session).isOnlyAdvertised && settings.source(of: \.name) == .default
      && (settings.source(of: \.id) == .default || settings.hasSharedID && id != settings.id)
  }

  var fields: LogFields {
    ["device": id, "address": address, "name": description.bluetoothName ?? "unknown"]
  }

  /// Runs `body` on the central of the session's adapter. Until it has ended, a link on demand or in turns stays, and so does the
  /// device, which may be removed meanwhile.
  @discardableResult
  func task(_ body: @escaping @LoopActor (Central) async -> Void) -> Task<Void, Never> {
    taskBegins()
    return backgroundTask { [self] central in
      await body(central)
      taskEnded()
    }
  }

  /// Runs `body` as ``task(_:)`` does, but lets a link on demand or in turns end meanwhile.
  @discardableResult
  func backgroundTask(_ body: @escaping @LoopActor (Central) async -> Void) -> Task<Void, Never> {
    let central = session.central
    return loop.task {
      await body(central)
      withExtendedLifetime(self) {}
    }
  }

  var isBusy: Bool { tasks > 0 }

  func taskBegins() { tasks += 1 }

  func taskEnded() {
    tasks -= 1
    if tasks == 0 { session.linkSession?.tasksEnded() }
  }

  // MARK: Observers

  /// Attaches the observer of a front end, if that follows the device.
  func attach(_ frontEnd: any FrontEnd) {
    if let observer = frontEnd.attach(description) {
      observers.append((observer, ObjectIdentifier(frontEnd)))
    }
  }

  /// Ends the observer of a front end, without a call.
  func remove(_ frontEnd: any FrontEnd) { observers.removeAll { $0.frontEnd == ObjectIdentifier(frontEnd) } }

  func detach(_ reason: DetachReason) {
    let ended = observers
    observers = []
    for (observer, _) in ended { observer.detach(reason) }
  }

  /// Calls each observer. On the path of every reading.
  @inline(__always) func tellObservers(_ body: (any DeviceObserver) -> Void) {
    for (observer, _) in observers { body(observer) }
  }

  /// Whether another gateway may hear the device, as an observer says.
  var hasPeers: Bool { observers.contains { $0.observer.hasPeers } }

  /// Tells observers of a change. Before that it refreshes what the description says of the session, its trouble, and the
  /// transmitter (``DeviceDescription/isSentToByRadio``).
  func report(_ change: DeviceChange) {
    description.session = state
    description.trouble = session.lastError
    description.isSentToByRadio = isSentToByRadio
    tellObservers { $0.changed(change, description) }
  }

  // MARK: Identity and settings

  /// The peripheral was discovered, or its properties in bluetoothd have changed.
  func found(_ seen: Peripheral, by adapter: Int) {
    session.seen(seen, by: adapter)
    // Nothing is kept of strangers that are not used.
    if seen.hasPublicAddress, !record.hasPublicAddress, !hasNoStoredID {
      context.store.change(address) { $0.hasPublicAddress = true }
    }
    guard description.isPaired != session.adapters.isPaired else { return }
    description.isPaired = session.adapters.isPaired
    report(.description)
  }

  /// - Returns: whether the accumulated data has changed.
  func merge(_ new: Advertisement) -> Bool {
    guard new != lastAdvertisement else { return false }
    lastAdvertisement = new
    let known = new.adding(to: advertisement)
    guard known != advertisement else { return false }
    advertisement = known
    if known.name != description.bluetoothName {
      description.bluetoothName = known.name
      report(.description)
    }
    return true
  }

  /// See ``Advertisement/matchedName``.
  func matched(by name: String?) { advertisement.matchedName = name }

  /// Applies settings from the configuration and requests, except the id: see ``rename(to:_:)``.
  func apply(_ new: DeviceSettings) {
    let before = settings
    description.settings = new
    for channel in channels { channel.writer?.configure(new.desired[channel.property.name]) }
    if new.pairing != before.pairing { session.linkSession?.setPairing(new.pairing) }
    if new.offlineAfter != before.offlineAfter { session.limitChanged() }
    restartSession(from: before, to: new)
    if new.log && !before.log || new.pairing == .always && before.pairing != .always {
      session.linkSession?.becomesUsable()
    }
    readjust(from: before, to: new)
    collectLog()
    context.log.info("settings changed", fields)
  }

  /// Ends the session, and begins the next one, as far as the device is enabled and a setting that needs a new one has changed.
  private func restartSession(from before: DeviceSettings, to new: DeviceSettings) {
    var changed = DeviceOptionTable.all.filter { new[$0] != before[$0] }
    if let adapter = new.adapter, adapter != before.adapter, context.index(ofAdapter: adapter) == nil {
      context.log.notice("the pin to the adapter \(adapter) takes effect after a restart", fields)
      changed.removeAll { $0.name == "adapter" }
    }
    if !before.isOnDemand, !new.isOnDemand {
      changed.removeAll { $0.name == DeviceOptionTable.table.every.name }
    }
    if !new.isEnabled, before.isEnabled { abandonWrites(reason: "the device is disabled") }
    guard changed.contains(where: \.restartsLink) || new.isEnabled != before.isEnabled else { return }
    if before.isEnabled { session.stop() }
    guard new.isEnabled else { return }
    session.adapters.pin(new.adapter)
    session = session.renewed(wasDisabled: !before.isEnabled)
    session.begin()
  }

  /// Reports the description with the properties and values as they are adjusted now, and last values that have another offset.
  private func readjust(from before: DeviceSettings, to new: DeviceSettings) {
    values.settingsChanged()
    let offsets = Dictionary(
      uniqueKeysWithValues: description.namedValues.map { ($0.key, $0.property.offset) })
    description.namedValues = values.described
    let readjusted =
      new.adjustedProfile == before.adjustedProfile
      ? [] : channels.filter { $0.replaceProperty(with: new.adjustedProfile.properties[$0.index]) }
    report(.description)
    for channel in readjusted { channel.reportAgain() }
    values.reportAgain { value in offsets[value.key].map { $0 != value.property.offset } ?? false }
  }

  func rename(to id: DeviceID, _ reason: RenameReason) {
    let before = description.id
    description.id = id
    report(.renamed(from: before, reason))
  }

  // MARK: Commands

  /// Why commands cannot be carried out, not even after waiting; nil if they can.
  var obstacle: String? {
    guard state == .stopped else { return session.obstacle }
    return context.isStopping ? "the gateway is stopping" : "the device is disabled"
  }

  /// What the last link lacks of the user's profile, and why; without what a program may lack.
  var lacks: [(property: String, reason: String)] {
    let profile = description.profile
    return channels.filter { !(profile.isAutomatic && $0.property.isAutomatic) }.compactMap { channel in
      channel.lack.map { (channel.property.name, $0) }
    }
  }

  /// Why there is no link now, as far as is known.
  var offlineReason: String {
    description.lastError.map { "the device is offline: \($0)" } ?? "the device is offline"
  }

  func abandonWrites(reason: String) {
    for channel in channels { channel.writer?.abandon(reason: reason) }
  }

  // MARK: Values

  /// Counts a reading.
  /// - Returns: its sequence number.
  func nextSequence(at time: Timestamp) -> UInt64 {
    sequence += 1
    lastReading = time
    context.counters.readings += 1
    return sequence
  }

  /// Continues for the same device with other properties. What is still known of a device of this gateway is reported again.
  func adopt(_ old: Device) {
    for channel in channels {
      if let before = old.channels.first(where: { $0.property.name == channel.property.name }) {
        channel.adopt(before)
      }
    }
    values.adopt(old.values)
    (sequence, lastReading) = (old.sequence, old.lastReading)
    description.rssi = old.description.rssi
    if !description.isOnline { description.offlineSince = old.description.offlineSince }
    report(.description)
    guard old.owner == .this else { return }
    for channel in channels { channel.reportAgain() }
    values.reportAgain()
  }

  /// The interval for polling while another program has acquired the notifications: the period, but at least 1 s.
  var pollInterval: Duration {
    guard let index = description.profile.alive?.period,
      case .integer(let milliseconds) = channels[index].last.value
    else { return .seconds(1) }
    return .milliseconds(max(1000, milliseconds))
  }
}
