import Configuration
import Devices
import GATT
import Log

/// Which gateway owns each device, and what this one publishes and clears because of that. Pure: the actions that follow from
/// each input are to be carried out, in order.
///
/// The owners are known from retained messages, which have arrived when a barrier has: only then may the gateway publish.
struct Ownership: Sendable {
  private let this: GatewayID
  private(set) var idGuard: DuplicateIDGuard
  /// The barrier of the id guard.
  private var guardBarrier: UInt64 = 0
  /// Arrives after the retained commands for all subscriptions so far.
  private(set) var commandBarrier: UInt64 = 0
  private(set) var barriers = Barriers()
  private(set) var devices: [BluetoothAddress: Device] = [:]
  private var addresses: [DeviceID: BluetoothAddress] = [:]
  /// Another gateway's device that is about to be added again, with other properties.
  private var replaced: (address: BluetoothAddress, machine: OwnershipMachine)?
  private(set) var orphans: Orphans
  private(set) var routes: InfoRoutes
  /// The other gateways at this broker that are online; beyond ``mostGateways``, further ones count as offline.
  private(set) var online: Set<GatewayID> = []
  /// Whoever may publish `bridge/{id}/state` can invent ids.
  private static let mostGateways = 1024
  private var actions: [Action] = []

  init(_ this: GatewayID, run: String, started: Timestamp) {
    self.this = this
    idGuard = DuplicateIDGuard(run: run, started: started)
    orphans = Orphans(this)
    routes = InfoRoutes(this)
  }

  /// What follows from the last input.
  mutating func takeActions() -> [Action] {
    defer { actions = [] }
    return actions
  }

  private func known(where condition: (Device) -> Bool) -> [BluetoothAddress] {
    devices.compactMap { condition($1) ? $0 : nil }.sorted { $0.value < $1.value }
  }

  private mutating func act(_ action: DeviceAction, _ address: BluetoothAddress) {
    actions.append(.device(address, action))
  }

  // MARK: The connection

  mutating func connected() {
    barriers.connected()
    idGuard.connected()
    guardBarrier = awaitBarrier()
    awaitRetained(guardBarrier)
  }

  mutating func disconnected() {
    barriers.disconnected()
    online = []
    routes.disconnected()
    for index in devices.values.indices { devices.values[index].others.disconnected() }
    idGuard.disconnected()
    awaitRetained(.max)
    // Another gateway may own the devices by the next connection.
    actions += orphans.all.map { .releaseOrphan($0) }
  }

  mutating func barrierSent() { barriers.sent() }

  /// A barrier of this run has arrived.
  mutating func barrierArrived(_ number: UInt64) {
    barriers.arrived(number)
    if number == guardBarrier { performGuard(idGuard.barrierArrived()) }
    reconcile(upTo: number)
  }

  /// A barrier has not arrived in time: a broker may not return a client's own messages.
  mutating func barrierIsLate(_ number: UInt64) {
    if number == guardBarrier { performGuard(idGuard.timeout()) }
    reconcile(upTo: number)
    if barriers.late(number) { _ = awaitBarrier() }
  }

  /// Commands are subscribed to: those that the broker retains arrive.
  mutating func commandsSubscribed() { commandBarrier = awaitBarrier() }

  /// The id guard learns something of another run under this gateway's id.
  mutating func guardID(_ input: (inout DuplicateIDGuard) -> [DuplicateIDGuard.Action]) {
    performGuard(input(&idGuard))
  }

  /// A barrier that arrives after the retained messages for the subscriptions so far, if it is sent now; without a
  /// connection none is sent: each begins with one.
  private mutating func awaitBarrier() -> UInt64 {
    if barriers.isConnected, barriers.due == nil { actions.append(.sendBarrier) }
    return barriers.await()
  }

  /// All retained messages arrive again before this barrier.
  private mutating func awaitRetained(_ barrier: UInt64) {
    for index in devices.values.indices {
      devices.values[index].barrier = barrier
      devices.values[index].machine.awaitRetained()
    }
    orphans.setBarrier(barrier)
  }

