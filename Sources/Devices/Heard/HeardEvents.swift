import Configuration
import EventLoop
import GATT
import Log

/// Which events of a device that is only heard are new, and which gateway tells them. A press is repeated for seconds, is
/// heard by several adapters and gateways, and again after a restart; it is told once.
///
/// A pure machine. Gateways that hear an event claim it; all get the claims from the broker in the same order, and the first
/// one tells it. Without other gateways an event is told at once.
package struct HeardEvents: Sendable {
  /// What identifies an event of a device.
  package struct Event: Sendable, Hashable {
    /// What all repetitions of an event have in common.
    package enum Key: Sendable, Hashable {
      /// The packet id of its frame.
      case packet(UInt8)
      /// A digest of a frame that has none.
      case frame(UInt64)
    }

    package let key: Key
    /// When it was heard by the gateway that has told or claimed it, by that one's clock.
    package let time: Timestamp

    package init(key: Key, time: Timestamp) {
      self.key = key
      self.time = time
    }
  }

  /// The values of an event's properties, in one frame.
  struct Content: Sendable, Equatable {
    let property: Int
    let value: Value
    /// See ``Reading/senderTime``.
    var senderTime: UInt32?
  }

  enum Action: Sendable, Equatable {
    /// Send the claim to all gateways, this one included.
    case claim(Event)
    /// Report the event, which was heard at this time. `isElsewhere`: another gateway publishes it; here it is only shown.
    case tell([Content], at: Timestamp, isElsewhere: Bool)
  }

  /// What a frame is, compared with the one before it.
  struct Novelty: Sendable, Equatable {
    /// Whether the frame's values are readings: it differs, or is heard again after a silence.
    var hasReadings: Bool
    /// Whether the frame's events may be new.
    var hasEvents: Bool
  }

  private struct Frame {
    var bytes: [UInt8]
    let key: Event.Key
    var heard: Moment
    /// When it was heard first.
    let since: Moment
    /// Whether no frame of the source was heard before in this run.
    let isFirst: Bool
  }

  private struct Told {
    let event: Event
    /// When this gateway learnt of the event; nil: in an earlier run, or by another gateway's `info`.
    let learnt: Moment?
    /// Another gateway has told it, and it was not heard here yet.
    var isUnheard = false
  }

  private struct Pending {
    let event: Event
    let contents: [Content]
    let deadline: Moment
  }

  /// bluetoothd reports a frame that goes on about every 10 s, and none while it connects to another device for 20 s: a
  /// frame that is heard again later is another one with the same bytes.
  static let silence = Duration.seconds(30)
  /// How long a claim may take to the broker and back; after that the event is told in any case.
  private static let claimLimit = Duration.seconds(3)
  /// The ``claimLimit`` of a connection on which claims have come back: it is only slow, and another gateway may have told the
  /// event.
  private static let knownClaimLimit = Duration.seconds(30)
  /// The number of events that are remembered.
  package static let mostTold = 8
  private static let mostPending = 16

  private var frames: [Property.Source: Frame] = [:]
  private var known: [Told]
  private var pending: [Pending] = []

  /// - Parameter told: in earlier runs, the newest last.
  init(told: [Event]) {
    known = told.suffix(Self.mostTold).map { Told(event: $0, learnt: nil) }
  }

  /// The last events that any gateway has told, the newest last.
  var told: [Event] { known.map(\.event) }

  /// When to call ``timer(at:)``.
  var deadline: Moment? { pending.first?.deadline }

  // MARK: Frames

  /// A frame was heard, from any adapter.
  /// - Parameter packetID: asked for if the frame differs from the one before; nil: its format has none.
  mutating func heard(
    _ source: Property.Source, _ bytes: [UInt8], packetID: @autoclosure () -> UInt8?, at now: Moment
  ) -> Novelty {
    let before = frames[source]
    let isSilent = before.map { $0.heard + Self.silence < now } ?? true
    if !isSilent, before?.bytes == bytes {
      frames[source]?.heard = now
      return Novelty(hasReadings: false, hasEvents: false)
    }
    let packetID = packetID()
    let key = packetID.map(Event.Key.packet) ?? .frame(Digest.of(source.name + bytes))
    let isSame = before?.key == key && (packetID != nil || !isSilent)
    frames[source] = Frame(bytes: bytes, key: key, heard: now, since: now, isFirst: before == nil)
    return Novelty(hasReadings: true, hasEvents: !isSame)
  }

  /// What is heard from now on are readings again; events are not.
  mutating func forgetReadings() {
    for source in frames.keys { frames[source]?.bytes = [] }
  }

  // MARK: Events

  /// The last frame of `source` has events that may be new.
  /// - Parameters:
  ///   - hasPeers: whether another gateway may hear and tell them.
  ///   - claimsReturn: whether the broker has sent a claim of this gateway back on this connection.
  mutating func heardEvents(
    _ contents: [Content], of source: Property.Source, hasPeers: Bool, claimsReturn: Bool = false,
    at now: Moment, _ time: Timestamp
  ) -> [Action] {
    guard let frame = frames[source] else { return [] }
    if let index = known.lastIndex(where: { $0.event.key == frame.key }),
      isSame(known[index], isLast: index == known.endIndex - 1, isFirst: frame.isFirst, at: now, time)
    {
      guard known[index].isUnheard else { return [] }
      known[index].isUnheard = false
      return [.tell(contents, at: time, isElsewhere: true)]
    }
    // A packet may be heard again while the claim for its event is under way.
    if case .packet = frame.key, pending.contains(where: { $0.event.key == frame.key }) { return [] }
    let event = Event(key: frame.key, time: time)
    guard hasPeers else {
      append(Told(event: event, learnt: now))
      return [.tell(contents, at: time, isElsewhere: false)]
    }
    let limit = claimsReturn ? Self.knownClaimLimit : Self.claimLimit
    pending.append(Pending(event: event, contents: contents, deadline: now + limit))
    return [.claim(event)] + (pending.count > Self.mostPending ? tell(0, pending[0].event, at: now) : [])
  }

  /// Whether a frame with the key of an event that was told is that event.
  /// - Parameters:
  ///   - isLast: whether no other was told after it.
  ///   - isFirst: whether no frame was heard before in this run: nothing but the key tells.
  private func isSame(_ told: Told, isLast: Bool, isFirst: Bool, at now: Moment, _ time: Timestamp) -> Bool {
    let age = age(of: told, at: now, time)
    switch told.event.key {
    case .packet: return age < told.event.key.window || isLast && isFirst
    case .frame: return isFirst ? age < Self.silence : told.isUnheard && age < told.event.key.window
    }
  }

  private func age(of told: Told, at now: Moment, _ time: Timestamp) -> Duration {
    told.learnt.map { $0.duration(to: now) }
      // A clock may have been ahead: an event of next year is no new one.
      ?? .milliseconds(abs(time.milliseconds - told.event.time.milliseconds))
  }

  /// A claim has come from the broker.
  mutating func claimed(_ event: Event, byThis: Bool, at now: Moment, _ time: Timestamp) -> [Action] {
    if byThis {
      return pending.firstIndex { $0.event == event }.map { tell($0, event, at: now) } ?? []
    }
    if let actions = endPending(event, at: now) { return actions }
    // The event is known if it was told before, or if another claim for it came earlier.
    let isAgain = isAgain(event, at: now, time)
    let isKnown = known.contains {
      $0.event.key == event.key && age(of: $0, at: now, time) < event.key.window && (!isAgain || $0.isUnheard)
    }
    if !isKnown { append(Told(event: event, learnt: now, isUnheard: true)) }
    return []
  }

  /// Whether the frame of an event, which has no packet id, was heard elsewhere after another frame was heard here: it is a new
  /// event with the same frame, whose claim has arrived before the frame. As far as the clocks of the two gateways agree.
  private func isAgain(_ event: Event, at now: Moment, _ time: Timestamp) -> Bool {
    guard case .frame = event.key, !frames.values.contains(where: { $0.key == event.key }),
      let changed = frames.values.map(\.since).max()
    else { return false }
    return .milliseconds(time.milliseconds - event.time.milliseconds) < changed.duration(to: now)
  }

  /// Another gateway has told an event that waits here.
  private mutating func endPending(_ event: Event, at now: Moment) -> [Action]? {
    pending.firstIndex { $0.event.key == event.key }.map { tell($0, event, isElsewhere: true, at: now) }
  }

  /// - Parameters:
  ///   - index: of a pending event.
  ///   - event: as it is known to the gateway that publishes it.
  private mutating func tell(
    _ index: Int, _ event: Event, isElsewhere: Bool = false, at now: Moment
  ) -> [Action] {
    append(Told(event: event, learnt: now))
    let own = pending.remove(at: index)
    return [.tell(own.contents, at: own.event.time, isElsewhere: isElsewhere)]
  }

  /// Claims do not come back any more: there is no other gateway, or no broker.
  mutating func claimsAreLost(at now: Moment) -> [Action] {
    var actions: [Action] = []
    while let first = pending.first { actions += tell(0, first.event, at: now) }
    return actions
  }

  mutating func timer(at now: Moment) -> [Action] {
    var actions: [Action] = []
    while let first = pending.first, first.deadline <= now { actions += tell(0, first.event, at: now) }
    return actions
  }

  /// What another gateway knows was told, the newest last: what is newer than all that is known here counts.
  mutating func learn(_ events: [Event], at now: Moment, _ time: Timestamp) -> [Action] {
    var actions: [Action] = []
    // Of a gateway whose clock is ahead: nothing newer would be learnt after it.
    let latest = time + .seconds(60)
    for event in events
    where event.time <= latest && known.allSatisfy({ $0.event.time < event.time || $0.event.time > latest }) {
      let told = Told(event: event, learnt: nil, isUnheard: true)
      if age(of: told, at: now, time) < event.key.window, let ended = endPending(event, at: now) {
        actions += ended
      } else {
        append(told)
      }
    }
    return actions
  }

  private mutating func append(_ told: Told) {
    known.append(told)
    if known.count > Self.mostTold { known.removeFirst() }
  }
}

extension Property.Source {
  /// The bytes that distinguish the source from others.
  fileprivate var name: [UInt8] {
    switch data {
    case .service(let uuid): Array(uuid.description.utf8) + prefix
    case .manufacturer(let number): Array("\(number)".utf8) + prefix
    case .radio: prefix
    }
  }
}

extension HeardEvents.Event.Key {
  /// How long the same key is the same event, if nothing else tells.
  fileprivate var window: Duration {
    switch self {
    // A packet id comes again after 255 others. Gateways hear a frame up to some seconds apart.
    case .packet: .seconds(60)
    // Equal frames may follow each other soon.
    case .frame: .seconds(10)
    }
  }
}
