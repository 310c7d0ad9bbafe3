import Configuration
import GATT
import Log

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// What carries out the actions of ``Ownership``, the engine, and what users do.
extension OwnershipModel {
  // MARK: Ownership

  mutating func handle(_ g: Int, _ input: (inout Ownership) -> Void) {
    input(&gateways[g].ownership)
    for action in gateways[g].ownership.takeActions() { perform(g, action) }
  }

  mutating func perform(_ g: Int, _ action: Ownership.Action) {
    trace("g\(g): \(action)")
    switch action {
    case .admitted:
      gateways[g].mustAnnounce = true
      handle(g) { $0.commandsSubscribed() }
    case .sendBarrier: break
    case .gateway(.republishOnline): set(g, .state(g), .online(true))
    case .gateway(let action): problems.append("gateway \(g): \(action)")
    case .device(let address, let action):
      let device = Int(address.value)
      if gateways[g].publishers[device] != nil { perform(g, device, action) }
    case .ask(let id, _), .followOrphan(let id): subscribe(g, [.info(Self.number(id))])
    case .storeID(let address): storeID(g, Int(address.value))
    case .notFound(let id, let lost):
      let address = lost.address!
      guard gateways[g].records[Int(address.value)].isRemoved else { break }
      handle(g) { $0.found(id, of: address, offered: []) }
    case .clearOrphan(let orphan, let isRemoved):
      let device = Int(orphan.address.value)
      for topic in Self.topics(Self.number(orphan.id)) { set(g, topic, .empty) }
      guard isRemoved else { break }
      unannounce(g, device)
      removals[gateways[g].table[.info(Self.number(orphan.id))]!.version] = device
    case .releaseOrphan(let orphan): for topic in Self.topics(Self.number(orphan.id)) { release(g, topic) }
    case .orphanEnded(let orphan): storeID(g, Int(orphan.address.value))
    case .deviceRemoved(let address): unannounce(g, Int(address.value))
    case .ownedElsewhere(let address): announcedElsewhere(g, Int(address.value))
    }
  }

  mutating func perform(_ g: Int, _ device: Int, _ action: Ownership.DeviceAction) {
    let publisher = gateways[g].publishers[device]!
    let isOnline = publisher.onlineSince != nil
    switch action {
    case .follow: subscribe(g, [.info(publisher.id), .availability(publisher.id), .document(device)])
    case .setOwner(let handover, let isTakenOver, let hasNewLink):
      setOwner(g, device, owner(g, device)!, handover, isTakenOver: isTakenOver)
      if isTakenOver, device != heard, device != Self.onDemand || hasNewLink { goOffline(g, device) }
    case .noOwner(let handover): setOwner(g, device, .unknown, handover, isTakenOver: false)
    case .publish:
      publishInfo(g, device)
      set(g, .availability(publisher.id), .online(isOnline))
      if isOnline { set(g, .value(publisher.id), .by(gateway: g)) }
    case .publishInfo, .publishHandover: publishInfo(g, device)
    case .publishAvailability:
      set(g, .availability(publisher.id), .online(isOnline))
      announce(g, device)
    case .publishOffline:
      set(g, .availability(publisher.id), .online(false))
      storeID(g, device)
    case .release, .releaseTopics: for topic in Self.topics(publisher.id) { release(g, topic) }
    case .clear: for topic in Self.topics(publisher.id) { set(g, topic, .empty) }
    case .clearPublished: set(g, .value(publisher.id), .empty)
    case .renamed:
      gateways[g].filters.remove(.availability(publisher.id))
      gateways[g].publishers[device]!.id = gateways[g].records[device].name
    case .yieldID: problems.append("two devices have the id \(publisher.id)")
    case .detached:
      gateways[g].filters.subtract([.availability(publisher.id), .document(device)])
      gateways[g].publishers[device] = nil
    case .moved, .ownedBy, .publishHeld, .republish, .clearValues, .dropValues, .otherGateways,
      .receive,
      .confirm:
      break
    }
  }

  mutating func setOwner(
    _ g: Int, _ device: Int, _ owner: Owner, _ handover: Handover?, isTakenOver: Bool
  ) {
    var record = gateways[g].records[device]
    if let handover, owner == .unknown {
      (record.isDeleted, record.isPending) = (handover.isDeleted, false)
    } else if let handover,
      isTakenOver && record.isPending || handover.isNewer(than: record.revision, isTakenOver: isTakenOver)
    {
      if let value = handover.desired["v"] { record.desired = value }
      (record.revision, record.isDeleted, record.isPending) = (handover.revision, handover.isDeleted, false)
    }
    guard record != gateways[g].records[device] else { return }
    gateways[g].records[device] = record
    changed(g, device)
  }

  static func topics(_ id: Int) -> [Topic] { [.availability(id), .value(id), .info(id)] }

  mutating func publishInfo(_ g: Int, _ device: Int) {
    set(g, .info(gateways[g].publishers[device]!.id), .info(info(g, device)))
    announce(g, device)
  }

