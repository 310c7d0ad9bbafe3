import Configuration
import EventLoop
import GATT
import TestSupport

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// A few gateways with their machines, a broker that delivers in order on each connection, and devices that move.
///
/// What is around ``OwnershipMachine`` and `PublishedDocument` is a model: of `DevicePublisher` and `Admission`, which run it, of the engine, the
/// state database, and the MQTT client with its table of retained state.
struct OwnershipModel {
  enum Topic: Hashable {
    case info(Int)
    case availability(Int)
    case value(Int)
    /// Home Assistant's.
    case document(Int)
    case state(Int)
  }

  enum Payload: Equatable {
    case empty
    case info(OwnershipMachine.Notice)
    case online(Bool)
    case by(gateway: Int)
  }

  enum Upward {
    case publish(Topic, Payload, version: Int)
    case subscribe([Topic])
    case barrier(UInt64)
  }

  enum Downward {
    case message(Topic, Payload)
    case acknowledged(Topic, version: Int)
    case barrier(UInt64)
    case command(device: Int, PublishedDesired)
  }

  /// What the state database has of a device.
  ///
  /// It is written at once that a device is announced, as nothing else tells the next run; and what was changed before.
  struct Record: Equatable {
    var id: Int?
    /// By request.
    var name: Int
    var isRemoved = false
    var desired = PublishedDesired.noOverride
    var isDeleted = false
    var isAnnounced = false
    var revision = 0
    var isPending = false
  }

  /// A device at a gateway.
  struct Publisher {
    var id: Int
    var machine: OwnershipMachine
    var barrier = UInt64.max
    var onlineSince: String?
    var document = PublishedDocument()
    /// It is too early for the document.
    var isDocumentDue = false
    /// How many times another gateway's `info` has arrived.
    var notices = 0
    /// The gateways that they came from.
    var informants: Set<GatewayID> = []
  }

  struct Gateway {
    let id: GatewayID
    let clockError: Int
    var records: [Record]
    /// What is written of them.
    var saved: [Record]
    var isRunning = false
    var isConnected = false
    var isAdmitted = false
    var publishers: [Publisher?]
    var orphans: Orphans
    var online: Set<GatewayID> = []
    var barriers: UInt64 = 0
    var guardBarrier: UInt64 = 0
    var routes: InfoRoutes
    /// The client's state of each topic; `order` is the version of its first payload.
    var table: [Topic: (payload: Payload, version: Int, order: Int)] = [:]
    /// Without a payload: the state of the topic.
    var queue: [(topic: Topic, payload: Payload?)] = []
    var up: [Upward] = []
    var down: [Downward] = []
    /// The broker has not noticed yet that it is gone.
    var isWillDue = false
    var filters: Set<Topic> = []
  }

  static let deviceCount = 3
  static let idCount = 8
  /// This device is connected on demand.
  static let onDemand = 2
  /// This device is only heard, by any number of gateways; nil: none is.
  let heard: Int?
  /// Whether half of the gateways know each device by another id, and nobody mends that.
  let hasOtherIDs: Bool

  var random: SplitMix64
  var gateways: [Gateway]
  var retained: [Topic: Payload] = [:]
  /// The gateways that receive each device.
  var range: [Set<Int>]
  /// How well each gateway hears the device that is only heard.
  var signals: [Int]
  /// The gateway that has its link.
  var links: [Int?]
  /// The id that a user wants each device to have.
  var names: [Int]
  /// The newest that any `info` has said of each device since it was removed last.
  var newest: [(handover: Handover, id: Int, ownedBy: Int?, replacedBy: Int?)?]
  /// The gateway that published an older one after it was killed, or lost its connection, before it could learn that.
  var isExcused: [Bool]
  /// May stay: another gateway cleared them when their owner was killed, and nobody knows of those that it published
  /// later; or a document, whose removal the state database has until Home Assistant starts next.
  var forgotten: Set<Topic> = []
  /// The device that was removed, by the version of the message that clears its `info`.
  var removals: [Int: Int] = [:]
  /// How many documents were published.
  var documents = 0
  var clock = 1_000_000
  var version = 0
  var commands = 20
  /// Whether events are printed.
  var isTraced = false
  /// What must not happen at any time.
  var problems: [String] = []

