import Configuration
import GATT

@testable import Bridge
@testable import Devices

/// What may happen at any time, and what must hold when nothing happens any more.
extension OwnershipModel {
  // MARK: Steps

  mutating func step() {
    clock += any(3)
    let (g, device) = (any(gateways.count), any(Self.deviceCount))
    switch any(40) {
    case 0..<10: if !gateways[g].up.isEmpty { handleNext(of: g) }
    case 10..<20: if !gateways[g].down.isEmpty { receiveNext(g) }
    case 20, 21: deliver(g)
    case 22: changeConnection(of: g)
    case 23: if chance(3) { changeRun(of: g) }
    case 24: save(g)
    case 25: noticeLoss(of: any(gateways.count))
    case 26, 27: move(device)
    case 28..<32: device == heard && chance(2) ? changeSignal(of: g) : connect(g, device)
    case 32, 33: if isStale(g, device) { goOffline(g, device) }
    case 34, 35: command(device)
    case 36: publish(.document(device), .empty)
    case 37: if owner(g, device) != nil, !isOwnedByOther(g, device) { add(g, device) }
    case 38: rename(device)
    default: if chance(4) { removeOrAdd(g, device) }
    }
  }

  /// Every few minutes the broker saves what it retains.
  mutating func stepOfBroker() {
    switch any(100) {
    case 0, 1: saved = (retained, forgotten)
    case 2: goBack()
    default: break
    }
  }

  private mutating func deliver(_ g: Int) {
    while !gateways[g].up.isEmpty { handleNext(of: g) }
    while !gateways[g].down.isEmpty { receiveNext(g) }
  }

  private mutating func changeConnection(of g: Int) {
    guard gateways[g].isRunning else { return }
    if !gateways[g].isConnected { connect(g) } else if chance(2) { disconnect(g) }
  }

  private mutating func changeRun(of g: Int) {
    if !gateways[g].isRunning { return start(g) }
    kill(g, losesDatabase: chance(4))
  }

  private mutating func move(_ device: Int) {
    range[device] = []
    for g in gateways.indices where chance(2) { range[device].insert(g) }
    if let g = links[device], !range[device].contains(g) { links[device] = nil }
  }

  /// A device that is only heard is moved.
  private mutating func changeSignal(of g: Int) {
    signals[g] = -any(100)
    if let heard, gateways[g].publishers[heard] != nil { changed(g, heard) }
    flush(g)
  }

  /// The gateway makes a link to the device, or visits it, if it can.
  private mutating func connect(_ g: Int, _ device: Int) {
    guard gateways[g].isRunning, let publisher = gateways[g].publishers[device], range[device].contains(g),
      links[device] == nil
    else { return }
    if device == Self.onDemand {
      // Visited at another gateway: until a visit is overdue.
      if isOwnedByOther(g, device), !isResponsible(g, device) || !chance(10) { return }
    } else if publisher.onlineSince != nil, !publisher.isBetweenTurns {
      return
    }
    link(g, device)
  }

  func isOwnedByOther(_ g: Int, _ device: Int) -> Bool {
    if case .other = owner(g, device) { true } else { false }
  }

  /// Whether the link that the gateway believes in is gone, or visits are overdue.
  private func isStale(_ g: Int, _ device: Int) -> Bool {
    gateways[g].publishers[device]?.onlineSince != nil
      && (device == Self.onDemand || device == heard ? !range[device].contains(g) : links[device] != g)
  }

  private mutating func command(_ device: Int) {
    commands += 1
    let value = try! Property.microbitPeriod.encode(.integer(commands))
    for g in gateways.indices where gateways[g].isAdmitted {
      gateways[g].down.append(.command(device: device, value))
    }
  }

  /// A user renames the device, at each gateway.
  private mutating func rename(_ device: Int) {
    let id = any(Self.idCount)
    // Another device has it, or its topics are not cleared yet.
    guard !hasOtherIDs, !names.contains(id), retained[.info(id)] == nil,
      !gateways.contains(where: { $0.ownership.orphans.contains(Self.deviceID(id)) }),
      !gateways.contains(where: { ($0.records + $0.saved).contains { $0.id == id || $0.name == id } })
    else { return }
    names[device] = id
  }

  private mutating func applyNames() -> Bool {
    var hasChanged = false
    for g in gateways.indices where gateways[g].isRunning && !hasOtherIDs {
      for device in names.indices {
        guard let publisher = gateways[g].publishers[device], publisher.id != names[device],
          !isOwnedByOther(g, device)
            || gateways[g].ownership.devices[Self.address(device)]?.machine.elsewhere != nil
        else { continue }
        rename(g, device, to: names[device])
        hasChanged = true
      }
    }
    return hasChanged
  }

  private mutating func removeOrAdd(_ g: Int, _ device: Int) {
    guard gateways[g].isRunning else { return }
    if gateways[g].publishers[device] == nil { return add(g, device) }
    remove(g, device)
  }

  // MARK: Rest