  private mutating func performGuard(_ guardActions: [DuplicateIDGuard.Action]) {
    for action in guardActions {
      switch action {
      case .ask: guardBarrier = awaitBarrier()
      case .admit:
        actions.append(.admitted)
        reconcile(upTo: max(guardBarrier, barriers.lastArrived))
      case .reportConflict, .reconnect, .republishOnline, .republishInfo, .reportSilent:
        actions.append(.gateway(action))
      }
    }
  }

  /// The retained messages have arrived for the devices that wait for a barrier up to `number`.
  private mutating func reconcile(upTo number: UInt64) {
    guard isAdmitted else { return }
    for (id, lost) in routes.takeLost() where addresses[id] == nil && !orphans.contains(id) {
      if let address = lost.address, devices[address] != nil {
        found(id, of: address, offered: lost.properties)
      } else {
        actions.append(.notFound(id, lost))
      }
    }
    for address in known(where: { $0.barrier <= number }) {
      devices[address]!.barrier = .max
      updateOwner(of: address) { $0.settle($1) }
      if owner(of: address) == .this { actions.append(.storeID(address)) }
      clearOrphanedValues(address)
    }
    performOrphans(orphans.barrierArrived(number))
  }

  /// The `state` of a gateway has arrived, this one included.
  mutating func stateArrived(of gateway: GatewayID, isOnline: Bool) {
    if gateway == this {
      performGuard(idGuard.received(isOnline: isOnline))
    } else if !isOnline {
      guard online.remove(gateway) != nil else { return }
      for index in devices.values.indices { devices.values[index].others.wentOffline(gateway) }
      for address in known(where: { $0.machine.owner == .other(gateway) }) { hearAgain(address) }
    } else if online.count < Self.mostGateways, online.insert(gateway).inserted {
      // Its `info` may have arrived before.
      for address in known(where: { $0.others.informants.contains(gateway) }) { act(.otherGateways, address) }
    }
  }

  // MARK: Infos

  /// An `info` from any gateway, under any id, concerns the device that it describes, and the one that has the id here.
  /// - Parameter isUpToDate: whether it is as this gateway would publish it now.
  mutating func infoArrived(_ notice: OwnershipMachine.Notice, isUpToDate: Bool) {
    orphans.received(notice)
    let concerned = routes.received(
      notice, named: addresses[notice.id], isOrphan: orphans.contains(notice.id)
    ) { [devices] in devices[$0]?.machine.owner }
    for address in concerned {
      let (isOwn, isOwnID) = (notice.gateway == this, notice.id == devices[address]!.machine.id)
      if isOwn || isOwnID { devices[address]!.orphanedValues.add(notice.properties) }
      if isOwnID, let named = notice.address {
        devices[address]!.hasValuesOfAnother =
          isOwn && named != address && !devices[address]!.machine.mayClear
      }
      if !isOwn, notice.address ?? address == address {
        devices[address]!.others.received(notice, isOwnID: isOwnID)
      }
      let before = owner(of: address)
      updateOwner(of: address, isUpToDate: isUpToDate) { $0.received(notice, $1) }
      if let now = owner(of: address), now != before, case .other(let gateway) = now {
        act(.ownedBy(gateway), address)
      }
      act(.otherGateways, address)
    }
  }

  /// The `info` of an id is cleared, with all other topics: by its owner, or by a gateway that did not know who owns it.
  mutating func cleared(_ id: DeviceID) {
    routes.cleared(id)
    for address in known(where: { $0.machine.follows(id) }) {
      if id == devices[address]!.machine.id { devices[address]!.others.cleared() }
      updateOwner(of: address) { machine, _ in machine.cleared(id) }
      if owner(of: address) == .this, id == devices[address]!.machine.id { act(.republish, address) }
      act(.otherGateways, address)
    }
    performOrphans(orphans.cleared(id))
  }

  /// Something was learned of other gateways by something else than `info`.
  mutating func learn(of address: BluetoothAddress, _ change: (inout OtherGateways) -> Void) {
    guard devices[address] != nil else { return }
    change(&devices[address]!.others)
    act(.otherGateways, address)
  }

  // MARK: Devices

