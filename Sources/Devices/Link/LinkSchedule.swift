import Configuration
import EventLoop
import GATT
import Log

/// Which devices have the links of the adapters, and in which order the others get one.
///
/// A device that is connected always comes first, and keeps its link; one on demand ends its visit by itself; the others are
/// connected as long as there are enough links, else in turns. While devices wait, a device that shares the links keeps its link
/// for ``stay``. For one that has had no values yet, others end their turns as soon as they have theirs: a class sees all of its
/// first values soon. While micro:bits are numbered, those that have a number give up their links to those that have none. A
/// pure machine; adapters are numbered in the order of the configuration.
struct LinkSchedule: Sendable {
  enum Action: Sendable, Equatable {
    /// End the link: another device waits for it.
    case giveUp(BluetoothAddress)
    /// A link is reserved for the device: ``free(for:)`` says on which adapter.
    case connect(BluetoothAddress)
  }

  /// A link that exists, is being made, or is being ended.
  private struct Link {
    let adapter: Int
    let mode: Configuration.ConnectMode?
    /// Whether the device was never connected before.
    let isNew: Bool
    /// The begin of its turn: since when the link is in use, or of the round; nil while it is being made.
    var turnSince: Moment?
    /// Whether it is the first of this run, or round, on which the device's values have come.
    var hasFirstValues = false
    var isGivenUp = false

    func isBeingMade(on adapters: [Int]) -> Bool {
      turnSince == nil && !isGivenUp && adapters.contains(adapter)
    }
  }

  private struct Waiting {
    /// The adapters that receive the device.
    var adapters: [Int]
    let mode: Configuration.ConnectMode?
    /// A command or a request waits for the link.
    var isUrgent: Bool
    let place: Place
    /// The adapter that has a link reserved for the device.
    var reserved: Int?

    /// Whether the device gets a link before others have had theirs for ``LinkSchedule/stay``.
    var comesFirst: Bool { mode == .always || isUrgent }
  }

  /// A place in the queue. Devices that were never connected alternate with the others, as they may be many, and unreachable.
  private struct Place {
    let number: Int
    let isNew: Bool
  }

  private let adapters: Int
  /// How many links an adapter can have.
  private let most: Int
  private let stay: Duration
  private var links: [BluetoothAddress: Link] = [:]
  private var waiting: [BluetoothAddress: Waiting] = [:]
  /// The places of the devices that wait, and of those that left the queue without a link, as they went out of range.
  private var places: [BluetoothAddress: Place] = [:]
  /// How many first turns each device has had; those whose values have come have had all of them.
  private var firstTurns: [BluetoothAddress: Int] = [:]
  /// The devices that have been numbered, and when; nil: none are to be.
  private var numbered: [BluetoothAddress: Moment]?
  /// Whether the last attempt to connect to a device that was never connected has failed.
  private var hasNewFailed = false
  /// The number of the last place that was given to a device that was connected before, and to one that was not.
  private var lastPlace = (known: 0, new: 0)
  /// The number of the last place whose device got a link.
  private var served = 0
  /// When to call ``review(at:isBusy:)`` if nothing happens before.
  private(set) var deadline: Moment?

  /// How many turns a device gets before others as long as none of its values has come: attempts to connect may fail.
  private static let mostFirstTurns = 3
  /// How long a device that has to leave early keeps its link at least, to receive what is only notified.
  private static let shortestStay = Duration.seconds(5)
  /// The time from one device's turn to the next one's: the end of a link, and the begin of another one.
  static let change = Duration.seconds(5)

  init(adapters: Int, links: Int, stay: Duration) {
    self.adapters = adapters
    most = links
    self.stay = stay
  }

  // MARK: Inputs

  /// The device uses a link of the adapter from now on: it is being made.
  ///
  /// - Parameter isNew: whether it was never connected.
  mutating func occupy(
    _ device: BluetoothAddress, on adapter: Int, for mode: Configuration.ConnectMode?, isNew: Bool
  ) {
    waiting[device] = nil
    if let place = places.removeValue(forKey: device) { served = max(served, place.number) }
    links[device] = Link(adapter: adapter, mode: mode, isNew: isNew)
    firstTurns[device] = min(Self.mostFirstTurns, firstTurns[device, default: 0] + 1)
  }

  /// The link is in use.
  mutating func becameLive(_ device: BluetoothAddress, at now: Moment) {
    links[device]?.turnSince = now
    if links[device]?.isNew == true { hasNewFailed = false }
  }

  private mutating func endLink(_ device: BluetoothAddress) {
    guard let link = links.removeValue(forKey: device) else { return }
    if link.isNew, link.turnSince == nil { hasNewFailed = true }
  }

  /// The device, which was to give up its link, has something to do: like others that are busy, it keeps the link meanwhile.
  mutating func keepsLink(_ device: BluetoothAddress) { links[device]?.isGivenUp = false }

