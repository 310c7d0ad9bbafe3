import Configuration
import Devices
import GATT
import Log

/// Which gateway owns a device and so writes the retained topics of one of its ids: the one that has its link, or had it
/// last. The owner's `info` carries what gateways hand over to each other.
///
/// A pure machine. It follows the other gateways by the retained `info`; the last one that the broker has counts.
struct OwnershipMachine: Equatable, Sendable {
  typealias Action = Ownership.DeviceAction

  /// What is the case at this gateway.
  struct Here: Equatable, Sendable {
    /// The begin of the link, or of the last visit; nil while the device is offline.
    var onlineSince: Timestamp?
    var isOnDemand = false
    /// Whether the device is connected to. Several gateways may hear one that only advertises: the one that hears it best
    /// owns it.
    var isExclusive = true
    /// See ``Notice/hasLink``.
    var hasLink = false
    /// The signal strength, in dBm.
    var rssi: Int?
    /// When the device was heard last, if its silence does not make it offline: see ``Notice/lastHeard``.
    var lastHeard: Timestamp?
    /// The other gateways that are online.
    var online: Set<GatewayID> = []
    /// Whether the `info` that has arrived is as this gateway publishes it now.
    var isUpToDate = false
    /// Whether this gateway may publish, on this connection to the broker.
    var isAdmitted = true
    /// See ``DeviceDescription/hasNewLetters``.
    var hasNewLetters = false
  }

  private(set) var owner = Owner.unknown {
    didSet {
      guard owner == .this else { return }
      (hasTopics, clearing) = (true, nil)
      if second?.id == id { second = nil }
    }
  }
  /// Whether this gateway has published under the id, in this run or an earlier one, and no other one since.
  private var hasTopics: Bool
  /// Whether a message of this gateway may arrive at the broker after the new owner's `info`: it would stay when that owner clears
  /// the topics.
  private var mayBeLate = false
  /// The clearing of what this gateway has published under the id, as another gateway owns the device under another one.
  private var clearing: Clearing?
  private enum Clearing {
    /// The clearing begins when all that is on its way has arrived: another gateway may use the id, too.
    case due
    /// The clearing has begun; its messages must not be released.
    case begun
  }
  private let this: GatewayID
  private(set) var id: DeviceID
  private let address: BluetoothAddress
  /// The last `info` of another gateway.
  private var last: Notice?
  /// The `info` of another gateway under another id than that of `last`, as long as the broker retains it.
  private var second: Notice?
  /// Whether all that the broker retains for the device has arrived, on this connection.
  private var isSettled = false
  /// Whether an `info` of another gateway has arrived, on this connection.
  private var isConfirmed = false
  /// Whether the broker retains the `info` of this gateway, which no longer keeps it: a new connection would not publish it again.
  private var isOnlyAtBroker = false

  init(_ this: GatewayID, _ id: DeviceID, _ address: BluetoothAddress, hasTopics: Bool = false) {
    self.this = this
    self.id = id
    self.address = address
    self.hasTopics = hasTopics
  }

  var isOwnedByOther: Bool { owner.isOther }
  /// Whether the owner leaves the device to this gateway, to which it is pinned.
  var isLeftToThis: Bool { isOwnedByOther && last?.pin == this }

  /// What another gateway publishes of the device under another id, if it owns it.
  var elsewhere: Notice? { isOwnedByOther && last?.id != id ? last : nil }

  /// Whether the `info` of this id says who owns the device.
  func follows(_ id: DeviceID) -> Bool {
    id == self.id || isOwnedByOther && id == last?.id || id == second?.id
  }

  /// Whether the device's topics may be cleared: no other gateway has them.
  var mayClear: Bool { isSettled && !isOwnedByOther }

  // MARK: Inputs

  /// The device has another id here.
  mutating func renamed(to id: DeviceID) { (self.id, clearing, mayBeLate) = (id, nil, false) }

  /// The broker is yet to send what it retains: there is a new subscription or connection, or none.
  mutating func awaitRetained() {
    (isSettled, isConfirmed, second) = (false, false, nil)
    if mayBeLate { (hasTopics, mayBeLate) = (true, false) }
  }

  /// The device is online, or visited, or offline.
  mutating func availabilityChanged(_ here: Here) -> [Action] {
    guard here.onlineSince != nil else { return owner == .this ? [.publish] : [] }
    let before = isOwnedByOther ? last : nil
    if !here.isExclusive, let before, !goesBefore(before, here) { return [] }
    let mustTell = !here.isExclusive && owner != .this
    owner = .this
    return (before.map { [.moved($0)] } ?? []) + (mustTell ? [.setOwner(nil)] : []) + [.publish]
  }

  /// All that the broker retains for the device has arrived. What an earlier run published may be out of date.
  mutating func settle(_ here: Here) -> [Action] {
    defer { isSettled = true }
    let mustClear = clearing == .due && owner != .this && !isPublished
    if mustClear { clearing = .begun }
    return (mustClear ? [.clear] : []) + settleOwner(here)
  }

  private mutating func settleOwner(_ here: Here) -> [Action] {
    switch owner {
    case .other:
      if isConfirmed { return [] }
      // The device was removed at its owner while this gateway had no connection, or the broker has lost the `info`.
      owner = .unknown
      return [.noOwner(nil)]
    case .this:
      defer { isOnlyAtBroker = false }
      if here.onlineSince == nil { return [.setOwner(nil), .publish] }
      return isOnlyAtBroker ? [.publish] : []
    // Another gateway may just have found it, and not have published that yet.
    case .unknown:
      guard here.online.isEmpty else { return [] }
      hasTopics = true
      return [.publishOffline]
    }
  }