  /// The device is known from now on.
  /// - Parameters:
  ///   - hasTopics: whether an earlier run has published it under the id.
  ///   - offered: the properties that it offered then.
  mutating func added(
    _ address: BluetoothAddress, _ id: DeviceID, hasTopics: Bool, offered: Set<PropertyName>,
    _ here: OwnershipMachine.Here
  ) {
    // This gateway hears the device again at once, and would publish it.
    let before = replaced.take().flatMap { $0.address == address && $0.machine.id == id ? $0.machine : nil }
    let machine = before ?? OwnershipMachine(this, id, address, hasTopics: hasTopics)
    devices[address] = Device(machine: machine, here: here, orphanedValues: offered)
    addresses[id] = address
    if before != nil { act(.setOwner(nil), address) }
    // What others publish of it under other ids has arrived before.
    actions += routes.added(address).map {
      .ask($0, isFollowed: addresses[$0] != nil || orphans.contains($0))
    }
    follow(address)
  }

  /// The device has its id from now on.
  private mutating func follow(_ address: BluetoothAddress) {
    if let orphan = orphans.remove(devices[address]!.machine.id) {
      actions.append(.orphanEnded(orphan))
      devices[address]!.orphanedValues.formUnion(orphan.offered)
      reportRemoved(orphan.address)
    }
    act(.follow, address)
    devices[address]!.barrier = awaitBarrier()
    devices[address]!.machine.awaitRetained()
  }

  mutating func changed(
    _ address: BluetoothAddress, _ change: DeviceChange, _ here: OwnershipMachine.Here
  ) {
    guard devices[address] != nil else { return }
    devices[address]!.here = here
    switch change {
    case .availability:
      updateOwner(of: address) { $0.availabilityChanged($1) }
      if owner(of: address) == .this { act(.publishHeld, address) }
    case .description, .handover:
      guard owner(of: address) == .this else { return hearAgain(address) }
      act(change == .handover ? .publishHandover : .publishInfo, address)
    case .session, .renamed: break
    }
  }

  /// - Parameter offered: the properties whose values may be published under the id of before.
  mutating func renamed(
    _ address: BluetoothAddress, to id: DeviceID, _ reason: RenameReason, offered: Set<PropertyName>
  ) {
    guard let machine = devices[address]?.machine else { return }
    let isOwn = machine.owner == .this
    if isOwn || reason == .conflict { act(.releaseTopics, address) }
    if addresses[machine.id] == address { addresses[machine.id] = nil }
    addresses[id] = address
    devices[address]!.machine.renamed(to: id)
    devices[address]!.others.cleared()
    (devices[address]!.orphanedValues, devices[address]!.hasValuesOfAnother) = ([], false)
    act(.renamed(from: machine.id), address)
    follow(address)
    guard isOwn else { return }
    // First, so that other gateways that know the device by the id of before take it for owned all the time.
    performDevice(.publish, address)
    act(.republish, address)
    switch reason {
    case .requested: found(machine.id, of: address, offered: offered, isSettled: machine.mayClear)
    case .conflict: actions.append(.storeID(address))
    }
  }

  /// The device no longer offers these properties.
  mutating func withdrawn(_ address: BluetoothAddress, _ names: Set<PropertyName>) {
    devices[address]?.orphanedValues.formUnion(names)
    clearOrphanedValues(address)
  }

  mutating func removed(_ address: BluetoothAddress, _ reason: DetachReason, offered: Set<PropertyName>) {
    guard let machine = devices.removeValue(forKey: address)?.machine else { return }
    if addresses[machine.id] == address { addresses[machine.id] = nil }
    if let id = machine.elsewhere?.id { routes.removed(address, elsewhere: id) }
    switch reason {
    case .removed:
      act(.releaseTopics, address)
      act(.detached, address)
      found(machine.id, of: address, offered: offered, isSettled: machine.mayClear)
    case .replaced where !machine.isOwnedByOther:
      // The new properties may be others.
      act(.dropValues(isCleared: machine.mayClear), address)
      act(.detached, address)
    case .replaced, .pinnedElsewhere, .neverConnected:
      if reason == .replaced { replaced = (address, machine) }
      act(.releaseTopics, address)
      // Values may have come before it went out of range.
      if reason == .neverConnected, machine.mayClear { act(.clearPublished, address) }
      act(.detached, address)
      actions.append(.ownedElsewhere(address))
    }
  }

