import Configuration
import GATT

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// A gateway's connection with the broker: what it sends and receives.
extension OwnershipModel {
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
    topics += gateways[g].ownership.orphans.all.map { .info(Self.number($0.id)) }
    gateways[g].queue = gateways[g].table.sorted { $0.value.order < $1.value.order }.map { ($0.key, nil) }
    gateways[g].up = [.subscribe(topics)]
    handle(g) { $0.connected() }
    flush(g)
  }

  mutating func disconnect(_ g: Int) {
    // What was on its way arrives, up to some packet.
    for _ in 0..<any(gateways[g].up.count + 1) { handleNext(of: g) }
    trace("g\(g) loses its connection")
    excuse(g)
    gateways[g].up = []
    gateways[g].down = []
    gateways[g].queue = []
    gateways[g].isConnected = false
    gateways[g].isWillDue = true
    handle(g) { $0.disconnected() }
  }

  /// What the gateway has published last is older than what another one had before, and it will not learn that.
  mutating func excuse(_ g: Int) {
    for device in names.indices where newest[device].map({ [$0.ownedBy, $0.replacedBy].contains(g) }) == true
    {
      isExcused[device] = true
    }
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
    if let number = gateways[g].ownership.barriers.due {
      handle(g) { $0.barrierSent() }
      gateways[g].up.append(.barrier(number))
    }
    guard gateways[g].isAdmitted else { return }
    if gateways[g].mustAnnounce {
      gateways[g].mustAnnounce = false
      for device in gateways[g].publishers.indices {
        gateways[g].publishers[device]?.document.expire()
        announce(g, device)
      }
    }
    for (topic, payload) in gateways[g].queue {
      if let payload {
        gateways[g].up.append(.publish(topic, payload, version: 0))
      } else if let state = gateways[g].table[topic] {
        gateways[g].up.append(.publish(topic, state.payload, version: state.version))
      }
    }
    gateways[g].queue = []
  }

  // MARK: What it receives

  mutating func receiveNext(_ g: Int) {
    let next = gateways[g].down.removeFirst()
    if case .acknowledged = next {} else { trace("g\(g) receives \(next)") }
    switch next {
    case .acknowledged(let topic, let version):
      if let state = gateways[g].table[topic], state.version == version, state.payload == .empty {
        gateways[g].table[topic] = nil
      }
    case .barrier(let number):
      handle(g) { $0.barrierArrived(number) }
      // The state may be one of before the broker went back: no other gateway answers.
      if goesBack, !gateways[g].ownership.isAdmitted { handle(g) { $0.barrierIsLate(number) } }
    case .document(let device, let payload):
      if payload == .by(gateway: g), gateways[g].publishers[device] == nil {
        set(g, .document(device), .empty)
      }
    case .message(let topic, let payload): receive(g, topic, payload)
    case .command(let device, let value):
      guard gateways[g].isAdmitted, isResponsible(g, device) else { break }
      gateways[g].records[device].desired = value
      revise(g, device)
    }
    flush(g)
  }

  mutating func receive(_ g: Int, _ topic: Topic, _ payload: Payload) {
    switch topic {
    case .state(let other):
      let id = gateways[other].id
      handle(g) { $0.stateArrived(of: id, isOnline: payload == .online(true)) }
    case .info(let id):
      guard case .info(let notice) = payload else { return handle(g) { $0.cleared(Self.deviceID(id)) } }
      if let named = publisher(g, id: id), owner(g, named) == .this,
        gateways[g].table[topic]?.payload == payload
      {
        return
      }
      let device = Int(notice.address!.value)
      let isUpToDate = gateways[g].publishers[device] != nil && notice == info(g, device)
      handle(g) { $0.infoArrived(notice, isUpToDate: isUpToDate) }
    case .availability(let id):
      guard let device = publisher(g, id: id), owner(g, device) == .this else { return }
      let availability = Payload.online(gateways[g].publishers[device]!.onlineSince != nil)
      if payload != availability { set(g, topic, availability) }
    case .document(let device): receive(g, document: payload, device)
    case .value: break
    }
  }

  /// The other ids are made of the addresses.
  static func deviceID(_ id: Int) -> DeviceID {
    let isOther = (deviceCount..<2 * deviceCount).contains(id)
    return isOther
      ? DeviceID(BluetoothAddress(truncating: UInt64(id - deviceCount))) : try! DeviceID("id-\(id)")
  }

  static func address(_ device: Int) -> BluetoothAddress { BluetoothAddress(truncating: UInt64(device)) }

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
      guard gateways[g].publishers[device] != nil else { return }
      if owner(g, device) == .this, gateways[g].records[device].isDeleted {
        return announce(g, device)
      }
      let (here, id) = (documentHere(g, device), gateways[other].id)
      let sendsInfo = others(g, device).informants.contains(id)
      for action in gateways[g].publishers[device]!.document.received(from: id, sendsInfo: sendsInfo, here) {
        switch action {
        case .announce: announce(g, device)
        case .forget: announcedElsewhere(g, device)
        case .report: handle(g) { $0.learn(of: Self.address(device)) { $0.announcer = id } }
        }
      }
    }
  }

  func documentHere(_ g: Int, _ device: Int) -> PublishedDocument.Here {
    PublishedDocument.Here(
      gateway: gateways[g].id, owner: owner(g, device) ?? .unknown,
      isOnline: gateways[g].publishers[device]?.onlineSince != nil, notices: others(g, device).notices)
  }

  private func others(_ g: Int, _ device: Int) -> OtherGateways {
    gateways[g].ownership.devices[Self.address(device)]?.others ?? OtherGateways()
  }

  func isResponsible(_ g: Int, _ device: Int) -> Bool {
    gateways[g].ownership.isResponsible(for: Self.address(device))
  }

  func owner(_ g: Int, _ device: Int) -> Owner? { gateways[g].ownership.owner(of: Self.address(device)) }

  func publisher(_ g: Int, id: Int) -> Int? { gateways[g].publishers.firstIndex { $0?.id == id } }
}
