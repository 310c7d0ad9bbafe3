import BlueZ
import EventLoop
import GATT
import Log

/// The session of a device whose values come in its advertisements, whichever adapter receives them.
@LoopActor final class HeardSession: ListeningSession {
  /// The properties by where their values are.
  private let sources: [(source: Property.Source, channels: [Channel])]
  /// The last reports of its advertisements by each adapter.
  private var lastReports: [Int: AdvertisedData.Reports] = [:]
  /// The mean of the last signal strengths, in dBm; ``DeviceDescription/rssi`` follows it.
  private var signal: Double?
  /// Why nothing can be read of what the device sends; nil since something could.
  private var unreadable: BTHome.Obstacle?
  /// When a value could be read last, or ``unreadable`` became another obstacle.
  private var settled: Moment?
  /// Logs each obstacle: anybody can send what cannot be read between two values.
  private var logged: [BTHome.Obstacle: Hourly] = [:]
  /// Reads and decrypts what the device advertises in BTHome.
  var objects: ObjectReader
  /// What was heard last while another gateway owned the device, until its `info` should have come.
  private var heardMeanwhile: (time: Timestamp, states: [(channel: Channel, value: Value)])?

  required init(of device: Device, _ adapters: DeviceAdapters) {
    let all = device.channels.compactMap(\.property.source)
    sources = all.indices.filter { all.firstIndex(of: all[$0]) == $0 }.map { index in
      (all[index], device.channels.filter { $0.property.source == all[index] })
    }
    objects = ObjectReader(counter: device.record.counter)
    super.init(of: device, adapters)
  }

  override var sendsRegularly: Bool { limit != nil }
  /// Anybody can advertise from invented addresses: devices that are only heard get at most half of the places.
  override class func hasRoom(in manager: DeviceManager) -> Bool {
    manager.registry.count(of: Self.self) < manager.capacity / 2
  }
  override class var isOnlyAdvertised: Bool { true }
  override var objectReader: ObjectReader { objects }
  override var lack: String? {
    let known = context.centrals.lazy.compactMap { [device] in $0.peripheral(at: device.address) }
    return known.first { $0.rssi != nil }.flatMap { device.description.profile.lack(in: $0.advertised) }
  }
  override var lastError: Trouble? { unreadable.map(Trouble.unreadable) }

  /// The time after a value, or a new obstacle, in which what cannot be read is no news: anybody can send it between two
  /// values.
  private static let unreadableInterval = Duration.seconds(60)

  /// The device has sent a value, or none that can be used, and why.
  func note(_ obstacle: BTHome.Obstacle?) {
    let now = Moment.now
    if obstacle == nil {
      settled = now
    } else if let settled, now < settled + Self.unreadableInterval {
      return
    }
    guard obstacle != unreadable else { return }
    (unreadable, settled) = (obstacle, now)
    if let obstacle, logged[obstacle, default: Hourly()].useIfDue(at: now) { log(.unreadable(obstacle)) }
    device.report(.session)
  }

  override func renewed(wasDisabled: Bool) -> DeviceSession {
    (unreadable, settled, logged) = (nil, nil, [:])
    // A button may have been reset.
    if wasDisabled {
      objects = ObjectReader(counter: nil)
      context.store.change(device.address) { $0.counter = nil }
    }
    return super.renewed(wasDisabled: wasDisabled)
  }

  // MARK: Presence

  /// Whether the device sends only when something happens, and is silent until then, as it says itself. A record of version 1.0
  /// has only the time for which there was no limit, perhaps by an `offline_after`.
  private var isTriggerOnly: Bool {
    device.description.profile.usesBTHome && device.record.isTriggerOnly ?? (device.record.lastHeard != nil)
  }

  override var offlineAfter: Profile.OfflineAfter? {
    device.settings.offlineAfter ?? (isTriggerOnly ? .never : super.offlineAfter)
  }

  /// A device whose silence means nothing is online from the start of the gateway, if an earlier run has heard it.
  override func begin() {
    if limit == nil, device.record.lastHeard != nil { keepOnline() }
  }

  /// The least time between two changes of ``DeviceRecord/lastHeard``, in ms.
  private static let lastHeardInterval: Int64 = 10_000
  private static let ownerLimit = Duration.seconds(3)

  /// - Returns: whether the time is to be told.
  private func noteTime(_ states: [(channel: Channel, value: Value)], isEvent: Bool) -> Bool {
    let lastHeard = device.record.lastHeard
    guard limit == nil else {
      if lastHeard != nil { noteHeard(at: nil) }
      return lastHeard != nil
    }
    let now = Timestamp.now
    let age = lastHeard.map { abs(now.milliseconds - $0.milliseconds) } ?? .max
    if age < Self.lastHeardInterval, !isEvent { return false }
    guard device.owner.isOther else {
      noteHeard(at: now)
      return true
    }
    let before = heardMeanwhile
    heardMeanwhile = (now, states.isEmpty ? before?.states ?? [] : states)
    guard before == nil else { return false }
    // The owner's `info` comes first, if that has heard it, too; else this gateway takes it over.
    loop.timer(after: Self.ownerLimit) { [weak self] in
      guard let self, let heard = heardMeanwhile else { return }
      heardMeanwhile = nil
      guard !isStopped else { return }
      noteHeard(at: heard.time)
      device.report(.description)
      if device.owner == .this { for (channel, value) in heard.states { channel.reportReading(of: value) } }
    }
    return false
  }

