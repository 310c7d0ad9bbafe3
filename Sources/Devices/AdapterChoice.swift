import EventLoop

/// Which of the gateway's adapters connects to a device: the one that receives it best.
///
/// A pure machine that is asked before each attempt to connect: the adapter never changes during a link. Adapters are
/// numbered in the order of the configuration.
struct AdapterChoice: Sendable {
  enum Decision: Sendable, Equatable {
    case use(Int)
    /// The adapters that receive the device have no free link.
    case full([Int])
    /// An adapter that may receive the device has not yet: ask again after this time, or when one has received it.
    case wait(Duration)
    /// The device is out of range of all adapters.
    case none
  }

  /// The device as one adapter knows it.
  private struct Candidate {
    /// The adapter can be used.
    var isOn: Bool
    /// When it could last be used, unless it can now.
    var offSince: Moment?
    /// bluetoothd has an object for the device.
    var isKnown = false
    var isConnected = false
    /// The adapter has a bond with the device; kept for a while if the adapter goes.
    var isPaired = false
    /// bluetoothd reports a signal strength, which may be old.
    var hasRSSI = false
    /// The last advertisement that the adapter received: its number, and its strength in dBm.
    var last: (number: Int, rssi: Int, at: Moment)?
    /// Attempts to connect since the last link that had readings, and when the last one was begun.
    var attempts = 0
    var lastAttempt: Moment?

    /// A bonded device can be connected to although no advertisement of it was received.
    var isInRange: Bool { isOn && isKnown && (hasRSSI || isConnected || isPaired) }

    /// Whether there is a bond, as far as is known: an adapter that has gone keeps it, while another program may have removed the
    /// device, with its bond, from one that is on.
    var keepsBond: Bool { isPaired && (isKnown || !isOn) }

    func isReceived(at now: Moment) -> Bool {
      isOn && isKnown && (hasRSSI || isConnected || level(at: now) != nil)
    }

    /// Whether the device belongs to the adapter. An adapter that has gone may come back with its bond.
    /// - Parameter limit: how long the bond of an adapter that has gone counts.
    func hasBond(at now: Moment, limit: Duration) -> Bool {
      guard isPaired else { return false }
      guard let offSince, !isOn else { return isKnown }
      return offSince.duration(to: now) < limit
    }

    func level(at now: Moment) -> Int? {
      guard let last, last.at.duration(to: now) < signalLimit else { return nil }
      return last.rssi
    }

    func attempts(at now: Moment) -> Int {
      guard let lastAttempt, lastAttempt.duration(to: now) < attemptLimit else { return 0 }
      return attempts
    }

    mutating func attempt(at now: Moment) {
      attempts = attempts(at: now) + 1
      lastAttempt = now
    }

    mutating func outOfRange() {
      hasRSSI = false
      last = nil
      isConnected = false
    }
  }
  /// The adapter chosen last.
  private(set) var current: Int?
  /// The adapter chosen last; the first one before any choice.
  var currentOrFirst: Int { current ?? 0 }
  /// The only adapter that may be used.
  private var pinned: Int?
  private let bondLimit: Duration
  private var candidates: [Candidate]
  /// Since when a decision is due.
  private var undecidedSince: Moment?
  /// When another adapter was chosen last.
  private var movedAt: Moment?

  /// How much stronger than the current adapter's signal another one must be, in dB: signals at one place vary by a few dB.
  static let margin = 8
  /// The least time from a move to another one that is only for a better signal.
  private static let dwell = Duration.seconds(60)
  /// How long to wait for the other adapters to receive the device: after the end of a link they do so one by one.
  private static let grace = Duration.seconds(2)
  /// How long a signal counts: bluetoothd reports each peripheral about every 15 s, and none while scanning is paused
  /// for a connect, but keeps the last strength as long as it scans.
  static let signalLimit = Duration.seconds(60)
  /// Each failed attempt counts as a signal weaker by this, in dB, until a link has readings, or for this long.
  private static let attemptPenalty = 10
  static let attemptLimit = Duration.seconds(300)
  /// The level of a signal that is not known, in dBm: weaker than any.
  private static let unknown = -128

  /// - Parameters:
  ///   - isOn: of each adapter, whether it can be used.
  ///   - bondLimit: how long the device waits for an adapter that has gone and has a bond with it.
  init(isOn: [Bool], pinned: Int?, bondLimit: Duration) {
    candidates = isOn.map { Candidate(isOn: $0) }
    self.pinned = pinned
    self.bondLimit = bondLimit
  }

  // MARK: Inputs

  /// bluetoothd reports what an adapter knows of the device.
  ///
  /// - Parameter advertisement: the number of the last advertisement that the adapter has received.
  mutating func seen(
    by adapter: Int, rssi: Int?, advertisement: Int, isConnected: Bool, isPaired: Bool, at now: Moment
  ) {
    candidates[adapter].isKnown = true
    candidates[adapter].hasRSSI = rssi != nil
    if let rssi, candidates[adapter].last?.number != advertisement {
      candidates[adapter].last = (advertisement, rssi, now)
    }
    candidates[adapter].isConnected = isConnected
    candidates[adapter].isPaired = isPaired
  }

  /// The gateway has removed the device from an adapter, with its bond.
  mutating func removed(from adapter: Int) {
    candidates[adapter].isPaired = false
    lost(by: adapter)
  }