  /// What is wrong when all that is on its way has arrived, while some gateways are off.
  mutating func problemsOnceDelivered() -> [String] {
    deliverAll()
    return (0..<Self.deviceCount).compactMap { device in
      let online = gateways.indices.filter {
        gateways[$0].isAdmitted && gateways[$0].publishers[device]?.onlineSince != nil
      }
      let owners = online.filter { owner($0, device) == .this }
      // A loss that the broker has not noticed is none yet.
      let isGoneUnnoticed = gateways.indices.contains {
        !gateways[$0].isConnected && retained[.state($0)] == .online(true)
      }
      if device == heard, !online.isEmpty, owners.isEmpty, !isGoneUnnoticed {
        return "device \(device) is heard by \(online), and published by none"
      }
      return owners.count > 1 ? "device \(device) is online at its owners \(owners)" : nil
    }
  }

  private static let mostMessages = 5000

  private mutating func deliverAll() {
    for _ in 0..<200 where gateways.contains(where: { !$0.up.isEmpty || !$0.down.isEmpty }) {
      // Each message is answered by more than one.
      if gateways.contains(where: { $0.down.count > Self.mostMessages }) { return }
      for g in gateways.indices { deliver(g) }
    }
  }

  /// All gateways are on, and have nothing left to do.
  mutating func comeToRest() {
    for g in gateways.indices {
      noticeLoss(of: g)
      if !gateways[g].isRunning { start(g) }
      if !gateways[g].isConnected { connect(g) }
    }
    for _ in 0..<20 {
      deliverAll()
      clock += 100
      var hasChanged = applyNames()
      for g in gateways.indices {
        hasChanged = replaceDocuments(g) || hasChanged
        for device in names.indices where isStale(g, device) {
          goOffline(g, device)
          hasChanged = true
        }
      }
      if let heard {
        for g in range[heard].sorted()
        where gateways[g].publishers[heard].map({ $0.onlineSince == nil }) == true {
          link(g, heard)
          hasChanged = true
        }
      }
      for device in names.indices where !gateways.indices.contains(where: { isOnline($0, device) }) {
        guard
          let g = range[device].sorted().first(where: { gateways[$0].publishers[device] != nil }),
          links[device] == nil, device != heard
        else { continue }
        link(g, device)
        hasChanged = true
      }
      if !hasChanged { return deliverAll() }
    }
  }

  private func isOnline(_ g: Int, _ device: Int) -> Bool {
    gateways[g].publishers[device]?.onlineSince != nil && owner(g, device) == .this
  }

  func problemsAtRest() -> [String] {
    var problems = self.problems
    if gateways.contains(where: { !$0.up.isEmpty || !$0.down.isEmpty }) {
      problems.append("messages without an end")
    }
    var expected = Set(gateways.indices.map(Topic.state)).union(forgotten)
    for device in names.indices {
      let known = gateways.indices.filter { gateways[$0].publishers[device] != nil }
      let owners = known.filter { owner($0, device) == .this }
      let inRange = known.filter { range[device].contains($0) }
      func fail(_ text: String) { problems.append("device \(device): \(text)") }
      if owners.count > 1 || owners.isEmpty && !inRange.isEmpty { fail("its owners are \(owners)") }
      guard let g = owners.first, owners.count == 1 else {
        // Not online anywhere: what is known of it may stay.
        for g in known { expected.formUnion(Self.topics(name(device, at: g)) + [.document(device)]) }
        continue
      }
      let id = name(device, at: g)
      for other in known where other != g && owner(other, device) != .other(gateways[g].id) {
        fail("to gateway \(other) its owner is \(owner(other, device)!), not \(g)")
      }
      expected.formUnion(Self.topics(id))
      let record = gateways[g].records[device]
      guard case .info(let notice) = retained[.info(id)] else {
        fail("no info")
        continue
      }
      if notice.gateway != gateways[g].id { fail("info of \(notice.gateway), not of gateway \(g)") }
      let handover = info(g, device).handover
      if notice.handover != handover { fail("\(notice.handover) is published, not \(handover)") }
      if let newest = newest[device]?.handover, newest.revision != record.revision, !isExcused[device] {
        fail("\(newest) is lost: \(handover)")
      }
      if retained[.availability(id)] != .online(isOnline(g, device)) { fail("availability") }
      if isOnline(g, device) != !inRange.isEmpty { fail("online") }
      let likely = inRange.filter { name(device, at: $0) == id }
      if device == heard, isOnline(g, device), inRange.contains(where: { name(device, at: $0) < id }) {
        fail("published under \(id)")
      }
      if device == heard, isOnline(g, device), let best = likely.max(by: { signals[$0] < signals[$1] }),
        signals[best] >= Int(notice.rssi ?? 0) + 10
      {
        fail("heard better by gateway \(best)")
      }
      if record.isDeleted {
        if retained[.document(device)] != nil { fail("deleted, and announced") }
      } else {
        expected.insert(.document(device))
        if isOnline(g, device), retained[.document(device)] != .by(gateway: g) {
          fail("not announced by \(g)")
        }
      }
    }
    let left = retained.keys.filter { !expected.contains($0) }
    if !left.isEmpty { problems.append("left behind: \(left)") }
    return problems
  }
}