  init(seed: UInt64, hasHeard: Bool, hasOtherIDs: Bool) {
    random = SplitMix64(state: seed)
    heard = hasHeard ? 0 : nil
    self.hasOtherIDs = hasOtherIDs
    let count = Int.random(in: 2...5, using: &random)
    let skew = Bool.random(using: &random) ? 200 : 0
    names = Array(0..<Self.deviceCount)
    links = Array(repeating: nil, count: Self.deviceCount)
    newest = Array(repeating: nil, count: Self.deviceCount)
    range = Array(repeating: [], count: Self.deviceCount)
    isExcused = Array(repeating: false, count: Self.deviceCount)
    gateways = []
    signals = Array(repeating: -60, count: count)
    for number in 0..<count {
      let records = names.indices.map { Record(name: name($0, at: number)) }
      gateways.append(
        Gateway(
          id: GatewayID("g\(number)")!, clockError: Int.random(in: 0...skew, using: &random),
          records: records, saved: records, publishers: records.map { _ in nil },
          orphans: Orphans(GatewayID("g\(number)")!), routes: InfoRoutes(GatewayID("g\(number)")!)))
    }
  }

  /// The id that a user wants the device to have at a gateway.
  func name(_ device: Int, at g: Int) -> Int {
    hasOtherIDs && g % 2 == 1 ? Self.deviceCount + device : names[device]
  }

  mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }
  mutating func any(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  func now(_ g: Int) -> Int { clock + gateways[g].clockError }
  /// The clock counts seconds.
  var moment: Moment { Self.start + .seconds(clock) }
  private static let start = Moment.now
  func trace(_ event: @autoclosure () -> String) { if isTraced { print(clock, event()) } }

  // MARK: The broker

  /// The broker handles the next packet of a gateway.
  mutating func handleNext(of g: Int) {
    switch gateways[g].up.removeFirst() {
    case .publish(let topic, let payload, let version):
      publish(topic, payload)
      if let device = removals[version] { newest[device] = nil }
      // It was on its way when another gateway took the device over.
      if case .document(let device) = topic, payload == .by(gateway: g),
        !gateways[g].records[device].isAnnounced
          || gateways[g].publishers[device] == nil && !isOwner(g, device)
      {
        forgotten.insert(topic)
      }
      gateways[g].down.append(.acknowledged(topic, version: version))
    case .subscribe(let topics):
      for topic in topics {
        gateways[g].filters.insert(topic)
        if case .document = topic { continue }
        if let payload = retained[topic] { gateways[g].down.append(.message(topic, payload)) }
      }
    case .barrier(let number): gateways[g].down.append(.barrier(number))
    }
  }

  mutating func publish(_ topic: Topic, _ payload: Payload) {
    trace("broker: \(topic) \(payload)")
    forgotten.remove(topic)
    retained[topic] = payload == .empty ? nil : payload
    if case .info(let id) = topic {
      if case .info(let notice) = payload { compareWithNewest(notice, id) } else { infoCleared(id) }
    }
    for g in gateways.indices where gateways[g].isConnected && gateways[g].filters.contains(topic) {
      gateways[g].down.append(.message(topic, payload))
    }
  }

  /// By what is retained.
  /// - Parameter other: of another gateway, which does not own the device if this one does.
  private func isOwner(_ g: Int, _ device: Int, before other: OwnershipMachine.Notice? = nil) -> Bool {
    retained.values.contains {
      guard case .info(let notice) = $0, let address = notice.address, Int(address.value) == device,
        notice.gateway == gateways[g].id
      else { return false }
      guard let other else { return true }
      return other.gateway != notice.gateway
        && notice.claim.goesBefore(other.claim, isOnline: gateways[g].isConnected, of: address)
    }
  }

  private mutating func compareWithNewest(_ notice: OwnershipMachine.Notice, _ id: Int) {
    let device = Int(notice.address!.value)
    let g = gateways.firstIndex { $0.id == notice.gateway }!
    guard let newest = newest[device], newest.handover.revision >= notice.handover.revision else {
      // The gateway that has taken the device over, under another id, has an older one.
      let owner = gateways.indices.first { isOwner($0, device, before: notice) }
      self.newest[device] = (notice.handover, id, owner, nil)
      return isExcused[device] = owner.map { !gateways[$0].isConnected } ?? false
    }
    if newest.handover.revision == notice.handover.revision {
      self.newest[device] = (newest.handover, id, nil, nil)
    } else if id != newest.id || gateways[g].publishers[device] == nil {
      isExcused[device] = true
    } else {
      self.newest[device]!.replacedBy = newest.replacedBy ?? g
    }
  }

  /// Whether a gateway has cleared the `info`, perhaps by a message that is on its way.
  private func isCleared(_ id: Int) -> Bool {
    forgotten.contains(.info(id))
      || gateways.contains { gateway in
        gateway.up.contains { if case .publish(.info(id), .empty, _) = $0 { true } else { false } }
      }
  }

  private mutating func infoCleared(_ id: Int) {
    forgotten.insert(.info(id))
    // By gateways that know the device by other ids; its owner would publish it again.
    for device in names.indices where newest[device]?.id == id {
      let isOwned = gateways.contains { gateway in
        gateway.isConnected
          && gateway.publishers[device].map { $0.id == id && $0.machine.owner == .this } ?? false
      }
      if !isOwned { isExcused[device] = true }
    }
  }

  mutating func noticeLoss(of g: Int) {
    guard gateways[g].isWillDue else { return }
    gateways[g].isWillDue = false
    publish(.state(g), .online(false))
  }

  // MARK: A gateway's connection

  mutating func connect(_ g: Int) {
    noticeLoss(of: g)
    trace("g\(g) connects to the broker")
    gateways[g].isConnected = true
    gateways[g].filters = []
    var topics = gateways.indices.map(Topic.state)
    topics += (0..<Self.idCount).map(Topic.info)
    for (device, publisher) in gateways[g].publishers.enumerated() {
      if let publisher { topics += [.info(publisher.id), .availability(publisher.id), .document(device)] }
    }
    topics += gateways[g].orphans.all.map { .info(Self.number($0.id)) }
    gateways[g].queue = gateways[g].table.sorted { $0.value.order < $1.value.order }.map { ($0.key, nil) }
    gateways[g].up = [.subscribe(topics)]
    gateways[g].guardBarrier = sendBarrier(g)
    setBarriers(of: g, gateways[g].guardBarrier)
  }

  mutating func disconnect(_ g: Int) {
    // What was on its way arrives, up to some packet.
    for _ in 0..<any(gateways[g].up.count + 1) { handleNext(of: g) }
    trace("g\(g) loses its connection")
    excuse(g)
    gateways[g].up = []
    gateways[g].down = []
    gateways[g].queue = []
    (gateways[g].isConnected, gateways[g].isAdmitted) = (false, false)
    gateways[g].online = []
    gateways[g].routes.disconnected()
    gateways[g].isWillDue = true
    setBarriers(of: g, .max)
  }

  /// What the gateway has published last is older than what another one had before, and it will not learn that.
  mutating func excuse(_ g: Int) {
    for device in names.indices where newest[device].map({ [$0.ownedBy, $0.replacedBy].contains(g) }) == true
    {
      isExcused[device] = true
    }
  }

  mutating func sendBarrier(_ g: Int) -> UInt64 {
    guard gateways[g].isConnected else { return .max }
    gateways[g].barriers += 1
    gateways[g].up.append(.barrier(gateways[g].barriers))
    return gateways[g].barriers
  }

  mutating func setBarriers(of g: Int, _ barrier: UInt64) {
    for device in gateways[g].publishers.indices {
      gateways[g].publishers[device]?.barrier = barrier
      gateways[g].publishers[device]?.machine.awaitRetained()
    }
    gateways[g].orphans.setBarrier(barrier)
    if !gateways[g].isConnected { for orphan in gateways[g].orphans.all { release(g, orphan) } }
  }

  mutating func subscribe(_ g: Int, _ topics: [Topic]) {
    if gateways[g].isConnected { gateways[g].up.append(.subscribe(topics)) }
  }

  mutating func set(_ g: Int, _ topic: Topic, _ payload: Payload) {
    version += 1
    gateways[g].table[topic] = (payload, version, gateways[g].table[topic]?.order ?? version)
    if gateways[g].isConnected, !gateways[g].queue.contains(where: { $0.topic == topic && $0.payload == nil })
    {
      gateways[g].queue.append((topic, nil))
    }
  }

  mutating func release(_ g: Int, _ topic: Topic) {
    gateways[g].table[topic] = nil
    gateways[g].queue.removeAll { $0.topic == topic && $0.payload == nil }
  }

  /// The end of the loop iteration: what is queued is sent.
  mutating func flush(_ g: Int) {
    guard gateways[g].isAdmitted else { return }
    for (topic, payload) in gateways[g].queue {
      if let payload {
        gateways[g].up.append(.publish(topic, payload, version: 0))
      } else if let state = gateways[g].table[topic] {
        gateways[g].up.append(.publish(topic, state.payload, version: state.version))
      }
    }
    gateways[g].queue = []
  }

  // MARK: What a gateway receives

  mutating func receiveNext(_ g: Int) {
    let next = gateways[g].down.removeFirst()
    if case .acknowledged = next {} else { trace("g\(g) receives \(next)") }
    switch next {
    case .acknowledged(let topic, let version):
      if let state = gateways[g].table[topic], state.version == version, state.payload == .empty {
        gateways[g].table[topic] = nil
      }
    case .barrier(let number):
      if number == gateways[g].guardBarrier { admit(g) }
      reconcile(g, upTo: number)
    case .message(let topic, let payload): receive(g, topic, payload)
    case .command(let device, let value):
      guard gateways[g].isAdmitted, isResponsible(g, device) else { break }
      gateways[g].records[device].desired = value
      revise(g, device)
    }
    flush(g)
  }

  mutating func admit(_ g: Int) {
    gateways[g].isAdmitted = true
    reconcile(g, upTo: gateways[g].guardBarrier)
    for device in gateways[g].publishers.indices {
      gateways[g].publishers[device]?.document.expire()
      announce(g, device)
    }
  }

  mutating func reconcile(_ g: Int, upTo number: UInt64) {
    guard gateways[g].isAdmitted else { return }
    for (id, lost) in gateways[g].routes.takeLost() where publisher(g, id: Self.number(id)) == nil {
      let device = Int(lost.address!.value)
      if gateways[g].publishers[device] != nil || gateways[g].records[device].isRemoved {
        foundOrphan(g, Self.number(id), of: device)
      }
    }
    let isOnly = gateways[g].online.isEmpty
    for device in gateways[g].publishers.indices {
      guard let publisher = gateways[g].publishers[device], publisher.barrier <= number else { continue }
      gateways[g].publishers[device]!.barrier = .max
      feed(g, device) { $0.settle($1, isOnlyGateway: isOnly) }
      if owner(g, device) == .this { storeID(g, device) }
    }
    perform(g, gateways[g].orphans.barrierArrived(number))
  }

  mutating func receive(_ g: Int, _ topic: Topic, _ payload: Payload) {
    switch topic {
    case .state(let other):
      let isOnline = payload == .online(true)
      if other != g {
        if isOnline {
          gateways[g].online.insert(gateways[other].id)
        } else {
          gateways[g].online.remove(gateways[other].id)
          for device in names.indices where owner(g, device) == .other(gateways[other].id) {
            hearAgain(g, device)
          }
        }
      } else if !isOnline, gateways[g].isAdmitted {
        set(g, .state(g), .online(true))
      }
    case .info(let id):
      var notice: OwnershipMachine.Notice?
      if case .info(let known) = payload { notice = known }
      guard let notice else { return cleared(g, id) }
      let named = publisher(g, id: id)
      if let named, owner(g, named) == .this, gateways[g].table[topic]?.payload == payload { return }
      gateways[g].orphans.received(notice)
      let publishers = gateways[g].publishers
      let devices = gateways[g].routes.received(
        notice, named: named.map { BluetoothAddress(truncating: UInt64($0)) },
        isOrphan: gateways[g].orphans.contains(notice.id)
      ) { publishers[Int($0.value)]?.machine.owner }
      for device in devices { receive(g, notice, of: Int(device.value)) }
    case .availability(let id):
      guard let device = publisher(g, id: id), owner(g, device) == .this else { return }
      let availability = Payload.online(gateways[g].publishers[device]!.onlineSince != nil)
      if payload != availability { set(g, topic, availability) }
    case .document(let device): receive(g, document: payload, device)
    case .value: break
    }
  }

  private mutating func receive(_ g: Int, _ notice: OwnershipMachine.Notice, of device: Int) {
    let isOwn = notice.gateway == gateways[g].id
    if !isOwn {
      gateways[g].publishers[device]!.notices += 1
      gateways[g].publishers[device]!.informants.insert(notice.gateway)
    }
    let isOnline = gateways[g].online.contains(notice.gateway)
    let isUpToDate = isOwn && notice == info(g, device)
    feed(g, device) { machine, here in
      var here = here
      here.isUpToDate = isUpToDate
      return machine.received(notice, here, isOwnerOnline: isOnline)
    }
  }

  mutating func cleared(_ g: Int, _ id: Int) {
    gateways[g].routes.cleared(Self.deviceID(id))
    for device in names.indices {
      guard let publisher = gateways[g].publishers[device],
        publisher.machine.follows(Self.deviceID(id))
      else { continue }
      feed(g, device) { machine, _ in machine.cleared(Self.deviceID(id)) }
    }
    perform(g, gateways[g].orphans.cleared(Self.deviceID(id)))
  }

  /// The other ids are made of the addresses.
  static func deviceID(_ id: Int) -> DeviceID {
    let isOther = (deviceCount..<2 * deviceCount).contains(id)
    return isOther
      ? DeviceID(BluetoothAddress(truncating: UInt64(id - deviceCount))) : try! DeviceID("id-\(id)")
  }

  static func number(_ id: DeviceID) -> Int { (0..<idCount).first { deviceID($0) == id }! }

  mutating func receive(_ g: Int, document payload: Payload, _ device: Int) {
    if payload == .empty {
      if owner(g, device) != .this { gateways[g].publishers[device]?.document.expire() }
      guard let owner = owner(g, device), owner != .unknown, isResponsible(g, device) else { return }
      if owner == .this, !gateways[g].records[device].isAnnounced { return }
      if owner != .this { announcedElsewhere(g, device) }
      if !gateways[g].records[device].isDeleted { gateways[g].publishers[device]!.document.clear(at: moment) }
      setDeleted(g, device, true)
    } else if case .by(let other) = payload, other != g {
      release(g, .document(device))
      guard let publisher = gateways[g].publishers[device] else { return }
      if publisher.machine.owner == .this, gateways[g].records[device].isDeleted {
        return announce(g, device)
      }
      let (here, id) = (documentHere(g, publisher), gateways[other].id)
      let sendsInfo = publisher.informants.contains(id)
      for action in gateways[g].publishers[device]!.document.received(from: id, sendsInfo: sendsInfo, here) {
        switch action {
        case .announce: announce(g, device)
        case .forget: announcedElsewhere(g, device)
        case .report: break
        }
      }
    }
  }

  private func documentHere(_ g: Int, _ publisher: Publisher) -> PublishedDocument.Here {
    PublishedDocument.Here(
      gateway: gateways[g].id, owner: publisher.machine.owner, isOnline: publisher.onlineSince != nil,
      notices: publisher.notices)
  }

  func isResponsible(_ g: Int, _ device: Int) -> Bool {
    switch owner(g, device) {
    case .other(let other): !gateways[g].online.contains(other)
    case .unknown, .this: true
    case nil: false
    }
  }

  func owner(_ g: Int, _ device: Int) -> Owner? { gateways[g].publishers[device]?.machine.owner }

  func publisher(_ g: Int, id: Int) -> Int? { gateways[g].publishers.firstIndex { $0?.id == id } }

  // MARK: The machines

  func here(_ g: Int, _ device: Int) -> OwnershipMachine.Here {
    OwnershipMachine.Here(
      onlineSince: gateways[g].publishers[device]?.onlineSince, isOnDemand: device == Self.onDemand,
      isExclusive: device != heard, rssi: signals[g],
      isOwnerOnline: gateways[g].online.contains { owner(g, device) == .other($0) },
      isAdmitted: gateways[g].isAdmitted)
  }

  mutating func feed(
    _ g: Int, _ device: Int,
    _ input: (inout OwnershipMachine, OwnershipMachine.Here) -> [OwnershipMachine.Action]
  ) {
    let here = here(g, device)
    for action in input(&gateways[g].publishers[device]!.machine, here) { perform(g, device, action) }
  }

  mutating func perform(_ g: Int, _ device: Int, _ action: OwnershipMachine.Action) {
    let id = gateways[g].publishers[device]!.id
    trace("g\(g) device \(device): \(action)")
    switch action {
    case .setOwner(let handover, let isTakenOver, let hasNewLink):
      var record = gateways[g].records[device]
      if let handover, owner(g, device) == .unknown {
        (record.revision, record.isDeleted, record.isPending) = (0, handover.isDeleted, false)
      } else if let handover,
        isTakenOver && record.isPending || handover.isNewer(than: record.revision, isTakenOver: isTakenOver)
      {
        if let value = handover.desired["v"] { record.desired = value }
        (record.revision, record.isDeleted, record.isPending) = (handover.revision, handover.isDeleted, false)
      }
      if record != gateways[g].records[device] {
        gateways[g].records[device] = record
        changed(g, device)
      }
      if owner(g, device) == .unknown { hearAgain(g, device) }
      if isTakenOver, device != heard, device != Self.onDemand || hasNewLink { goOffline(g, device) }
    case .publish:
      publishInfo(g, device)
      let isOnline = gateways[g].publishers[device]!.onlineSince != nil
      set(g, .availability(id), .online(isOnline))
      if isOnline { set(g, .value(id), .by(gateway: g)) }
    case .publishAvailability:
      set(g, .availability(id), .online(gateways[g].publishers[device]!.onlineSince != nil))
      announce(g, device)
    case .publishOffline:
      set(g, .availability(id), .online(false))
      storeID(g, device)
    case .release:
      for topic in Self.topics(id) { release(g, topic) }
      announcedElsewhere(g, device)
    case .receive(let notice):
      let isOnline = gateways[g].online.contains(notice.gateway)
      feed(g, device) { $0.received(notice, $1, isOwnerOnline: isOnline) }
    case .yieldID: problems.append("two devices have the id \(id)")
    case .clear: for topic in Self.topics(id) { set(g, topic, .empty) }
    case .confirm: gateways[g].publishers[device]!.barrier = sendBarrier(g)
    case .moved: break
    }
  }

  mutating func hearAgain(_ g: Int, _ device: Int) {
    guard device == heard, gateways[g].publishers[device]?.onlineSince != nil, owner(g, device) != .this
    else { return }
    feed(g, device) { $0.availabilityChanged($1) }
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
      rssi: Int8(signals[g]), address: BluetoothAddress(truncating: UInt64(device)),
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
    if gateways[g].publishers[device]!.document.delay(at: moment) != nil {
      return gateways[g].publishers[device]!.isDocumentDue = true
    }
    let publisher = gateways[g].publishers[device]!
    guard
      gateways[g].publishers[device]!.document.publish(publisher.id, at: moment, documentHere(g, publisher))
    else { return }
    documents += 1
    release(g, .document(device))
    gateways[g].queue.append((.document(device), .by(gateway: g)))
  }

  // MARK: The engine

  mutating func changed(_ g: Int, _ device: Int) {
    if owner(g, device) == .this { publishInfo(g, device) } else { hearAgain(g, device) }
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
    gateways[g].publishers[device]!.onlineSince = String(now(g))
    gateways[g].records[device].isPending = false
    gateways[g].records[device].id = gateways[g].records[device].id ?? gateways[g].publishers[device]!.id
    feed(g, device) { $0.availabilityChanged($1) }
    flush(g)
  }

  /// The gateway notices that the link is gone, or ends it.
  mutating func goOffline(_ g: Int, _ device: Int) {
    if links[device] == g { links[device] = nil }
    guard gateways[g].publishers[device]?.onlineSince != nil else { return }
    trace("g\(g) notices that device \(device) is offline")
    gateways[g].publishers[device]!.onlineSince = nil
    feed(g, device) { $0.availabilityChanged($1) }
    flush(g)
  }

  mutating func makePublisher(_ g: Int, _ device: Int) {
    let id = gateways[g].records[device].name
    let publisher = Publisher(
      id: id,
      machine: OwnershipMachine(
        gateways[g].id, Self.deviceID(id), BluetoothAddress(truncating: UInt64(device)),
        hasTopics: gateways[g].records[device].id == id))
    gateways[g].publishers[device] = publisher
    if let former = gateways[g].records[device].id, former != id { foundOrphan(g, former, of: device) }
    let address = BluetoothAddress(truncating: UInt64(device))
    for id in gateways[g].routes.added(address) { subscribe(g, [.info(Self.number(id))]) }
    follow(g, device)
  }

  /// Subscribes to what is published of a device.
  mutating func follow(_ g: Int, _ device: Int) {
    let id = gateways[g].publishers[device]!.id
    if gateways[g].orphans.remove(Self.deviceID(id)) != nil { storeID(g, device) }
    subscribe(g, [.info(id), .availability(id), .document(device)])
    gateways[g].publishers[device]!.barrier = sendBarrier(g)
    gateways[g].publishers[device]!.machine.awaitRetained()
  }

  mutating func foundOrphan(_ g: Int, _ id: Int, of device: Int, isSettled: Bool = false) {
    let deviceID = Self.deviceID(id)
    guard !gateways[g].orphans.contains(deviceID) else { return }
    if publisher(g, id: id) != nil { return storeID(g, device) }
    subscribe(g, [.info(id)])
    gateways[g].orphans.add(
      deviceID, of: BluetoothAddress(truncating: UInt64(device)), offered: [],
      barrier: isSettled ? .max : sendBarrier(g))
    if isSettled { perform(g, gateways[g].orphans.settle(deviceID)) }
  }

  private mutating func perform(_ g: Int, _ actions: [Orphans.Action]) {
    for action in actions {
      trace("g\(g) orphan: \(action)")
      switch action {
      case .clear(let orphan):
        let device = Int(orphan.address.value)
        for topic in Self.topics(Self.number(orphan.id)) { set(g, topic, .empty) }
        guard gateways[g].publishers[device] == nil else { break }
        unannounce(g, device)
        removals[gateways[g].table[.info(Self.number(orphan.id))]!.version] = device
      case .confirm(let id): gateways[g].orphans.setBarrier(sendBarrier(g), of: id)
      case .cleared(let orphan): storeID(g, Int(orphan.address.value))
      case .leave(let orphan, _):
        release(g, orphan)
        announcedElsewhere(g, Int(orphan.address.value))
        storeID(g, Int(orphan.address.value))
      }
    }
  }

  private mutating func release(_ g: Int, _ orphan: Orphans.Orphan) {
    for topic in Self.topics(Self.number(orphan.id)) { release(g, topic) }
  }

  private mutating func announcedElsewhere(_ g: Int, _ device: Int) {
    gateways[g].records[device].isAnnounced = false
    gateways[g].publishers[device]?.document.expire()
    // The last document is this gateway's, though: it will not remove it.
    if retained[.document(device)] == .by(gateway: g) { forgotten.insert(.document(device)) }
  }

  private mutating func unannounce(_ g: Int, _ device: Int) {
    guard gateways[g].records[device].isAnnounced else { return }
    gateways[g].records[device].isAnnounced = false
    set(g, .document(device), .empty)
  }

  // MARK: What users do

  mutating func rename(_ g: Int, _ device: Int, to id: Int) {
    guard let before = gateways[g].publishers[device], before.id != id else { return }
    trace("g\(g) renames device \(device) from \(before.id) to \(id)")
    gateways[g].records[device].name = id
    let (isOwn, mayClear) = (before.machine.owner == .this, before.machine.mayClear)
    if isOwn { for topic in Self.topics(before.id) { release(g, topic) } }
    gateways[g].publishers[device]!.id = id
    gateways[g].publishers[device]!.machine.renamed(to: Self.deviceID(id))
    follow(g, device)
    if isOwn {
      foundOrphan(g, before.id, of: device, isSettled: mayClear)
      perform(g, device, .publish)
    } else if let former = gateways[g].records[device].id, former != id {
      foundOrphan(g, former, of: device)
    }
    flush(g)
  }

  mutating func remove(_ g: Int, _ device: Int) {
    guard let publisher = gateways[g].publishers[device] else { return }
    trace("g\(g) removes device \(device)")
    let record = gateways[g].records[device]
    excuse(g)
    if links[device] == g { links[device] = nil }
    var new = Record(id: record.id, name: record.name, isRemoved: true)
    new.isAnnounced = record.isAnnounced
    gateways[g].records[device] = new
    gateways[g].publishers[device] = nil
    if let id = publisher.machine.elsewhere?.id {
      gateways[g].routes.removed(BluetoothAddress(truncating: UInt64(device)), elsewhere: id)
    }
    gateways[g].filters.subtract([.availability(publisher.id), .document(device)])
    for topic in Self.topics(publisher.id) { release(g, topic) }
    if publisher.machine.isOwnedByOther { announcedElsewhere(g, device) }
    foundOrphan(g, publisher.id, of: device, isSettled: publisher.machine.mayClear)
    if let former = gateways[g].records[device].id { foundOrphan(g, former, of: device) }
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
    gateways[g].routes = InfoRoutes(gateways[g].id)
    set(g, .state(g), .online(true))
    for device in 0..<Self.deviceCount {
      if !gateways[g].records[device].isRemoved {
        makePublisher(g, device)
      } else if let former = gateways[g].records[device].id {
        foundOrphan(g, former, of: device)
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
      var ids = gateways[g].orphans.all.filter { $0.address.value == device }.map { Self.number($0.id) }
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
    gateways[g].orphans = Orphans(gateways[g].id)
    gateways[g].table = [:]
    for device in links.indices where links[device] == g { links[device] = nil }
  }
}