  /// The device may be this gateway's now, if it is only heard, here too.
  private mutating func hearAgain(_ address: BluetoothAddress) {
    guard let here = devices[address]?.here, !here.isExclusive, here.onlineSince != nil else { return }
    updateOwner(of: address) { $0.availabilityChanged($1) }
  }

  private mutating func clearOrphanedValues(_ address: BluetoothAddress) {
    guard let device = devices[address], device.machine.mayClear, device.machine.owner == .this,
      !device.orphanedValues.isEmpty || device.hasValuesOfAnother
    else { return }
    (devices[address]!.orphanedValues, devices[address]!.hasValuesOfAnother) = ([], false)
    act(.clearValues(device.orphanedValues, ofAnother: device.hasValuesOfAnother), address)
    if device.hasValuesOfAnother { act(.republish, address) }
  }

  // MARK: The machines

  private mutating func updateOwner(
    of address: BluetoothAddress, isUpToDate: Bool = false,
    by input: (inout OwnershipMachine, OwnershipMachine.Here) -> [DeviceAction]
  ) {
    var here = devices[address]!.here
    (here.online, here.isAdmitted, here.isUpToDate) = (online, isAdmitted, isUpToDate)
    for action in input(&devices[address]!.machine, here) { performDevice(action, address) }
  }

  private mutating func performDevice(_ action: DeviceAction, _ address: BluetoothAddress) {
    switch action {
    case .noOwner:
      act(action, address)
      hearAgain(address)
    case .publish:
      clearOrphanedValues(address)
      act(action, address)
    case .release:
      act(action, address)
      actions.append(.ownedElsewhere(address))
    case .clear:
      act(.clearValues(devices[address]!.orphanedValues), address)
      act(action, address)
      devices[address]!.orphanedValues = []
    case .receive(let notice): updateOwner(of: address) { $0.received(notice, $1) }
    case .confirm: devices[address]!.barrier = awaitBarrier()
    default: act(action, address)
    }
  }

  // MARK: Orphans

  /// A device was published under this id, and is no longer configured or has another id. Its topics are cleared, unless another
  /// gateway owns it, or is to own it; if the id is another device's now, only what that one does not publish.
  /// - Parameter isSettled: whether it is known that no other gateway owns it.
  mutating func found(
    _ id: DeviceID, of address: BluetoothAddress, offered: Set<PropertyName>, isSettled: Bool = false
  ) {
    guard !orphans.contains(id) else { return }
    if let named = addresses[id] {
      actions.append(.storeID(address))
      devices[named]!.orphanedValues.formUnion(offered)
      return reportRemoved(address)
    }
    actions.append(.followOrphan(id))
    orphans.add(id, of: address, offered: offered, barrier: isSettled ? .max : awaitBarrier())
    if isSettled { performOrphans(orphans.settle(id)) }
  }

  /// The topics of this id are not cleared: another gateway is to own the device.
  mutating func dropOrphan(_ id: DeviceID) { _ = orphans.remove(id) }

  /// The device is removed from Home Assistant, unless this gateway still has it, under another id.
  private mutating func reportRemoved(_ address: BluetoothAddress) {
    if devices[address] == nil { actions.append(.deviceRemoved(address)) }
  }

  private mutating func performOrphans(_ orphanActions: [Orphans.Action]) {
    for action in orphanActions {
      switch action {
      case .clear(let orphan):
        actions.append(.clearOrphan(orphan, isRemoved: devices[orphan.address] == nil))
      case .confirm(let id): orphans.setBarrier(awaitBarrier(), of: id)
      case .cleared(let orphan): actions.append(.orphanEnded(orphan))
      case .leave(let orphan, let isSameDevice):
        actions += [.releaseOrphan(orphan), .orphanEnded(orphan)]
        if isSameDevice {
          actions.append(.ownedElsewhere(orphan.address))
        } else {
          reportRemoved(orphan.address)
        }
      }
    }
  }
}
