import Configuration
import Devices
import GATT

extension Ownership {
  /// What has happened.
  enum Input {
    /// There is a connection to the broker.
    case connected
    case disconnected
    /// The barrier that was due is sent.
    case barrierSent
    /// A barrier of this run has arrived.
    case barrier(UInt64)
    /// A barrier has not arrived in time: a broker may not return a client's own messages.
    case barrierIsLate(UInt64)
    /// Commands are subscribed to: those that the broker retains arrive.
    case commandsSubscribed
    /// Another run under this gateway's id has answered the barrier.
    case answered
    /// The `info` under this gateway's id.
    case gatewayInfo(run: String, started: String)
    /// The `state` of a gateway, this one included.
    case state(GatewayID, isOnline: Bool)
    /// The `info` of a device of any gateway.
    /// - `isUpToDate`: whether it is as this gateway would publish it now.
    case info(OwnershipMachine.Notice, isUpToDate: Bool)
    /// The `info` of this id is cleared.
    case cleared(DeviceID)
    /// Another gateway announces the device to Home Assistant again and again, though this one owns it; nil: none does any more.
    case announcedToo(BluetoothAddress, by: GatewayID?)
    /// Another gateway uses the device's id for another device, and neither can be renamed.
    case sameID(BluetoothAddress, at: GatewayID)
    /// The device is known from now on.
    /// - `hasTopics`: whether an earlier run has published it under the id; `offered`: the properties that it offered then.
    case added(
      BluetoothAddress, DeviceID, hasTopics: Bool, offered: Set<PropertyName>, OwnershipMachine.Here)
    case changed(BluetoothAddress, DeviceChange, OwnershipMachine.Here)
    /// - `offered`: the properties whose values may be published under the id of before.
    case renamed(BluetoothAddress, to: DeviceID, RenameReason, offered: Set<PropertyName>)
    /// The device no longer offers these properties.
    case withdrawn(BluetoothAddress, Set<PropertyName>)
    case removed(BluetoothAddress, DetachReason, offered: Set<PropertyName>)
    /// An earlier run has published the device under this id, which it no longer has.
    case orphan(DeviceID, of: BluetoothAddress, offered: Set<PropertyName>)
    /// The topics of this id are not cleared: another gateway is to own the device.
    case orphanDropped(DeviceID)
  }

  /// What is to be done about the gateway, or about topics of devices that it does not know under their ids.
  enum Action: Equatable {
    /// Publish, and subscribe to commands.
    case admitted
    /// Send ``Ownership/dueBarrier`` at the end of the loop iteration.
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
