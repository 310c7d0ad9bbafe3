import DBus
import EventLoop

/// The links of a central.
@LoopActor final class Links {
  /// Delivers values notified by signals.
  let byteSignals = ByteSignals(of: "Value", on: BlueZName.characteristic)
  private var links: [PeripheralID: Link] = [:]
  /// How many ends of a peripheral's link are in progress.
  private var ending: [PeripheralID: Int] = [:]
  /// Those whose link bluetoothd has not ended, though it was asked to: it may not answer at all.
  var notEnded: Set<PeripheralID> = []
  /// Since when attempts have failed because another program's is in progress.
  var busySince: [PeripheralID: Moment] = [:]

  /// The link to a peripheral, if it is in use.
  subscript(id: PeripheralID) -> Link? { links[id] }

  var peripherals: Set<PeripheralID> { Set(links.keys) }

  /// The link to a connected peripheral is in use from now on.
  func use(_ id: PeripheralID) -> Link {
    busySince[id] = nil
    if let link = links[id] { return link }
    let link = Link(byteSignals)
    links[id] = link
    return link
  }

  /// The link is no longer in use: its operations and notifications end.
  /// - Returns: the former link, if there was one.
  func end(_ id: PeripheralID) -> Link? {
    let link = links.removeValue(forKey: id)
    link?.end()
    return link
  }

  // MARK: Disconnecting

  func isEnding(_ id: PeripheralID) -> Bool { ending[id] != nil }

  /// The link is being ended until ``finishEnding(_:)`` was called as often as this.
  func beginEnding(_ id: PeripheralID) { ending[id, default: 0] += 1 }

  func finishEnding(_ id: PeripheralID) { ending[id] = ending[id].flatMap { $0 > 1 ? $0 - 1 : nil } }
}
