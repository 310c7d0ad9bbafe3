import GATT
import Log

/// What the session and the properties report.
extension Device {
  func handle(_ event: DeviceEvent) {
    switch event {
    case .session:
      report(.session)
      context.sessionChanged()
    case .online(let hasInformation): becameOnline(hasInformation: hasInformation)
    case .offline:
      context.log.write(isAnonymous ? .debug : .notice, "offline", fields)
      description.isOnline = false
      description.offlineSince = .now
      description.adapter = nil
      report(.availability)
    case .offered(let offered):
      learn(offered: offered, isNewLink: false)
      report(.description)
    case .information(let texts):
      let before = description
      description.learn(information: texts)
      guard description != before else { return }
      context.store.change(address) { $0.learn(description) }
      report(.description)
    case .desired:
      let before = description
      describeDesired()
      if description != before { report(.description) }
    case .commandWaits(let deadline): session.links?.commandWaits(until: deadline)
    case .unresponsive: session.links?.unresponsive()
    }
  }

  private func becameOnline(hasInformation: Bool) {
    if description.isOnline {
      context.log.debug("connected on demand", fields)
    } else {
      context.log.write(isAnonymous ? .debug : .notice, "online", fields)
    }
    description.isOnline = true
    description.lastConnected = .now
    description.offlineSince = nil
    session.describeOnline()
    context.store.change(address) { record in
      // Another id has topics that are still to be cleared.
      record.id = record.id ?? id
      record.isPending = false
      record.advertisement = advertisement
      record.offered = description.offered
      record.lastSeen = max(record.lastSeen ?? 0, Timestamp.now.day)
    }
    // Device information is not awaited if an earlier link or run has read it.
    description.isInformationPending = hasInformation && !description.hasInformation
    report(.availability)
  }

  func setTurn(_ turn: LinkTurn?) {
    guard description.turn?.isAbout(turn) != true, description.turn != turn else { return }
    description.turn = turn
    report(.description)
  }

  func learn(offered: Set<String>, isNewLink: Bool) {
    description.learn(
      offered: offered,
      usable: Set(channels.filter { $0.characteristic != nil }.map(\.property.name)), isNewLink: isNewLink)
    context.store.change(address) { $0.offered = description.offered }
  }

  func describeDesired() {
    description.desired = [:]
    description.configured = []
    for channel in channels {
      guard let desired = channel.writer?.desired, let shown = desired.shown else { continue }
      description.desired[channel.property.name] = shown
      if desired.isConfigured { description.configured.insert(channel.property.name) }
    }
  }
}
