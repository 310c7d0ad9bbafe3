import EventLoop
import GATT
import MQTT

/// Home Assistant is told of the devices that this gateway holds, of the gateway, and of what is no more.
extension Gateway {
  /// So many at a time, so that readings do not wait behind hundreds of them.
  private static let batch = 10
  private static let batchPause = Duration.milliseconds(20)
  /// Between two documents of one device: of one that comes while it still sets up the entities of the one before, Home
  /// Assistant loses a part.
  private static let documentPause = Duration.seconds(1)
  /// A Home Assistant that has just started takes in what it is told within this time.
  private static let followUpDelay = Duration.seconds(5)

  // MARK: Telling

  /// Everything, as to somebody who knows nothing.
  func announceAll(_ stage: Announcement.Stage = .plain) {
    announcedGatewayHash = nil
    for device in byID.values { device.announcedHash = nil }
    append {
      // Before those that wait already: they refer to it.
      $0.prepend(.gateway(stage))
      for device in byID.values { $0.append(.device(device.address, stage)) }
    }
  }

  /// Tells of the device what has changed, soon.
  func announce(_ device: Device) { announce(.device(device.address, .plain)) }

  func announce(_ announcement: Announcement) { append { $0.append(announcement) } }

  /// What is held back already does not join the queue, which then may stay empty.
  private func append(_ body: (inout AnnouncementQueue) -> Void) {
    let wasEmpty = announcements.isEmpty
    body(&announcements)
    if wasEmpty, !announcements.isEmpty { announceNext(after: .zero) }
  }

  /// - Returns: whether it is too early for the next document of a device, after that of `last`. It is told in time.
  private func isTooEarly(_ announcement: Announcement, after last: Moment?) -> Bool {
    guard let pause = last.map({ Self.documentPause - $0.duration(to: .now) }), pause > .zero else {
      return false
    }
    if announcements.hold(announcement) {
      loop.timer(after: pause) { [weak self] in self?.assumeIsolated { $0.release(announcement) } }
    }
    return true
  }

  func release(_ announcement: Announcement) {
    if announcements.release(announcement) { announce(announcement) }
  }

  private func announceNext(after delay: Duration) {
    loop.timer(after: delay) { [weak self] in self?.assumeIsolated { $0.announceNext() } }
  }

  private func announceNext() {
    for announcement in announcements.next(Self.batch) { perform(announcement) }
    if !announcements.isEmpty {
      announceNext(after: Self.batchPause)
    } else if !followUps.isEmpty, followUp == nil {
      followUp = loop.timer(after: Self.followUpDelay) { [weak self] in
        self?.assumeIsolated { $0.followUpIsDue() }
      }
    }
  }

  /// The time of all of them begins anew, when everything is told.
  private func addFollowUp(_ announcement: Announcement) {
    followUps.append(announcement)
    followUp?.cancel()
    followUp = nil
  }

  private func followUpIsDue() {
    let due = followUps
    cancelFollowUps()
    for announcement in due { announce(announcement) }
  }

  /// Home Assistant or the broker went away, or began anew: what was to be done at the last birth is for the next.
  func cancelFollowUps() {
    followUp?.cancel()
    followUp = nil
    followUps = []
  }

  private func perform(_ announcement: Announcement) {
    // Without the broker, or as a guest at it, nothing is told; when that is over everything is.
    guard claim.state == .held else { return }
    switch announcement {
    case .gateway(let stage): tellOfGateway(stage)
    case .device(let address, let stage): if let device = devices[address] { tell(of: device, stage) }
    case .removal(let topic, let stage): if let removal = memory.removals[topic] { tell(of: removal, stage) }
    }
  }

