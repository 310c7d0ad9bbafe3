import Configuration
import EventLoop
import GATT
import Log
import TestSupport

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// A few gateways, each with its ``Ownership`` and `PublishedDocument`, a broker, and devices that move.
///
/// What is around these two is a model: of what carries out their actions, of the engine, the state database, and the MQTT client
/// with its table of retained state.
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
    case askForDocument(of: Int)
    case barrier(UInt64)
  }

  enum Downward {
    case message(Topic, Payload)
    /// It was asked for.
    case document(of: Int, Payload)
    case acknowledged(Topic, version: Int)
    case barrier(UInt64)
    case command(device: Int, EncodedValue?)
  }

  /// What the state database has of a device.
  ///
  /// It is written at once that a device is announced, as nothing else tells the next run; and what was changed before.
  struct Record: Equatable {
    var id: Int?
    /// By request.
    var name: Int
    var isRemoved = false
    var desired: EncodedValue?
    var isDeleted = false
    var isAnnounced = false
    var revision = 0
    var isPending = false
  }

  /// A device at a gateway.
  struct Publisher {
    var id: Int
    var onlineSince: Timestamp?
    var document = PublishedDocument()
    /// It is too early for the document.
    var isDocumentDue = false
    /// The device has given its link to another one, and is to get one again.
    var isBetweenTurns = false
  }

  struct Gateway {
    let id: GatewayID
    let clockError: Int
    var records: [Record]
    /// What is written of them.
    var saved: [Record]
    var isRunning = false
    var isConnected = false
    var publishers: [Publisher?]
    var ownership: Ownership
    /// How many runs there were.
    var runs = 0
    /// Everything is to be announced at the end of the loop iteration.
    var mustAnnounce = false
    /// The client's state of each topic; `order` is the version of its first payload.
    var table: [Topic: (payload: Payload, version: Int, order: Int)] = [:]
    /// Without a payload: the state of the topic.
    var queue: [(topic: Topic, payload: Payload?)] = []
    var up: [Upward] = []
    var down: [Downward] = []
    /// The broker has not noticed yet that it is gone.
    var isWillDue = false
    var filters: Set<Topic> = []

    var isAdmitted: Bool { isConnected && ownership.isAdmitted }
  }

  static let deviceCount = 3
  static let idCount = 8
  /// This device is connected on demand.
  static let onDemand = 2
  /// This device is only heard, by any number of gateways; nil: none is.
  let heard: Int?
  /// Whether half of the gateways know each device by another id, and nobody mends that.
  let hasOtherIDs: Bool
  /// Whether messages on different topics reach a gateway in any order, as from brokers that are bridged or a cluster.
  let reorders: Bool
  /// Whether the broker is killed at times, and starts with what it has saved last.
  let goesBack: Bool

  var random: SplitMix64
  var gateways: [Gateway]
  var retained: [Topic: Payload] = [:]
  /// What the broker has saved last, and what may stay of it.
  var saved: (retained: [Topic: Payload], forgotten: Set<Topic>) = ([:], [])
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

  init(seed: UInt64, hasHeard: Bool, hasOtherIDs: Bool, reorders: Bool, goesBack: Bool) {
    random = SplitMix64(state: seed)
    heard = hasHeard ? 0 : nil
    self.hasOtherIDs = hasOtherIDs
    self.reorders = reorders
    self.goesBack = goesBack
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
          ownership: Ownership(GatewayID("g\(number)")!, run: "", started: .now)))
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
    case .askForDocument(let device):
      if let payload = retained[.document(device)] {
        gateways[g].down.append(.document(of: device, payload))
      }
    case .barrier(let number): gateways[g].down.append(.barrier(number))
    }
  }

  /// The broker is killed, and starts with what it has saved last: nobody's will is published.
  mutating func goBack() {
    trace("the broker goes back")
    for g in gateways.indices {
      if gateways[g].isConnected { disconnect(g) }
      gateways[g].isWillDue = false
    }
    retained = saved.retained
    forgotten.formUnion(saved.forgotten)
    // By the `info` the rest is found.
    for id in 0..<Self.idCount where retained[.info(id)] == nil {
      forgotten.formUnion([.availability(id), .value(id)])
    }
    for device in names.indices {
      if !isAnnouncedByOwner(device) { forgotten.insert(.document(device)) }
      // A newer change may be with a gateway that gives way, is killed, or removes the device.
      isExcused[device] = true
    }
  }

  /// Whether the document is that of a gateway that the `info` names as the owner.
  private func isAnnouncedByOwner(_ device: Int) -> Bool {
    guard case .by(let g) = retained[.document(device)] else { return false }
    return retained.values.contains {
      if case .info(let notice) = $0 {
        notice.address == Self.address(device) && notice.gateway == gateways[g].id
      } else {
        false
      }
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
      let place = reorders ? placeAmongOthers(of: g, topic) : gateways[g].down.endIndex
      gateways[g].down.insert(.message(topic, payload), at: place)
    }
  }

  /// Before messages on other topics that are on their way; barriers stay behind what came before them.
  private mutating func placeAmongOthers(of g: Int, _ topic: Topic) -> Int {
    var place = gateways[g].down.endIndex
    while place > 0, case .message(let other, _) = gateways[g].down[place - 1], other != topic, !chance(3) {
      place -= 1
    }
    return place
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
  func isCleared(_ id: Int) -> Bool {
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
          && gateway.publishers[device]?.id == id
          && gateway.ownership.owner(of: Self.address(device)) == .this
      }
      if !isOwned { isExcused[device] = true }
    }
  }

  mutating func noticeLoss(of g: Int) {
    guard gateways[g].isWillDue else { return }
    gateways[g].isWillDue = false
    publish(.state(g), .online(false))
  }
}
