import EventLoop

/// Which of the gateway's adapters connects to a device: the one that receives it best.
///
/// A pure machine that is asked before each attempt to connect: the adapter never changes during a link. Adapters are
/// numbered in the order of the configuration.
struct AdapterChoice: Sendable {
  enum Decision: Sendable, Equatable {
    case use(Int)
    /// An adapter that may receive the device has not yet: ask again after this time, or when one has received it.
    case wait(Duration)
    /// The device is out of range of all adapters.
    case none
  }

  /// The device as one adapter knows it.
  private struct Candidate {
    /// The adapter can be used.
    var isOn: Bool
    /// bluetoothd has an object for the device.
    var isKnown = false
    var isConnected = false
    /// Kept while the adapter is absent.
    var isPaired = false
    /// In dBm; nil while bluetoothd reports none.
    var rssi: Int?
    /// The last one that was reported, and when it became outdated.
    var last: (rssi: Int, at: Moment)?
    /// Attempts to connect since the last link that had readings, and when the last one was begun.
    var attempts = 0
    var lastAttempt: Moment?

    var isInRange: Bool { isOn && isKnown && (rssi != nil || isConnected || isPaired) }

    func level(at now: Moment) -> Int? {
      if let rssi { return rssi }
      guard let last, last.at.duration(to: now) < AdapterChoice.memory else { return nil }
      return last.rssi
    }
  }

  /// The one chosen last.
  private(set) var current: Int?
  /// The only adapter that may be used.
  private var pinned: Int?
  private var candidates: [Candidate]
  /// Since when a decision is due.
  private var undecidedSince: Moment?
  /// When another adapter was chosen last.
  private var movedAt: Moment?

  /// In dB. Signals received at one place vary by a few dB.
  static let margin = 8
  /// After a move, another one only for a better signal is made no sooner than this.
  static let dwell = Duration.seconds(60)
  /// How long to wait for the other adapters to receive the device: after the end of a link they do so one by one.
  static let grace = Duration.seconds(2)
  /// A signal counts this long after bluetoothd has dropped it: it does so while scanning is paused for connects.
  static let memory = Duration.seconds(30)
  /// Each failed attempt counts as a signal weaker by this, in dB, until a link has readings, or for this long.
  static let attemptPenalty = 10
  static let attemptMemory = Duration.seconds(300)
  /// Of a peripheral whose signal is not known: weaker than any.
  private static let unknown = -128

  /// - Parameter isOn: of each adapter, whether it can be used.
  init(isOn: [Bool], pinned: Int?) {
    candidates = isOn.map { Candidate(isOn: $0) }
    self.pinned = pinned
  }

  // MARK: Inputs

  /// bluetoothd reports what an adapter knows of the device.
  mutating func seen(by adapter: Int, rssi: Int?, isConnected: Bool, isPaired: Bool, at now: Moment) {
    if rssi == nil, let last = candidates[adapter].rssi { candidates[adapter].last = (last, now) }
    candidates[adapter].isKnown = true
    candidates[adapter].rssi = rssi
    candidates[adapter].isConnected = isConnected
    candidates[adapter].isPaired = isPaired
  }

  /// bluetoothd has removed the device from an adapter, which may be absent itself by now.
  mutating func lost(by adapter: Int) {
    candidates[adapter].isKnown = false
    outOfRange(of: adapter)
  }

  mutating func adapterChanged(_ adapter: Int, isOn: Bool) {
    candidates[adapter].isOn = isOn
    if !isOn { outOfRange(of: adapter) }
  }

  private mutating func outOfRange(of adapter: Int) {
    candidates[adapter].rssi = nil
    candidates[adapter].last = nil
    candidates[adapter].isConnected = false
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
  mutating func chooseBonded() {
    current = eligible.first { candidates[$0].isPaired && candidates[$0].isKnown } ?? current
  }

  /// There is no link: which adapter to use for the next one.
  ///
  /// - Parameter hasFreeLink: of each adapter, whether it can have one more link.
  mutating func choose(hasFreeLink: [Bool], at now: Moment) -> Decision {
    let reachable = eligible.filter {
      let candidate = candidates[$0]
      return candidate.isInRange || candidate.isOn && candidate.isKnown && candidate.level(at: now) != nil
    }
    if let linked = reachable.first(where: { candidates[$0].isConnected }) { return use(linked, at: now) }
    if reachable.isEmpty {
      undecidedSince = nil
      return .none
    }
    let isComplete = eligible.allSatisfy {
      !candidates[$0].isOn || candidates[$0].isPaired || candidates[$0].level(at: now) != nil
    }
    let waited = (undecidedSince ?? now).duration(to: now)
    if !isComplete, waited < Self.grace {
      undecidedSince = undecidedSince ?? now
      return .wait(Self.grace - waited)
    }
    let free = reachable.filter { hasFreeLink[$0] }
    let usable = free.isEmpty ? reachable : free
    if let current, usable.contains(current), candidates[current].attempts == 0,
      let movedAt, movedAt.duration(to: now) < Self.dwell
    {
      return use(current, at: now)
    }
    // `max` gives the first of several that are equal.
    let best = usable.max { score($0, at: now) < score($1, at: now) }
    return use(best ?? usable[0], at: now)
  }

  private mutating func use(_ adapter: Int, at now: Moment) -> Decision {
    undecidedSince = nil
    if let current, current != adapter { movedAt = now }
    current = adapter
    candidates[adapter].attempts = attempts(adapter, at: now) + 1
    candidates[adapter].lastAttempt = now
    return .use(adapter)
  }

  // MARK: Queries

  /// Whether an attempt to connect may succeed.
  var isInRange: Bool { eligible.contains { candidates[$0].isInRange } }

  /// Whether the chosen adapter, or any if none was chosen, has a bond with the device.
  var isPaired: Bool { current.map { candidates[$0].isPaired } ?? candidates.contains { $0.isPaired } }

  /// The adapters that a link may use: the pinned one, or those that have a bond if there are any, or all. An adapter that
  /// is absent keeps its bond.
  var eligible: [Int] {
    if let pinned { return [pinned] }
    let bonded = candidates.indices.filter {
      candidates[$0].isPaired && (candidates[$0].isKnown || !candidates[$0].isOn)
    }
    return bonded.isEmpty ? Array(candidates.indices) : bonded
  }

  private func attempts(_ adapter: Int, at now: Moment) -> Int {
    guard let last = candidates[adapter].lastAttempt, last.duration(to: now) < Self.attemptMemory else {
      return 0
    }
    return candidates[adapter].attempts
  }

  private func score(_ adapter: Int, at now: Moment) -> Int {
    (candidates[adapter].level(at: now) ?? Self.unknown) + (adapter == current ? Self.margin : 0)
      - Self.attemptPenalty * attempts(adapter, at: now)
  }
}
