import Configuration
import Devices
import GATT
import JSON
import Log

/// Which gateway owns a device and so writes the retained topics of one of its ids: the one that has its link, or had it
/// last. The owner's `info` carries what gateways hand over to each other.
///
/// A pure machine. It follows the other gateways by the retained `info`; the last one that the broker has counts. A device
/// that has another id by now, or is removed, leaves an orphan: a machine for its former id, until the topics are cleared,
/// or another gateway owns them.
struct OwnershipMachine: Equatable, Sendable {
  enum Action: Equatable, Sendable {
    /// Tell the engine who owns it, and what was handed over. If it is taken over, another gateway uses it; `hasNewLink`:
    /// by a link, or a visit, that was not known yet.
    case setOwner(Handover?, isTakenOver: Bool = false, hasNewLink: Bool = false)
    /// This gateway has taken it over from the one of this `info`.
    case moved(Notice)
    /// Publish `info`, availability, and what follows.
    case publish
    /// Its `info` is as it should be; the availability, and what follows, may be of another gateway, or cleared.
    case publishAvailability
    /// No gateway is known to own it: publish that it is offline.
    case publishOffline
    /// Another gateway owns it: publish nothing about it any more.
    case release
    /// Its id is another gateway's: get another one.
    case yieldID(to: GatewayID)
    /// No gateway owns the topics of this id: clear them, `info` last.
    case clear
    /// The orphan's `info` is cleared: settle it again when all that is on its way has arrived.
    case confirm
    /// They are cleared.
    case cleared
    /// An orphan's topics are another gateway's: of the same device, or of another one.
    case leave(isSameDevice: Bool)
  }

  /// What is the case at this gateway.
  struct Here: Equatable, Sendable {
    /// As ``Notice/liveSince``.
    var onlineSince: String?
    var isOnDemand = false
    /// Whether it is only heard, which several gateways may do at once: of those the one that hears it best owns it.
    var isHeard = false
    /// The signal strength, in dBm.
    var rssi: Int?
    /// As ``Notice/lastHeard``.
    var lastHeard: Timestamp?
    /// Whether the gateway that owns it, as far as is known, is online.
    var isOwnerOnline = false
    /// Whether the `info` that has arrived is as this gateway publishes it now.
    var isUpToDate = false
    /// Whether it may publish, on this connection to the broker.
    var isAdmitted = true
  }

  private(set) var owner = Owner.unknown { didSet { if owner == .this { hasTopics = true } } }
  /// Whether this gateway has published under the id, in this run or an earlier one, and no other one since.
  private var hasTopics: Bool
  private let this: GatewayID
  private var id: DeviceID
  private let address: BluetoothAddress
  private let isOrphan: Bool
  /// The last one of another gateway; of an orphan: the last on this connection, of any.
  private var last: Notice?
  /// Whether all that the broker retains for the device has arrived, on this connection.
  private var isSettled = false
  /// Whether an `info` of another gateway has arrived, on this connection.
  private var isConfirmed = false
  /// Whether the broker has the `info` of this gateway, which has released it: a new connection would not publish it.
  private var isOnlyAtBroker = false

  init(
    _ this: GatewayID, _ id: DeviceID, _ address: BluetoothAddress, hasTopics: Bool = false,
    isOrphan: Bool = false
  ) {
    self.this = this
    self.id = id
    self.address = address
    self.hasTopics = hasTopics
    self.isOrphan = isOrphan
  }

  var isOwnedByOther: Bool {
    switch owner {
    case .other: true
    case .unknown, .this: false
    }
  }

  /// What another gateway publishes of the device under another id, if it owns it.
  var elsewhere: Notice? { isOwnedByOther && last?.id != id ? last : nil }

  /// Whether its topics may be cleared: no other gateway has them.
  var mayClear: Bool { isSettled && !isOwnedByOther }

  // MARK: Inputs

  /// The device has another id here.
  mutating func renamed(to id: DeviceID) { self.id = id }

  /// The broker is yet to send what it retains: there is a new subscription or connection, or none.
  mutating func awaitRetained() {
    (isSettled, isConfirmed) = (false, false)
    if isOrphan { last = nil }
  }

  /// The device is online, or visited, or offline.
  mutating func availabilityChanged(_ here: Here) -> [Action] {
    guard here.onlineSince != nil else { return owner == .this ? [.publish] : [] }
    let before = isOwnedByOther ? last : nil
    if here.isHeard, let before, !goesBefore(before, here, isOwnerOnline: here.isOwnerOnline) { return [] }
    let mustTell = here.isHeard && owner != .this
    owner = .this
    return (before.map { [.moved($0)] } ?? []) + (mustTell ? [.setOwner(nil)] : []) + [.publish]
  }

  /// All that the broker retains for the device has arrived. What an earlier run published may be out of date.
  /// - Parameter isOnlyGateway: whether no other gateway is online.
  mutating func settle(_ here: Here = Here(), isOnlyGateway: Bool = false) -> [Action] {
    defer { isSettled = true }
    if isOrphan { return settleOrphan() }
    switch owner {
    case .other:
      if isConfirmed { return [] }
      // It was removed there while this gateway had no connection, or the broker has lost it.
      owner = .unknown
      return [.setOwner(nil)]
    case .this:
      defer { isOnlyAtBroker = false }
      if here.onlineSince == nil { return [.setOwner(nil), .publish] }
      return isOnlyAtBroker ? [.publish] : []
    // Another gateway may just have found it, and not have published that yet.
    case .unknown:
      guard isOnlyGateway else { return [] }
      hasTopics = true
      return [.publishOffline]
    }
  }

