import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// One device, from its first being known to its removal: its session, its channels, and who follows it.
final class Device: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  let context: DeviceContext
  private(set) var description: DeviceDescription
  /// All that was received of it, in this run or before.
  private(set) var advertisement: Advertisement
  /// What was received last.
  private var received = Advertisement()
  private(set) var settings: DeviceSettings
  private(set) var owner = Owner.unknown
  /// In the order of the profile's properties.
  private(set) var channels: [Channel] = []
  private var observers: [any DeviceObserver] = []
  private var session: PeripheralSession
  /// Tells the session from those before it: what was begun for one of those is not for this one.
  private var sessionNumber = 0
  /// The session's state that was handled last.
  private var handledState = PeripheralSession.State.absent
  private var timer: LoopTimer?
  /// In this run of bluetoothd.
  private(set) var peripheral: PeripheralID?
  /// The characteristics of the Device Information Service, while there is a link that offers them.
  private var information: [Characteristic] = []
  /// Counts the readings of this run.
  private var sequence: UInt64 = 0

  init(
    _ description: DeviceDescription, _ advertisement: Advertisement, settings: DeviceSettings,
    context: DeviceContext
  ) {
    self.context = context
    self.description = description
    self.advertisement = advertisement
    self.settings = settings
    session = PeripheralSession(now: .now, endsForSilence: description.profile.alive != nil)
    channels = description.profile.properties.indices.map { index in
      let name = description.profile.properties[index].name
      return Channel(
        index: index, of: self,
        desired: DesiredValue(
          configured: settings.desired[name],
          override: settings.override(name, context.store.records[description.identifier])))
    }
    self.description.desired = shownDesired
  }

  var id: DeviceID { description.id }
  var address: BluetoothAddress { description.identifier }
  var isLive: Bool { session.state == .live }
  var state: PeripheralSession.State { session.state }
  /// Whether values of its link are readings.
  var isReceiving: Bool { session.isReceiving }

  /// What a line of the log says of it.
  var fields: LogFields {
    ["device": id, "address": address, "name": description.name ?? "unknown"]
  }

  // MARK: Observers

  func attach(_ observer: any DeviceObserver) { observers.append(observer) }

  func detach(_ reason: DetachReason) {
    let ended = observers
    observers = []
    for observer in ended { observer.detach(reason) }
  }

  func report(_ change: DeviceChange) {
    description.session = session.state
    for observer in observers { observer.changed(change, description) }
  }

  // MARK: Who it is

  /// The peripheral was seen, or something about it has changed.
  func found(_ seen: Peripheral) {
    peripheral = seen.id
    if let rssi = seen.rssi { description.rssi = rssi }
    perform(session.seen(inRange: seen.isInRange))
  }

  /// - Returns: whether more is known of it now.
  func received(_ new: Advertisement) -> Bool {
    guard new != received else { return false }
    received = new
    let known = new.adding(to: advertisement)
    guard known != advertisement else { return false }
    advertisement = known
    description.name = known.name
    return true
  }

  func disconnected() {
    linkEnded()
    perform(session.disconnected(at: .now))
  }

  /// bluetoothd no longer knows it.
  func lost() {
    peripheral = nil
    perform(session.lost())
  }

  func adapterWentAway() {
    linkEnded()
    perform(session.adapterWentAway())
  }

  /// What the configuration and requests say of it now; the id is changed by ``rename(to:_:)``.
  func apply(_ new: DeviceSettings) {
    let before = settings
    settings = new
    description.label = new.name.value
    description.area = new.area.value
    description.isEnabled = new.isEnabled.value
    for channel in channels { channel.configure(new.desired[channel.property.name]) }
    if new.isEnabled.value != before.isEnabled.value {
      if new.isEnabled.value {
        beginSession()
      } else {
        abandonWrites(reason: "the device is disabled")
        stop()
      }
    }
    report(.description)
    context.log.info("settings changed", fields)
  }

  func rename(to id: DeviceID, _ reason: RenameReason) {
    let before = description.id
    description.id = id
    if owner == .this { context.store.change(address) { $0.id = id } }
    report(.renamed(from: before, reason))
  }

  // MARK: Owner

  func setOwner(_ new: Owner, desired: [String: Value]) {
    let before = owner
    owner = new
    guard case .other = new else { return }
    for channel in channels {
      channel.handOver(desired: desired[channel.property.name], wasOwned: before != .unknown)
    }
    perform(session.handedOver())
  }

  // MARK: Commands

  /// Why no command can be carried out, not even later.
  var obstacle: String? {
    guard session.state == .stopped else { return nil }
    return context.isStopping ? "the gateway is stopping" : "the device is disabled"
  }

  func abandonWrites(reason: String) {
    for channel in channels { channel.abandonWrites(reason: reason) }
  }

  func isUnresponsive() { perform(session.unresponsive()) }

  /// - Returns: the state of the session after it.
  func reconnect() -> PeripheralSession.State {
    perform(session.reconnect())
    return session.state
  }

  // MARK: Desired state

  func desiredChanged() {
    let shown = shownDesired
    guard shown != description.desired else { return }
    description.desired = shown
    report(.description)
  }

  private var shownDesired: [String: Value] {
    var shown: [String: Value] = [:]
    for channel in channels { shown[channel.property.name] = channel.desired.shown }
    return shown
  }

  // MARK: Values

  /// On the path of every reading.
  func publish(_ value: Value, of channel: Channel) {
    if channel.index == description.profile.alive?.property || description.profile.alive == nil {
      session.received(at: .now)
    }
    sequence += 1
    context.counters.readings += 1
    if Logger.isEnabled(.debug) { logReading(value, channel) }
    let reading = Reading(property: channel.index, value: value, time: .now, sequence: sequence)
    for observer in observers { observer.received(reading) }
  }

  private func logReading(_ value: Value, _ channel: Channel) {
    context.log.debug(
      "reading", ["device": id, "property": channel.property.name, "value": value, "sequence": sequence])
  }

  /// What the device holds, as a read tells that the engine made for itself: no reading.
  func wasReadBack(_ value: Value, of channel: Channel) {
    for observer in observers {
      observer.received(Reading(property: channel.index, value: value, time: .now, sequence: nil))
    }
    guard channel.index == description.profile.alive?.period, case .integer(let milliseconds) = value else {
      return
    }
    perform(session.periodIs(milliseconds))
  }

  /// How often a property is read that bluetoothd does not notify: once a period, and once a second at most.
  var pollInterval: Duration {
    guard let index = description.profile.alive?.period,
      case .integer(let milliseconds) = channels[index].value
    else { return .seconds(1) }
    return .milliseconds(max(1000, milliseconds))
  }

  // MARK: The session

  private func beginSession() {
    session = PeripheralSession(now: .now, endsForSilence: description.profile.alive != nil)
    sessionNumber += 1
  }

  /// Ends the session and the link.
  func stop() {
    perform(session.stop())
    linkEnded()
    if context.isStopping { return }
    guard let peripheral else { return }
    context.loop.task(of: context.central) { await $0.disconnect(peripheral) }
  }

  private func perform(_ actions: [PeripheralSession.Action]) {
    for action in actions {
      switch action {
      case .connect: connect()
      case .subscribe: subscribe()
      case .disconnect: disconnect()
      case .online: becameOnline()
      case .offline: becameOffline()
      case .setTimer(let delay):
        timer?.cancel()
        timer = context.loop.timer(after: delay) { [weak self] in
          guard let self else { return }
          perform(session.timer(at: .now))
        }
      case .cancelTimer: timer?.cancel()
      case .report(let trouble): log(trouble)
      }
    }
    // Most events change nothing: a peripheral that is seen again, or a silence that is not long enough.
    guard session.state != handledState else { return }
    handledState = session.state
    report(.session)
    context.sessionChanged(self)
  }

  private func connect() {
    guard let peripheral else { return perform(session.connected(.failed(.gone))) }
    context.log.debug("connecting", fields)
    let number = sessionNumber
    let wasConnected = context.store.records[address]?.id != nil
    context.loop.task(of: context.central) { [self] central in
      let connection: PeripheralSession.Connection
      do throws(CentralError) {
        let characteristics = try await central.connect(
          peripheral, isPreferred: wasConnected,
          while: { self.sessionNumber == number && self.session.state == .connecting })
        connection = resolve(characteristics) ? .connected : .unsuitable
      } catch {
        connection = .failed(error)
      }
      // Removed or disabled meanwhile: nobody else would end the link, if there is one.
      guard session.state != .stopped, sessionNumber == number else {
        if case .failed = connection { return }
        return await central.disconnect(peripheral)
      }
      perform(session.connected(connection))
    }
  }

  /// Gives the channels the characteristics of a link; false when it lacks what the profile requires.
  private func resolve(_ characteristics: [Characteristic]) -> Bool {
    let profile = description.profile
    for channel in channels { channel.resolve(characteristics) }
    information = characteristics.filter {
      $0.service == DeviceInformation.service && DeviceInformation.texts.contains($0.uuid)
        && $0.flags.contains(.read)
    }
    if Logger.isEnabled(.debug) { log(characteristics) }
    let services = Set(characteristics.map(\.service))
    guard profile.requires.allSatisfy(services.contains) else { return false }
    if let alive = profile.alive { return channels[alive.property].characteristic != nil }
    return channels.contains { $0.characteristic != nil }
  }

  private func subscribe() {
    let before = sequence
    let number = sessionNumber
    context.loop.task(of: context.central) { [self] central in
      do throws(CentralError) {
        for channel in channels { try await subscribe(channel, on: central) }
        guard sessionNumber == number else { return }
        perform(session.subscribed(nil, at: .now))
      } catch {
        guard sessionNumber == number else { return }
        let isUnreadable = error.leavesLinkUp && sequence == before
        perform(isUnreadable ? session.unreadable(error) : session.subscribed(error, at: .now))
      }
    }
  }

  /// What does not keep the link alive is left out when it fails.
  private func subscribe(_ channel: Channel, on central: isolated Central) async throws(CentralError) {
    do throws(CentralError) {
      try await channel.subscribe(on: central)
    } catch {
      let isOptional = description.profile.alive.map { $0.property != channel.index } ?? (channels.count > 1)
      switch error {
      case .refused where isOptional, .transient where isOptional, .notifyAcquired where isOptional:
        channel.leaveOut(because: error)
      case .refused, .transient, .notifyAcquired, .busy, .unlikely, .timedOut, .gone, .disconnected,
        .unavailable:
        throw error
      }
    }
  }

  private func disconnect() {
    linkEnded()
    let peripheral = peripheral
    context.loop.task(of: context.central) { [self] central in
      if let peripheral { await central.disconnect(peripheral) }
      perform(session.left())
    }
  }

  private func becameOnline() {
    context.log.notice("online", fields)
    description.connectedSince = .now
    owner = .this
    description.learn(
      offered: Set(channels.filter { $0.characteristic != nil }.map(\.property.name)))
    context.store.change(address) { record in
      record.id = id
      record.advertisement = advertisement
      record.offered = description.offered
    }
    // What an earlier link or run has read is still good enough.
    description.isInformationPending = !information.isEmpty && !description.hasInformation
    report(.availability)
    for channel in channels { channel.linkIsLive() }
    readInformation()
  }

  private func becameOffline() {
    context.log.notice("offline", fields)
    description.connectedSince = nil
    report(.availability)
  }

  /// What belonged to the link goes with it.
  private func linkEnded() {
    for channel in channels { channel.linkEnded() }
    information = []
  }

  private func log(_ trouble: PeripheralSession.Trouble) {
    let log = context.log
    switch trouble {
    case .unsuitable:
      let hint =
        description.profile.missingHint ?? "it lacks what the profile \(description.profile.name) requires"
      log.warning("cannot be served: \(hint)", fields)
    case .connectFailed(let reason): log.info("cannot connect yet: \(reason)", fields)
    case .subscribeFailed(let reason): log.warning("cannot get its readings: \(reason)", fields)
    case .wantsPairing:
      log.warning(
        """
        no readings: it probably requires pairing, which this gateway does not support yet. In MakeCode, choose \
        "No Pairing Required" in the project settings and download the program again
        """, fields)
    case .silent(let limit): log.warning("no reading for \(limit): reconnecting", fields)
    case .unresponsive: log.warning("does not respond: reconnecting", fields)
    }
  }

  private static let mostLogged = 100

  /// What a peripheral has, and what it is used for.
  private func log(_ characteristics: [Characteristic]) {
    for characteristic in characteristics.prefix(Self.mostLogged) {
      let channel = channels.first { $0.characteristic == characteristic }
      context.log.debug(
        "characteristic",
        [
          "device": id, "service": characteristic.service, "uuid": characteristic.uuid,
          "flags": characteristic.flags, "property": channel?.property.name ?? "-",
        ])
    }
    let rest = characteristics.count - Self.mostLogged
    if rest > 0 { context.log.debug("more characteristics", ["device": id, "count": rest]) }
  }

  // MARK: Device information

  /// Model, firmware and serial number, after everything else.
  private func readInformation() {
    let characteristics = information
    guard !characteristics.isEmpty else { return }
    context.loop.task(of: context.central) { [self] central in
      var texts: [BluetoothUUID: String] = [:]
      var isUnanswered = false
      for characteristic in characteristics where !isUnanswered {
        do throws(CentralError) {
          texts[characteristic.uuid] = DeviceInformation.text(try await central.read(characteristic))
        } catch .timedOut {
          isUnanswered = true
        } catch {
          context.log.debug("cannot read its device information: \(error)", fields)
        }
      }
      let before = description
      description.isInformationPending = false
      description.model = texts[DeviceInformation.modelNumber] ?? description.model
      description.firmware = texts[DeviceInformation.firmwareRevision] ?? description.firmware
      description.serial = texts[DeviceInformation.serialNumber] ?? description.serial
      if description != before {
        context.store.change(address) { $0.learn(description) }
        report(.description)
      }
      if isUnanswered { isUnresponsive() }
    }
  }
}

extension CentralError {
  /// Whether an operation failed on a link that goes on.
  fileprivate var leavesLinkUp: Bool {
    switch self {
    case .timedOut, .unlikely: true
    case .transient, .busy, .gone, .disconnected, .refused, .notifyAcquired, .unavailable: false
    }
  }
}
