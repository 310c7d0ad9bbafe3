import GATT
import MQTT

/// Home Assistant is told of the devices that this gateway holds, of the gateway, and of what is no more.
extension Gateway {
  /// So many at a time, so that readings do not wait behind hundreds of them.
  private static let batch = 10
  private static let batchPause = Duration.milliseconds(20)
  /// A Home Assistant that has just started takes in what it is told within this time.
  private static let followUpDelay = Duration.seconds(5)

  // MARK: Telling

  /// Everything, as to somebody who knows nothing.
  func announceAll(_ stage: Announcement.Stage = .plain) {
    announcedGatewayHash = nil
    for device in byID.values { device.announcedHash = nil }
    // Before those that wait already: they refer to it.
    if announcements.isEmpty { announceNext(after: .zero) }
    announcements.prepend(.gateway(stage))
    for device in byID.values { announce(.device(device.address, stage)) }
  }

  /// Tells of the device what has changed, soon.
  func announce(_ device: Device) { announce(.device(device.address, .plain)) }

  func announce(_ announcement: Announcement) {
    let isFirst = announcements.isEmpty
    announcements.append(announcement)
    if isFirst { announceNext(after: .zero) }
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
    let document = discovery.document(
      of: device.info, topics: device.topics, hasGateway: !isGatewayForgotten, before: record?.announced,
      isRevival: stage == .revive)
    let hash = document.payload.hashValue
    if hash != device.announcedHash {
      device.announcedHash = hash
      publish(document)
    }
    let announced = announced(by: document, stage, followUp: .device(device.address, .forget))
    memory.change(device.address) { $0.announced = announced }
  }

  private func tellOfGateway(_ stage: Announcement.Stage) {
    guard let discovery, !isGatewayForgotten else { return }
    let document = discovery.document(
      ofGatewayIn: configuration.gateway.area, adapter: configuration.bluetooth.adapter,
      before: memory.announcedGateway, isRevival: stage == .revive)
    let hash = document.payload.hashValue
    if hash != announcedGatewayHash {
      announcedGatewayHash = hash
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
      if document.announced != document.settled { followUps.append(followUp) }
      return document.announced
    case .forget: return document.settled
    }
  }

  private func tell(of removal: Removal, _ stage: Announcement.Stage) {
    switch stage {
    case .plain: break
    case .revive:
      followUps.append(.removal(removal.topic.string, .forget))
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