  /// An `info` has arrived, from any gateway: under the id of the device, or of the device under another id.
  mutating func received(_ notice: Notice, _ here: Here, isOwnerOnline: Bool) -> [Action] {
    if isOrphan {
      last = notice
      return []
    }
    if notice.gateway == this { return receivedOwn(notice, here) }
    guard isSameDevice(notice) else { return receivedOtherDevice(notice, here) }
    // Under a third id: the owner that is known may go before it.
    if let elsewhere = ofOtherTopic(notice), here.isOwnerOnline, elsewhere.gateway != notice.gateway,
      elsewhere.claim.goesBefore(notice.claim, isOnline: isOwnerOnline, of: address)
    {
      return []
    }
    let hasNewLink =
      notice.liveSince != nil && (notice.gateway != last?.gateway || notice.liveSince != last?.liveSince)
    // One that visits the device keeps it, though this gateway has visited it, later, before it was admitted.
    let keepsOwner = here.isOnDemand && hasNewLink && isOwnerOnline && !here.isAdmitted
    // A gateway whose `info` replaces this one's is online, whether that is known or not.
    if !keepsOwner, here.onlineSince != nil || owner == .this,
      goesBefore(notice, here, isOwnerOnline: isOwnerOnline || owner == .this && isSettled)
    {
      // The device came online here before the `info` of its earlier owner arrived.
      owner = .this
      return (isSettled ? [] : [.moved(notice)]) + [.setOwner(notice.handover), .publish]
    }
    let mustClear = hasTopics && notice.id != id
    // What is being cleared under its own id is not released.
    let isReleased = isOwnedByOther && notice.id != id
    hasTopics = false
    last = notice
    owner = .other(notice.gateway)
    isConfirmed = true
    let isTakenOver = isOwnerOnline || here.onlineSince != nil
    return (isReleased ? [] : [.release]) + (mustClear ? [.clear] : [])
      + [.setOwner(notice.handover, isTakenOver: isTakenOver, hasNewLink: hasNewLink)]
  }

  /// The last `info` of another gateway that owns the device, unless it was on the same topic.
  private func ofOtherTopic(_ notice: Notice) -> Notice? {
    isOwnedByOther && last?.id != notice.id ? last : nil
  }

  /// The broker has cleared the `info` of an id: the device was removed at its owner, or is owned under another id.
  mutating func cleared(_ cleared: DeviceID) -> [Action] {
    if isOrphan {
      last = nil
      return isSettled ? [.confirm] : []
    }
    switch owner {
    // By another gateway that did not know of this one.
    case .this: return cleared == id ? [.publish] : []
    case .unknown: return []
    case .other:
      guard cleared == last?.id else { return [] }
      owner = .unknown
      return [.setOwner(Handover())]
    }
  }

  private func isSameDevice(_ notice: Notice) -> Bool { notice.address ?? address == address }

  /// All that was on its way has arrived: also what this gateway has published before, which is cleared, too.
  private func settleOrphan() -> [Action] {
    if let last, last.gateway != this { return [.leave(isSameDevice: isSameDevice(last))] }
    if !isSettled { return [.clear] }
    return last == nil ? [.cleared] : []
  }

  /// This gateway's own: of an earlier run, an older one of this run, or one that was on its way to the broker when
  /// another gateway took the device over. Also of an id that the device had in an earlier run.
  private mutating func receivedOwn(_ notice: Notice, _ here: Here) -> [Action] {
    let isOfThis = isSameDevice(notice)
    if !isOfThis, isOwnedByOther { return [] }
    if let elsewhere = ofOtherTopic(notice), !goesBefore(elsewhere, here, isOwnerOnline: here.isOwnerOnline) {
      return notice.id == id ? [.clear] : []
    }
    let wasOwner = owner == .this
    owner = .this
    guard isOfThis else { return [] }
    if wasOwner { return [.setOwner(notice.handover)] }
    isOnlyAtBroker = here.isUpToDate
    return [.setOwner(notice.handover), here.isUpToDate ? .publishAvailability : .publish]
  }

  /// Another gateway uses this id for another device. Of two that are online the earlier one keeps it.
  private func receivedOtherDevice(_ notice: Notice, _ here: Here) -> [Action] {
    guard let since = notice.liveSince else { return [] }
    if let own = here.onlineSince, (own, this.description) < (since, notice.gateway.description) {
      return [.publish]
    }
    return [.yieldID(to: notice.gateway)]
  }

  private func goesBefore(_ notice: Notice, _ here: Here, isOwnerOnline: Bool) -> Bool {
    Claim(
      gateway: this, id: id, since: here.onlineSince, isHeard: here.isHeard, rssi: here.rssi,
      lastHeard: here.lastHeard
    )
    .goesBefore(notice.claim, isOnline: isOwnerOnline, of: address)
  }
}

extension OwnershipMachine.Notice {
  fileprivate var claim: Claim {
    Claim(
      gateway: gateway, id: id, since: liveSince, isHeard: isHeard, rssi: rssi.map { Int($0) },
      lastHeard: lastHeard)
  }
}