  private func noteHeard(at time: Timestamp?) {
    context.store.change(device.address) { $0.lastHeard = time }
  }

  // MARK: Advertisements

  override func adapterCannotScan() { interrupt() }

  override func adapterChanged(_ adapter: Int, isOn: Bool) {
    super.adapterChanged(adapter, isOn: isOn)
    if !isOn { interrupt() }
  }

  /// - Parameter seen: also reported when something else than its advertisement has changed.
  override func seen(_ seen: Peripheral, by adapter: Int) {
    super.seen(seen, by: adapter)
    let known = lastReports.updateValue(seen.lastReports, forKey: adapter) ?? AdvertisedData.Reports()
    guard seen.lastReports != known, !isStopped else { return }
    let before = (device.record.offered, device.description.rssi)
    if let rssi = seen.rssi, adapters.isCurrent(adapter) { follow(rssi) }
    var states: [(channel: Channel, value: Value)] = []
    var happened: [(source: Property.Source, contents: [HeardEvents.Content])] = []
    let readable = readable(seen).advertised
    for (source, channels) in sources where seen.lastReports.has(source.data, since: known) {
      guard let sent = seen.advertised.data(source.data), let frame = readable.data(source.data),
        source.value(in: frame, width: nil) != nil
      else { continue }
      // Each encrypted frame has a counter, and so differs from the one before, also where the values are the same.
      let novelty = events.heard(source, sent, packetID: packetID(in: frame, of: source), at: .now)
      device.lastReading = .now
      guard novelty.hasReadings else { continue }
      let values = channels.compactMap { channel in channel.heardValue(in: frame).map { (channel, $0) } }
      states += values.filter { $0.0.property.kind == .state }
      let contents = values.filter { $0.0.property.kind == .event }
        .map { HeardEvents.Content(property: $0.0.index, value: $0.1) }
      if !contents.isEmpty { happened.append((source, novelty.hasEvents ? contents : [])) }
    }
    // Something else may share its advertisements with it.
    guard device.description.isOnline || !states.isEmpty || !happened.isEmpty else { return }
    if !device.description.isOnline { device.description.adapter = context.centrals[adapter].adapterName }
    if !states.isEmpty || !happened.isEmpty { note(nil) }
    wasHeard(states.map(\.channel) + happened.flatMap(\.contents).map { device.channels[$0.property] })
    if noteTime(states, isEvent: happened.contains { !$0.contents.isEmpty })
      || (device.record.offered, device.description.rssi) != before
    {
      device.report(.description)
    }
    for (channel, value) in states { channel.reportReading(of: value) }
    for (source, contents) in happened where !contents.isEmpty { heardEvents(contents, of: source) }
  }

  override func learn(from seen: Peripheral) -> Bool { learnObjects(of: seen) }

  private func packetID(in frame: [UInt8], of source: Property.Source) -> UInt8? {
    guard source.data == .service(BTHome.service), let frame = try? BTHome.Frame(frame) else { return nil }
    if device.record.isTriggerOnly != frame.isTriggerOnly {
      context.store.change(device.address) { $0.isTriggerOnly = frame.isTriggerOnly }
    }
    return frame.packetID
  }

  /// Signals vary: a change is told when their mean has changed by 10 dB.
  private func follow(_ rssi: Int) {
    let mean = device.description.isOnline ? signal.map { ($0 * 3 + Double(rssi)) / 4 } : nil
    let signal = mean ?? Double(rssi)
    self.signal = signal
    if !device.description.isOnline || abs(signal - Double(device.description.rssi ?? 0)) >= 10 {
      device.description.rssi = Int(signal.rounded())
    }
  }
}

extension AdvertisedData.Reports {
  /// Whether data of this kind was reported since. Other data that the device sends says nothing about it.
  fileprivate func has(_ data: Property.Source.Data, since known: Self) -> Bool {
    switch data {
    case .service: serviceData != known.serviceData
    case .manufacturer: manufacturerData != known.manufacturerData
    case .radio: false
    }
  }
}

extension AdvertisedData {
  func data(_ data: Property.Source.Data) -> [UInt8]? {
    switch data {
    case .service(let uuid): serviceData[uuid]
    case .manufacturer(let number): manufacturerData[number]
    case .radio: nil
    }
  }
}