  func info(_ g: Int, _ device: Int) -> OwnershipMachine.Notice {
    let record = gateways[g].records[device]
    return OwnershipMachine.Notice(
      gateway: gateways[g].id, id: Self.deviceID(gateways[g].publishers[device]!.id),
      liveSince: gateways[g].publishers[device]!.onlineSince, isExclusive: device != heard,
      hasLink: hasLink(g, device),
      rssi: Int8(signals[g]), address: Self.address(device),
      handover: Handover(
        desired: ["v": record.desired], isDeleted: record.isDeleted, revision: record.revision))
  }

  mutating func announce(_ g: Int, _ device: Int) {
    guard gateways[g].isAdmitted, owner(g, device) == .this else { return }
    if gateways[g].records[device].isDeleted {
      gateways[g].records[device].isAnnounced = false
      gateways[g].publishers[device]!.document.expire()
      return set(g, .document(device), .empty)
    }
    if !gateways[g].records[device].isAnnounced {
      gateways[g].records[device].isAnnounced = true
      gateways[g].saved[device] = gateways[g].records[device]
    }
    if gateways[g].publishers[device]!.document.isPausing(at: moment) {
      return gateways[g].publishers[device]!.isDocumentDue = true
    }
    let (id, here) = (gateways[g].publishers[device]!.id, documentHere(g, device))
    guard gateways[g].publishers[device]!.document.publish(id, at: moment, here) else { return }
    documents += 1
    release(g, .document(device))
    gateways[g].queue.append((.document(device), .by(gateway: g)))
  }

  // MARK: The engine

  func here(_ g: Int, _ device: Int) -> OwnershipMachine.Here {
    OwnershipMachine.Here(
      onlineSince: gateways[g].publishers[device]?.onlineSince, isOnDemand: device == Self.onDemand,
      isExclusive: device != heard, hasLink: hasLink(g, device), rssi: signals[g])
  }

  /// As far as the gateway knows.
  private func hasLink(_ g: Int, _ device: Int) -> Bool {
    guard let publisher = gateways[g].publishers[device] else { return false }
    return device != Self.onDemand && device != heard && publisher.onlineSince != nil
      && !publisher.isBetweenTurns
  }

  mutating func changed(_ g: Int, _ device: Int, _ change: DeviceChange = .description) {
    let here = here(g, device)
    handle(g) { $0.changed(Self.address(device), change, here) }
  }

  mutating func revise(_ g: Int, _ device: Int) {
    gateways[g].records[device].revision = max(now(g), gateways[g].records[device].revision + 1)
    gateways[g].records[device].isPending = owner(g, device) != .this
    changed(g, device)
  }

  mutating func setDeleted(_ g: Int, _ device: Int, _ isDeleted: Bool) {
    guard isDeleted != gateways[g].records[device].isDeleted else { return }
    gateways[g].records[device].isDeleted = isDeleted
    revise(g, device)
  }

  mutating func storeID(_ g: Int, _ device: Int) {
    gateways[g].records[device].id = gateways[g].publishers[device]?.id
  }

  mutating func link(_ g: Int, _ device: Int) {
    trace("g\(g) makes a link to device \(device)")
    if device != Self.onDemand, device != heard { links[device] = g }
    gateways[g].publishers[device]!.onlineSince = Timestamp(milliseconds: Int64(now(g)))
    gateways[g].publishers[device]!.isBetweenTurns = false
    gateways[g].records[device].isPending = false
    gateways[g].records[device].id = gateways[g].records[device].id ?? gateways[g].publishers[device]!.id
    changed(g, device, .availability)
    flush(g)
  }

  /// At times a device gives its link to another one, and stays online.
  mutating func stepOfTurns() {
    let device = any(Self.deviceCount)
    guard chance(5), let g = links[device], gateways[g].publishers[device]?.onlineSince != nil else { return }
    trace("g\(g) ends the turn of device \(device)")
    links[device] = nil
    gateways[g].publishers[device]!.isBetweenTurns = true
    changed(g, device)
    flush(g)
  }

  /// The gateway notices that the link is gone, or ends it, or that the next turn is overdue.
  mutating func goOffline(_ g: Int, _ device: Int) {
    if links[device] == g { links[device] = nil }
    guard gateways[g].publishers[device]?.onlineSince != nil else { return }
    trace("g\(g) notices that device \(device) is offline")
    gateways[g].publishers[device]!.onlineSince = nil
    gateways[g].publishers[device]!.isBetweenTurns = false
    changed(g, device, .availability)
    flush(g)
  }

  mutating func makePublisher(_ g: Int, _ device: Int) {
    let record = gateways[g].records[device]
    gateways[g].publishers[device] = Publisher(id: record.name)
    let here = here(g, device)
    handle(g) {
      $0.added(
        Self.address(device), Self.deviceID(record.name), hasTopics: record.id == record.name, offered: [],
        here)
    }
    reportOrphan(g, device)
  }