  /// The first values of this run have come.
  mutating func receivedFirstValues(_ device: BluetoothAddress) {
    links[device]?.hasFirstValues = true
    firstTurns[device] = Self.mostFirstTurns
  }

  /// Each device gets a short turn, as at the start, so that all have new values soon.
  mutating func beginRound(at now: Moment) {
    firstTurns = [:]
    for (device, link) in links {
      links[device]?.hasFirstValues = false
      if link.turnSince != nil { links[device]?.turnSince = now }
    }
  }

  /// The device has no link, and waits for one.
  ///
  /// - Parameters:
  ///   - adapters: those that receive it, all without a free link.
  ///   - isNew: whether it was never connected.
  /// - Returns: whether that is news.
  mutating func wait(
    _ device: BluetoothAddress, for mode: Configuration.ConnectMode?, on adapters: [Int], isUrgent: Bool,
    isNew: Bool
  ) -> Bool {
    if let before = waiting[device], before.adapters == adapters, before.isUrgent == isUrgent { return false }
    endLink(device)
    let place = places[device] ?? newPlace(isNew: isNew)
    places[device] = place
    let reserved = waiting[device]?.reserved.flatMap { adapters.contains($0) ? $0 : nil }
    waiting[device] = Waiting(
      adapters: adapters, mode: mode, isUrgent: isUrgent, place: place, reserved: reserved)
    return true
  }

  private mutating func newPlace(isNew: Bool) -> Place {
    let place = Place(number: max(served, isNew ? lastPlace.new : lastPlace.known) + 1, isNew: isNew)
    if isNew { lastPlace.new = place.number } else { lastPlace.known = place.number }
    return place
  }

  /// The device has no link any more, and does not wait for one.
  mutating func leave(_ device: BluetoothAddress) {
    endLink(device)
    waiting[device] = nil
  }

  /// The device leaves, and does not come back to its place in the queue.
  mutating func forget(_ device: BluetoothAddress) {
    leave(device)
    places[device] = nil
    firstTurns[device] = nil
  }

  /// Devices are to be numbered from now on, or no longer.
  mutating func setNumbering(_ isOn: Bool) { numbered = isOn ? numbered ?? [:] : nil }

  /// The device has its number, or cannot get one by a press.
  mutating func wasNumbered(_ device: BluetoothAddress, at now: Moment) { numbered?[device] = now }

  /// Something has changed, or the deadline is reached: reserves the links that are free, and finds those that are to be
  /// given up.
  mutating func review(at now: Moment, isBusy: (BluetoothAddress) -> Bool) -> [Action] {
    deadline = nil
    var actions: [Action] = []
    var free = (0..<adapters).map { adapter in
      unoccupied(adapter) - waiting.values.count { $0.reserved == adapter }
    }
    var ending = (0..<adapters).map { adapter in
      links.values.count { $0.adapter == adapter && $0.isGivenUp }
    }
    for (device, waiter) in queue where waiter.reserved == nil {
      if let adapter = waiter.adapters.first(where: { free[$0] > 0 }) {
        free[adapter] -= 1
        waiting[device]?.reserved = adapter
        actions.append(.connect(device))
      } else if let adapter = waiter.adapters.first(where: { ending[$0] > 0 }) {
        ending[adapter] -= 1
      } else if waiter.place.isNew, links.values.contains(where: { $0.isBeingMade(on: waiter.adapters) }) {
        // Many may wait that cannot be connected to: one attempt at a time is enough.
        continue
      } else if let (holder, end) = nextEnd(for: device, waiter, at: now, isBusy) {
        if end <= now {
          links[holder]?.isGivenUp = true
          actions.append(.giveUp(holder))
        } else {
          deadline = min(deadline ?? end, end)
        }
      }
    }
    return actions
  }

  /// The device whose turn ends first for one that waits, of those that can give up a link.
  private func nextEnd(
    for device: BluetoothAddress, _ waiter: Waiting, at now: Moment, _ isBusy: (BluetoothAddress) -> Bool
  ) -> (holder: BluetoothAddress, end: Moment)? {
    let ends = links.compactMap { holder, link -> (holder: BluetoothAddress, end: Moment)? in
      guard link.mode == nil, !link.isGivenUp, let since = link.turnSince,
        waiter.adapters.contains(link.adapter),
        let end = turnEnd(of: holder, since, link.hasFirstValues, for: device, waiter),
        end > now || !isBusy(holder)
      else { return nil }
      return (holder, end)
    }
    return ends.min { $0.end < $1.end }
  }

  /// When the holder of a link gives it up to a device that waits; nil: not to that one.
  private func turnEnd(
    of holder: BluetoothAddress, _ since: Moment, _ hasFirstValues: Bool,
    for device: BluetoothAddress, _ waiter: Waiting
  ) -> Moment? {
    switch (awaitsNumber(device), awaitsNumber(holder)) {
    case (true, false): max(since, numbered?[holder] ?? since) + Self.shortestStay
    case (true, true): since + (waiter.comesFirst ? stay(for: device, waiter) : stay)
    case (false, true) where !waiter.comesFirst: nil
    case (false, _):
      isFirst(device, waiter) && hasFirstValues ? since : since + stay(for: device, waiter)
    }
  }