  private func tell(of device: Device, _ stage: Announcement.Stage) {
    guard let discovery, device.holder.party == .this else { return }
    let record = memory.records[device.address]
    guard record?.isForgotten != true else { return }
    // When its first link has shown what it offers, it is told.
    guard device.info.offered != nil else { return }
    let announcement = Announcement.device(device.address, stage)
    if device.isInformationAwaited {
      // Its end releases it.
      _ = announcements.hold(announcement)
      return
    }
    if isTooEarly(announcement, after: device.announcedAt) { return }
    let document = discovery.document(
      of: device.info, topics: device.topics, hasGateway: !isGatewayForgotten, before: record?.announced,
      isRevival: stage == .revive)
    let hash = document.payload.hashValue
    if hash != device.announcedHash {
      device.announcedHash = hash
      device.announcedAt = .now
      publish(document)
    }
    let announced = announced(by: document, stage, followUp: .device(device.address, .forget))
    memory.change(device.address) { $0.announced = announced }
  }

  private func tellOfGateway(_ stage: Announcement.Stage) {
    guard let discovery, !isGatewayForgotten, !isTooEarly(.gateway(stage), after: announcedGatewayAt) else {
      return
    }
    let document = discovery.document(
      ofGatewayIn: configuration.gateway.area, adapter: configuration.bluetooth.adapter,
      before: memory.announcedGateway, isRevival: stage == .revive)
    let hash = document.payload.hashValue
    if hash != announcedGatewayHash {
      announcedGatewayHash = hash
      announcedGatewayAt = .now
      publish(document)
    }
    memory.announceGateway(announced(by: document, stage, followUp: .gateway(.forget)))
  }

  /// What is to be remembered of `document`; what it has revived is to be forgotten later.
  private func announced(
    by document: DiscoveryDocument, _ stage: Announcement.Stage, followUp: Announcement
  ) -> Announced {
    switch stage {
    case .plain: return document.announced
    case .revive:
      if document.announced != document.settled { addFollowUp(followUp) }
      return document.announced
    case .forget: return document.settled
    }
  }

  private func tell(of removal: Removal, _ stage: Announcement.Stage) {
    switch stage {
    case .plain: break
    case .revive:
      addFollowUp(.removal(removal.topic.string, .forget))
      // Not for the broker to keep: should this gateway end now, nothing of it stays.
      let document = removal.revival(qos: qos)
      publish(MQTTMessage(topic: document.topic, payload: document.payload))
    case .forget:
      drop(removal.topic.string)
      clearState(removal.topic)
    }
  }

  private func publish(_ document: DiscoveryDocument) {
    drop(document.topic.string)
    publish(MQTTMessage(topic: document.topic, payload: document.payload, retain: true))
  }

  // MARK: Taking back

  /// The device is no longer announced.
  func clearDiscovery(of address: BluetoothAddress) {
    guard let announced = memory.records[address]?.announced else { return }
    // First of all: the broker may tell it back.
    memory.change(address) { $0.announced = nil }
    devices[address]?.announcedHash = nil
    takeBack(.device(address), announced)
  }

  private func takeBack(_ subject: Discovery.Subject, _ announced: Announced) {
    let discovery = Discovery(prefix: announced.prefix, qos: qos, topics: topics)
    clearState(discovery.topic(of: subject))
    remember(Removal(object: discovery.object(of: subject), announced))
  }

  /// What was announced where Home Assistant is not to be told any more, is taken back.
  func reviewDiscovery() {
    // Else another gateway may have announced the device meanwhile; when it is known who has it, this is done.
    guard claim.state == .held else { return }
    let prefix = discovery?.prefix
    for record in memory.records.values where record.announced.map({ $0.prefix != prefix }) == true {
      if devices[record.identifier]?.holder.isElsewhere == true {
        memory.change(record.identifier) { $0.announced = nil }
      } else {
        clearDiscovery(of: record.identifier)
      }
    }
    if let announced = memory.announcedGateway, announced.prefix != prefix {
      memory.announceGateway(nil)
      announcedGatewayHash = nil
      takeBack(.gateway, announced)
    }
  }
}