  /// An `info` has arrived, from any gateway: under the id of the device, or of the device under another id.
  mutating func received(_ notice: Notice, _ here: Here) -> [Action] {
    var notice = notice
    let isOwnerOnline = here.online.contains(notice.gateway)
    if let last, last.gateway == notice.gateway, last.lastHeard == notice.lastHeard {
      notice.heardSince = last.heardSince
    }
    if second?.id == notice.id { second = nil }
    if notice.gateway == this { return receivedOwn(notice, here) }
    guard isSameDevice(notice) else { return receivedOtherDevice(notice, here) }
    // Under a third id: the owner that is known may go before it, though the values may be newer.
    if let elsewhere = ofOtherTopic(notice), here.online.contains(elsewhere.gateway),
      elsewhere.gateway != notice.gateway,
      elsewhere.claim.goesBefore(notice.claim, isOnline: isOwnerOnline, of: address)
    {
      second = notice
      return [.setOwner(notice.handover)]
    }
    let hasNewLink =
      notice.liveSince != nil && (notice.gateway != last?.gateway || notice.liveSince != last?.liveSince)
    // A gateway that visits the device keeps it, even if this one has visited it later, before it was admitted.
    let keepsOwner = here.isOnDemand && hasNewLink && isOwnerOnline && !here.isAdmitted
    // A gateway whose `info` replaces this one's is online, whether that is known or not.
    if !keepsOwner, here.onlineSince != nil || owner == .this,
      goesBefore(notice, here, isOnline: isOwnerOnline || owner == .this && isSettled)
    {
      // The device came online here before the `info` of its earlier owner arrived.
      owner = .this
      return (isSettled ? [] : [.moved(notice)]) + [.setOwner(notice.handover), .publish]
    }
    let mustClear = hasTopics && notice.id != id
    if mustClear { clearing = .due }
    if notice.id == id { (mayBeLate, clearing) = (mayBeLate || hasTopics || clearing == .due, nil) }
    hasTopics = false
    if let elsewhere = ofOtherTopic(notice) { second = elsewhere }
    last = notice
    owner = .other(notice.gateway)
    isConfirmed = true
    let isTakenOver = notice.pin != this && (isOwnerOnline || here.onlineSince != nil)
    return (clearing == .begun ? [] : [.release]) + (mustClear ? [.confirm] : [])
      + [.setOwner(notice.handover, isTakenOver: isTakenOver, hasNewLink: hasNewLink)]
  }

  /// The last `info` of another gateway that owns the device, unless it was on the same topic, or has not arrived on this
  /// connection: the broker may not have it any more.
  private func ofOtherTopic(_ notice: Notice) -> Notice? {
    isOwnedByOther && isConfirmed && last?.id != notice.id ? last : nil
  }

  /// The broker has cleared the `info` of an id: the device was removed at its owner, or is owned under another id.
  mutating func cleared(_ cleared: DeviceID) -> [Action] {
    if cleared == second?.id { second = nil }
    if cleared == id {
      if clearing == .begun { clearing = nil }
      if mayBeLate { (hasTopics, mayBeLate) = (true, false) }
    }
    switch owner {
    // The `info` was cleared by another gateway that did not know of this one.
    case .this: return cleared == id ? [.publish] : []
    case .unknown: return []
    case .other:
      guard cleared == last?.id else { return [] }
      if second == nil, clearing != nil {
        // Each of two gateways has given way to the other.
        owner = .this
        return [.setOwner(nil), .publish]
      }
      owner = .unknown
      return [second.map { .receive($0) } ?? .noOwner(Handover())]
    }
  }

  /// Whether another gateway publishes the device under the id, as far as is known.
  private var isPublished: Bool { isOwnedByOther && last?.id == id || second?.id == id }

  private func isSameDevice(_ notice: Notice) -> Bool { notice.address ?? address == address }

  /// Handles an `info` of this gateway: of an earlier run, an older one of this run, or one that was on its way to the broker
  /// when another gateway took the device over. It may have an id that the device had in an earlier run.
  private mutating func receivedOwn(_ notice: Notice, _ here: Here) -> [Action] {
    let isOfThis = isSameDevice(notice)
    if !isOfThis, isOwnedByOther { return [] }
    if let elsewhere = ofOtherTopic(notice), !goesBefore(elsewhere, here) {
      // The values in this `info` may be newer than what is stored.
      let copied = Action.setOwner(notice.handover)
      guard notice.id == id else { return [copied] }
      clearing = .due
      return [copied, .confirm]
    }
    let wasOwner = owner == .this
    owner = .this
    guard isOfThis else { return [] }
    if wasOwner { return [.setOwner(notice.handover)] }
    isOnlyAtBroker = here.isUpToDate
    return [.setOwner(notice.handover), here.isUpToDate ? .publishAvailability : .publish]
  }

  /// Another gateway uses this id for another device. Of two that are online the earlier one keeps it. A new device leaves its
  /// letters also to one that is offline.
  private func receivedOtherDevice(_ notice: Notice, _ here: Here) -> [Action] {
    guard let since = notice.liveSince else {
      return here.hasNewLetters ? [.yieldID(to: notice.gateway)] : []
    }
    if let own = here.onlineSince, (own, this.description) < (since, notice.gateway.description) {
      return [.publish]
    }
    return [.yieldID(to: notice.gateway)]
  }

  private func goesBefore(_ notice: Notice, _ here: Here, isOnline: Bool? = nil) -> Bool {
    Claim(
      gateway: this, id: id, since: here.onlineSince, isExclusive: here.isExclusive, hasLink: here.hasLink,
      rssi: here.rssi, lastHeard: here.lastHeard
    )
    .goesBefore(notice.claim, isOnline: isOnline ?? here.online.contains(notice.gateway), of: address)
  }
}
