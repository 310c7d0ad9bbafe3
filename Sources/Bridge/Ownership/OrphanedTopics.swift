import Configuration
import Devices
import EventLoop
import GATT
import Log
import MQTT

/// Clears the topics of devices that are removed, or have another id: what ``Orphans`` decides.
@LoopActor final class OrphanedTopics {
  private let context: BridgeContext
  private let publishers: DevicePublishers
  private let barriers: Barriers
  private var orphans: Orphans

  init(_ publishers: DevicePublishers, _ barriers: Barriers, _ context: BridgeContext) {
    self.publishers = publishers
    self.barriers = barriers
    self.context = context
    orphans = Orphans(context.gateway)
  }

  func contains(_ id: DeviceID) -> Bool { orphans.contains(id) }
  func received(_ notice: OwnershipMachine.Notice) { orphans.received(notice) }
  func cleared(_ id: DeviceID) { perform(orphans.cleared(id)) }
  func barrierArrived(_ number: UInt64) { perform(orphans.barrierArrived(number)) }

  /// - Parameter barrier: `.max`: without a connection.
  func setBarrier(_ barrier: UInt64) {
    orphans.setBarrier(barrier)
    // Another gateway may own the device by the next connection.
    if barrier == .max { for orphan in orphans.all { releaseTopics(of: orphan) } }
  }

  /// A device that has not been found yet is offline: the last run may have been killed while it was online. If it is
  /// known under another id, or was removed, its topics under the old one are cleared.
  func report(_ lost: [(id: DeviceID, device: InfoRoutes.Lost)]) {
    for (id, device) in lost where publishers[id] == nil && !orphans.contains(id) {
      if let address = device.address,
        publishers[address] != nil || context.engine.isRemoved(address)
      {
        found(id, of: address, offered: device.properties)
      } else {
        context.log.notice(
          "offline: an earlier run has published it, and it is not found yet", ["device": id])
        publishOffline(topics(of: id))
      }
    }
  }

  private func publishOffline(_ topics: DeviceTopics) {
    context.mqtt.publish(
      MQTTMessage(topic: topics.availability, payload: Payload.availability(false), retain: true))
  }

  /// Clears the topics of a device that is no longer configured or has another id, unless another gateway owns it, or
  /// is to own it; if the id is another device's now, only what that one does not publish.
  /// - Parameter isSettled: whether it is known that no other gateway owns it.
  func found(
    _ id: DeviceID, of address: BluetoothAddress, offered: Set<PropertyName>, isSettled: Bool = false
  ) {
    guard !orphans.contains(id) else { return }
    if let publisher = publishers[id] {
      context.engine.storeID(of: address)
      return idPassed(from: address, offered: offered, to: publisher)
    }
    context.mqtt.subscribe([TopicFilter(topics(of: id).info)])
    orphans.add(id, of: address, offered: offered, barrier: isSettled ? .max : barriers.send())
    if isSettled { perform(orphans.settle(id)) }
  }

  private func perform(_ actions: [Orphans.Action]) {
    for action in actions {
      switch action {
      case .clear(let orphan): clear(orphan)
      case .confirm(let id): orphans.setBarrier(barriers.send(), of: id)
      case .cleared(let orphan): ended(orphan)
      case .leave(let orphan, let isSameDevice):
        releaseTopics(of: orphan)
        ended(orphan)
        if isSameDevice {
          publishers.discovery?.ownedElsewhere(orphan.address)
        } else {
          reportRemoved(orphan.address)
        }
      }
    }
  }

  /// The device of `publisher` has its id from now on.
  func idUsed(by publisher: DevicePublisher) {
    guard let orphan = orphans.remove(publisher.device.id) else { return }
    ended(orphan)
    idPassed(from: orphan.address, offered: orphan.offered, to: publisher)
  }

  /// The device at `address` had the id that the device of `publisher` has now; they may be the same.
  private func idPassed(
    from address: BluetoothAddress, offered: Set<PropertyName>, to publisher: DevicePublisher
  ) {
    publisher.foundOrphanedValues(offered)
    reportRemoved(address)
  }

  /// The device is removed from Home Assistant, unless this gateway still has it, under another id.
  private func reportRemoved(_ address: BluetoothAddress) {
    if publishers[address] == nil { publishers.discovery?.deviceRemoved(address) }
  }

  private func ended(_ orphan: Orphans.Orphan) {
    context.mqtt.unsubscribe([TopicFilter(topics(of: orphan.id).info)])
    context.engine.storeID(of: orphan.address)
  }

  /// No gateway owns the orphan. When the cleared `info` returns from the broker, all its topics are cleared.
  private func clear(_ orphan: Orphans.Orphan) {
    if context.engine.isPinnedElsewhere(orphan.address) {
      // The gateway that the device is pinned to has not found it yet.
      publishOffline(topics(of: orphan.id))
      _ = orphans.remove(orphan.id)
      ended(orphan)
    } else {
      for topic in states(of: orphan) { context.mqtt.clearState(topic) }
      reportRemoved(orphan.address)
    }
  }

  private func releaseTopics(of orphan: Orphans.Orphan) {
    for topic in states(of: orphan) { context.mqtt.releaseState(topic) }
  }

  private func states(of orphan: Orphans.Orphan) -> [TopicName] {
    let topics = topics(of: orphan.id)
    let others = orphan.offered.subtracting(InfoRoutes.builtIn)
    return topics.states(of: others) + topics.states
  }

  /// The topics of every property of the built-in profile, besides those that the device is known to have offered.
  private func topics(of id: DeviceID) -> DeviceTopics { context.topics.topics(of: id, .microbit) }
}