  /// The device may have another id than the one under which its topics were published, or none.
  mutating func reportOrphan(_ g: Int, _ device: Int) {
    guard let id = gateways[g].records[device].id, gateways[g].publishers[device]?.id != id else { return }
    handle(g) { $0.found(Self.deviceID(id), of: Self.address(device), offered: []) }
  }

  mutating func announcedElsewhere(_ g: Int, _ device: Int) {
    gateways[g].records[device].isAnnounced = false
    gateways[g].publishers[device]?.document.expire()
    // The last document is this gateway's, though: it will not remove it.
    if retained[.document(device)] == .by(gateway: g) { forgotten.insert(.document(device)) }
  }

  mutating func unannounce(_ g: Int, _ device: Int) {
    guard gateways[g].records[device].isAnnounced else {
      if gateways[g].isConnected { gateways[g].up.append(.askForDocument(of: device)) }
      return
    }
    gateways[g].records[device].isAnnounced = false
    set(g, .document(device), .empty)
  }

  // MARK: What users do

  mutating func rename(_ g: Int, _ device: Int, to id: Int) {
    guard let before = gateways[g].publishers[device], before.id != id else { return }
    trace("g\(g) renames device \(device) from \(before.id) to \(id)")
    gateways[g].records[device].name = id
    handle(g) { $0.renamed(Self.address(device), to: Self.deviceID(id), .requested, offered: []) }
    reportOrphan(g, device)
    flush(g)
  }

  mutating func remove(_ g: Int, _ device: Int) {
    guard gateways[g].publishers[device] != nil else { return }
    trace("g\(g) removes device \(device)")
    let record = gateways[g].records[device]
    excuse(g)
    if links[device] == g { links[device] = nil }
    var new = Record(id: record.id, name: record.name, isRemoved: true)
    new.isAnnounced = record.isAnnounced
    gateways[g].records[device] = new
    if isOwnedByOther(g, device) { announcedElsewhere(g, device) }
    handle(g) { $0.removed(Self.address(device), .removed, offered: []) }
    reportOrphan(g, device)
    flush(g)
  }

  mutating func add(_ g: Int, _ device: Int) {
    trace("g\(g) adds device \(device)")
    if gateways[g].publishers[device] == nil {
      gateways[g].records[device].isRemoved = false
      makePublisher(g, device)
    }
    gateways[g].records[device].isDeleted = false
    revise(g, device)
    flush(g)
  }

  mutating func start(_ g: Int) {
    trace("g\(g) starts")
    gateways[g].isRunning = true
    gateways[g].runs += 1
    gateways[g].ownership = Ownership(
      gateways[g].id, run: "\(gateways[g].runs)", started: Timestamp(milliseconds: Int64(now(g))))
    set(g, .state(g), .online(true))
    for device in 0..<Self.deviceCount {
      if gateways[g].records[device].isRemoved {
        reportOrphan(g, device)
      } else {
        makePublisher(g, device)
      }
    }
  }

  mutating func save(_ g: Int) {
    gateways[g].saved = gateways[g].records
    replaceDocuments(g)
  }

  /// - Returns: whether there were any.
  @discardableResult
  mutating func replaceDocuments(_ g: Int) -> Bool {
    var isDue = false
    for device in gateways[g].publishers.indices where gateways[g].publishers[device]?.isDocumentDue == true {
      gateways[g].publishers[device]!.isDocumentDue = false
      announce(g, device)
      isDue = true
    }
    flush(g)
    return isDue
  }

  mutating func kill(_ g: Int, losesDatabase: Bool) {
    if gateways[g].isConnected { disconnect(g) }
    trace("g\(g) is killed\(losesDatabase ? ", and its state database lost" : "")")
    for device in names.indices {
      if gateways[g].table[.document(device)] != nil { forgotten.insert(.document(device)) }
      var ids = gateways[g].ownership.orphans.all.filter { $0.address.value == device }.map {
        Self.number($0.id)
      }
      ids += [gateways[g].publishers[device]?.id, gateways[g].saved[device].id].compactMap { $0 }
      if losesDatabase {
        // Home Assistant's documents are not read.
        gateways[g].saved[device] = Record(
          name: name(device, at: g), isAnnounced: gateways[g].saved[device].isAnnounced)
      }
      for id in ids {
        let isStored = gateways[g].saved[device].id == id
        if isCleared(id) {
          isExcused[device] = true
          if !isStored { forgotten.formUnion(Self.topics(id)) }
        }
        // Of a device that was never connected, nothing but the database has the id.
        if !isStored, retained[.info(id)] == nil { forgotten.insert(.availability(id)) }
      }
    }
    gateways[g].isRunning = false
    gateways[g].records = gateways[g].saved
    gateways[g].publishers = names.map { _ in nil }
    gateways[g].ownership = Ownership(gateways[g].id, run: "", started: .now)
    gateways[g].table = [:]
    for device in links.indices where links[device] == g { links[device] = nil }
  }
}