  /// bluetoothd has removed the device from an adapter, which may be absent itself by now.
  mutating func lost(by adapter: Int) {
    candidates[adapter].isKnown = false
    candidates[adapter].outOfRange()
  }

  mutating func adapterChanged(_ adapter: Int, isOn: Bool, at now: Moment) {
    let wasOn = candidates[adapter].isOn
    candidates[adapter].isOn = isOn
    guard !isOn else { return }
    candidates[adapter].outOfRange()
    // An adapter that is plugged in again is off at first, and without its devices.
    if wasOn { candidates[adapter].offSince = now }
  }

  /// A link has readings.
  mutating func becameLive() {
    if let current { candidates[current].attempts = 0 }
  }

  /// Another adapter is configured as the only one, or none.
  mutating func pin(_ adapter: Int?) {
    pinned = adapter
    undecidedSince = nil
    current = adapter ?? current
  }

  /// There is no link: chooses an adapter that has a bond, if there is one.
  mutating func chooseBonded(at now: Moment) {
    current = eligible(at: now).first { candidates[$0].isPaired && candidates[$0].isKnown } ?? current
  }

  /// Drops the bonds of adapters that are off or absent, so that the device does not wait for them.
  mutating func dropBondsOfAbsentAdapters() {
    for index in candidates.indices where !candidates[index].isOn { candidates[index].isPaired = false }
  }

  /// There is no link: which adapter to use for the next one.
  ///
  /// - Parameters:
  ///   - freeLinks: of each adapter, whether the device may use a link of it.
  ///   - startDeadline: until when adapters that are not on yet are waited for.
  mutating func choose(freeLinks: [Bool], startDeadline: Moment? = nil, at now: Moment) -> Decision {
    let eligible = eligible(at: now)
    let reachable = eligible.filter { candidates[$0].isInRange || candidates[$0].isReceived(at: now) }
    if let linked = reachable.first(where: { candidates[$0].isConnected }) { return use(linked, at: now) }
    if reachable.isEmpty {
      undecidedSince = nil
      return .none
    }
    if let startDeadline, now < startDeadline, eligible.contains(where: { !candidates[$0].isOn }) {
      return .wait(now.duration(to: startDeadline))
    }
    let isComplete =
      eligible.count == 1
      || eligible.allSatisfy {
        !candidates[$0].isOn || candidates[$0].hasBond(at: now, limit: bondLimit)
          || candidates[$0].level(at: now) != nil
      }
    let waited = (undecidedSince ?? now).duration(to: now)
    if !isComplete, waited < Self.grace {
      undecidedSince = undecidedSince ?? now
      return .wait(Self.grace - waited)
    }
    let free = reachable.filter { freeLinks[$0] }
    if free.isEmpty { return .full(reachable) }
    if let current, free.contains(current), candidates[current].attempts == 0,
      let movedAt, movedAt.duration(to: now) < Self.dwell
    {
      return use(current, at: now)
    }
    // `max` gives the first of several that are equal.
    let best = free.max { score($0, at: now) < score($1, at: now) }
    return use(best ?? free[0], at: now)
  }

  private mutating func use(_ adapter: Int, at now: Moment) -> Decision {
    undecidedSince = nil
    if let current, current != adapter { movedAt = now }
    current = adapter
    candidates[adapter].attempt(at: now)
    return .use(adapter)
  }

  // MARK: Queries

  /// Whether an attempt to connect may succeed.
  func isInRange(at now: Moment) -> Bool { eligible(at: now).contains { candidates[$0].isInRange } }

  /// Whether the device's advertisements are received.
  func isReceived(at now: Moment) -> Bool {
    eligible(at: now).contains { candidates[$0].isReceived(at: now) }
  }

  /// Whether the chosen adapter, or any if none was chosen, has a bond with the device.
  var isPaired: Bool { current.map { candidates[$0].keepsBond } ?? candidates.contains(where: \.keepsBond) }

  /// The adapters that a link may use: the pinned one, or those that have a bond if there are any, or all.
  func eligible(at now: Moment) -> [Int] {
    if let pinned { return [pinned] }
    let bonded = candidates.indices.filter { candidates[$0].hasBond(at: now, limit: bondLimit) }
    return bonded.isEmpty ? Array(candidates.indices) : bonded
  }

  /// The adapters from which to remove the device: the chosen one, and others.
  ///
  /// - Parameter isUnpairing: to delete all bonds. Otherwise the chosen one has an outdated bond, which says nothing of
  ///   the others, or outdated services, which the others have too; then their bonds are kept.
  func adaptersToRemove(isUnpairing: Bool) -> [Int] {
    candidates.indices.filter { index in
      let candidate = candidates[index]
      if isUnpairing, candidate.keepsBond { return true }
      if index == currentOrFirst { return candidate.isKnown }
      return !isUnpairing && !isPaired && !candidate.isPaired && candidate.isKnown && candidate.isOn
    }
  }

  private func score(_ adapter: Int, at now: Moment) -> Int {
    (candidates[adapter].level(at: now) ?? Self.unknown) + (adapter == current ? Self.margin : 0)
      - Self.attemptPenalty * candidates[adapter].attempts(at: now)
  }
}