  /// How long others keep their links while the device waits.
  private func stay(for device: BluetoothAddress, _ waiter: Waiting) -> Duration {
    waiter.comesFirst || isFirst(device, waiter) ? min(stay, Self.shortestStay) : stay
  }

  /// Whether the device gets a link before those that have had values in this run, or round, as it has had none. Of devices that
  /// were never connected many may wait that cannot be connected to: they do so only while the last such attempt has succeeded.
  private func isFirst(_ device: BluetoothAddress, _ waiter: Waiting) -> Bool {
    firstTurns[device, default: 0] < Self.mostFirstTurns && !(waiter.place.isNew && hasNewFailed)
  }

  private func rank(of device: BluetoothAddress, _ waiter: Waiting) -> (Int, Int, Int) {
    let isNumbered = numbered?[device] != nil
    let level =
      waiter.mode == .always ? 0 : waiter.isUrgent ? 1 : isNumbered ? 4 : isFirst(device, waiter) ? 2 : 3
    return (level, waiter.place.number, waiter.place.isNew ? 1 : 0)
  }

  // MARK: Queries

  /// Whether devices are being numbered, and the device has no number yet.
  func awaitsNumber(_ device: BluetoothAddress) -> Bool { numbered.map { $0[device] == nil } ?? false }
  var hasWaiting: Bool { !waiting.isEmpty }
  func isWaiting(_ device: BluetoothAddress) -> Bool { waiting[device] != nil }
  func hasLink(_ device: BluetoothAddress) -> Bool { links[device] != nil }
  func used(on adapter: Int) -> Int { links.values.count { $0.adapter == adapter } }

  /// Whether the device may use a link of each adapter: one that is free, and that no other device waits for.
  func free(for device: BluetoothAddress) -> [Bool] {
    if let waiter = waiting[device] { return (0..<adapters).map { $0 == waiter.reserved } }
    return (0..<adapters).map { adapter in
      unoccupied(adapter) > waiting.values.count { $0.adapters.contains(adapter) }
    }
  }

  private func unoccupied(_ adapter: Int) -> Int { most - used(on: adapter) }

  /// The devices that wait, in the order in which they get a link.
  private var queue: [(key: BluetoothAddress, value: Waiting)] {
    waiting.sorted { rank(of: $0.key, $0.value) < rank(of: $1.key, $1.value) }
  }

  /// The devices that wait, in order, and when each is expected to get a link; nil: none can be given up, or not before a
  /// device has ended what it does.
  func turns(
    at now: Moment, isBusy: (BluetoothAddress) -> Bool
  ) -> [(device: BluetoothAddress, next: Moment?)] {
    /// A link that can be given up, since when it is in use, and by whom; nil: it is free, or about to be.
    var slots = links.filter { $0.value.mode != .always }.map { device, link in
      (
        adapter: link.adapter, since: link.turnSince ?? now + Self.change,
        holder: link.isGivenUp ? nil : device
      )
    }
    for adapter in 0..<adapters {
      slots += (0..<max(0, unoccupied(adapter))).map { _ in (adapter, now, nil) }
    }
    return queue.map { device, waiter in
      var first: (slot: Int, end: Moment)?
      for (index, slot) in slots.enumerated() where waiter.adapters.contains(slot.adapter) {
        let end = slot.holder.map { turnEnd(of: $0, slot.since, false, for: device, waiter) } ?? now
        guard let end, end > now || slot.holder.map(isBusy) != true else { continue }
        if first.map({ end < $0.end }) ?? true { first = (index, max(now, end)) }
      }
      guard let first else { return (device, nil) }
      let next = first.end + Self.change
      if waiter.mode == .always {
        slots.remove(at: first.slot)
      } else {
        slots[first.slot] = (slots[first.slot].adapter, next, device)
      }
      return (device, next)
    }
  }

  /// How long a device that gives up a link of the adapter is expected to wait for another one.
  func expectedWait(on adapter: Int) -> Duration {
    let lasting = links.values.count { $0.adapter == adapter && $0.mode == .always }
    let waiters = waiting.values.count { $0.adapters.contains(adapter) }
    return (stay + Self.change) * (waiters / max(1, most - lasting) + 1)
  }
}

/// A device's place among those that wait for a link.
package struct LinkTurn: Sendable, Equatable {
  /// The place in the queue, from 1 on.
  package let position: Int
  /// When it is expected to get a link; nil: not known.
  package let next: Timestamp?

  /// Whether both turns say the same, apart from a few seconds.
  func isAbout(_ other: LinkTurn?) -> Bool {
    guard let next, let otherNext = other?.next else { return false }
    let difference = abs(next.milliseconds - otherNext.milliseconds)
    return position == other?.position && difference < 1000 * LinkSchedule.change.components.seconds
  }
}
