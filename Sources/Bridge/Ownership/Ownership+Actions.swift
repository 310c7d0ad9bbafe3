import Configuration
import Devices
import GATT

extension Ownership {
  /// What is to be done about the gateway, or about topics of devices that it does not know under their ids.
  enum Action: Equatable {
    /// Publish, and subscribe to commands.
    case admitted
    /// Send the barrier that is due at the end of the loop iteration: one for all that is awaited in it.
    case sendBarrier
    case gateway(DuplicateIDGuard.Action)
    case device(BluetoothAddress, DeviceAction)
    /// Get the retained `info` of the id again.
    /// - `isFollowed`: whether it is subscribed to by itself, too.
    case ask(DeviceID, isFollowed: Bool)
    /// Store the id under which the device is published.
    case storeID(BluetoothAddress)
    /// An earlier run has published a device under this id, and this run does not know it.
    case notFound(DeviceID, InfoRoutes.Lost)
    /// Subscribe to the `info` of an orphan.
    case followOrphan(DeviceID)
    /// No gateway owns the orphan's topics: clear them, `info` last.
    /// - `isRemoved`: whether the device is not known under another id either.
    case clearOrphan(Orphans.Orphan, isRemoved: Bool)
    /// Publish nothing on the orphan's topics any more.
    case releaseOrphan(Orphans.Orphan)
    /// There is no orphan any more.
    case orphanEnded(Orphans.Orphan)
    /// The device is to be removed from Home Assistant.
    case deviceRemoved(BluetoothAddress)
    /// Another gateway announces the device to Home Assistant.
    case ownedElsewhere(BluetoothAddress)
  }

  /// What is to be done about a device that this gateway knows.
  enum DeviceAction: Equatable {
    /// Subscribe to what is published of the device, and to its commands.
    case follow
    /// Tell the engine who owns the device, and what was handed over. `isTakenOver`: another gateway uses it; `hasNewLink`:
    /// that gateway has begun a link, or a visit, that was not known yet.
    case setOwner(Handover?, isTakenOver: Bool = false, hasNewLink: Bool = false)
    /// Tell the engine that no gateway is known to own the device, and what the last one hands over.
    case noOwner(Handover?)
    /// This gateway has taken the device over from the gateway of this `info`.
    case moved(OwnershipMachine.Notice)
    /// Another gateway has taken the device over.
    case ownedBy(GatewayID)
    /// Publish `info`, availability, and what follows.
    case publish
    case publishInfo
    /// Publish `info` with what gateways hand over to each other; nothing else that is published has changed.
    case publishHandover
    /// The `info` at the broker is up to date; publish the availability, and what follows, which may be of another gateway,
    /// or cleared.
    case publishAvailability
    /// No gateway is known to own the device: publish that it is offline.
    case publishOffline
    /// Publish the readings that were held back.
    case publishHeld
    /// Publish the last values again.
    case republish
    /// Another gateway owns the device: publish nothing about it any more, also nothing of what has come so far.
    case release
    /// Publish nothing on the device's topics any more, which it no longer has.
    case releaseTopics
    /// Clear the values of those of these properties that are not published; `ofAnother`: also of those that are, as the values
    /// are another device's.
    case clearValues(Set<PropertyName>, ofAnother: Bool = false)
    /// No gateway owns the topics of this id: clear them, `info` last.
    case clear
    /// Clear the values that this gateway has published.
    case clearPublished
    /// Clear the values of all properties, or leave them as they are: the device gets other properties.
    case dropValues(isCleared: Bool)
    /// Use the topics of the new id.
    case renamed(from: DeviceID)
    /// The device's id is in use by another gateway: get another one.
    case yieldID(to: GatewayID)
    /// What other gateways have said of the device has changed.
    case otherGateways
    /// The device is no longer known.
    case detached
    /// Within ``Ownership``: the `info` of the owner is cleared. Handle this other gateway's `info`, under another id, as if it
    /// had just arrived.
    case receive(OwnershipMachine.Notice)
    /// Within ``Ownership``: another gateway owns the device, under another id. Settle it again when all that is on its way has
    /// arrived.
    case confirm
  }
}
