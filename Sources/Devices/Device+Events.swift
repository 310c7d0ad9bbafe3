import GATT
import JSON
import Log

/// What the session and the properties report.
extension Device {
  /// The state of the session has changed, or why its link ended is known.
  func sessionChanged() {
    report(.session)
    context.sessionChanged()
  }

  func becameOffline() {
    context.log.write(isAnonymous ? .debug : .notice, "offline", fields)
    description.isOnline = false
    description.offlineSince = .now
    description.adapter = nil
    report(.availability)
  }

  /// The peripheral has changed its services: the link offers these properties.
  func offerChanged(to offered: Set<String>) {
    learn(offered: offered, isNewLink: false)
    report(.description)
  }

  /// - Parameter texts: the values of the Device Information Service, by characteristic.
  func learn(_ texts: [BluetoothUUID: String]) {
    let before = description
    description.isInformationPending = false
    context.store.change(address) { $0.learn(texts) }
    if description != before { report(.description) }
  }

  func becameOnline() {
    if description.isOnline {
      context.log.debug("connected on demand", fields)
    } else {
      context.log.write(isAnonymous ? .debug : .notice, "online", fields)
    }
    description.isOnline = true
    description.lastConnected = .now
    description.offlineSince = nil
    session.becameOnline()
    context.store.change(address) { record in
      // Another id has topics that are still to be cleared.
      record.id = record.id ?? id
      record.isPending = false
      record.advertisement = advertisement
      record.lastSeen = max(record.lastSeen ?? 0, Timestamp.now.day)
    }
    // Device information is not awaited if an earlier link or run has read it.
    description.isInformationPending =
      session.linkSession?.services.hasInformation == true && !record.hasInformation
    report(.availability)
  }

  func setTurn(_ turn: LinkTurn?) {
    guard description.turn?.isAbout(turn) != true, description.turn != turn else { return }
    description.turn = turn
    report(.description)
  }

  /// Learns what the device offers, and stores it.
  /// - Parameter usable: nil: the properties that have a characteristic.
  func learn(offered: Set<String>, usable: Set<String>? = nil, isNewLink: Bool) {
    let usable = usable ?? Set(channels.filter { $0.characteristic != nil }.map(\.property.name))
    let before = record.offered
    description.learn(offered: offered, usable: usable, isNewLink: isNewLink)
    if let offered = record.offered, offered != before {
      context.store.change(address) { $0.offered = offered }
    }
  }

  /// A command of an earlier run has ended.
  func answer(_ result: CommandResult, to sender: JSONValue) {
    tellObservers { $0.answer(result, to: sender) }
  }
}
