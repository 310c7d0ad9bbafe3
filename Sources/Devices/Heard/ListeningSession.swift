import EventLoop
import GATT

/// The session of a device that is only heard: any number of gateways may hear it at once, and its events are told once.
@LoopActor class ListeningSession: DeviceSession {
  final var events: HeardEvents
  private final lazy var rhythm = Rhythm(span: Self.span, learned: device.record.learnedLimit)
  /// The timer for the deadline of ``events``.
  private final var timer = DeadlineTimer()

  required init(of device: Device, _ adapters: DeviceAdapters) {
    events = HeardEvents(told: device.record.told)
    super.init(of: device, adapters)
  }

  override func stop() {
    super.stop()
    feedPresence { $0.stop() }
  }

  /// The session itself, as it knows what was heard and told.
  override func renewed(wasDisabled: Bool) -> DeviceSession {
    isStopped = false
    return self
  }

  // MARK: Presence

  /// The time after which another silence of the device is noted: a burst says nothing of the next one.
  class var span: Duration { HeardEvents.silence }

  /// How long it is online after it was heard, as far as that is said; nil: its ``Rhythm`` decides.
  var offlineAfter: Profile.OfflineAfter? {
    device.settings.offlineAfter ?? device.description.profile.offlineAfter
  }

  /// How long it is online after it was heard; nil: without a limit.
  final var limit: Duration? { offlineAfter.map(\.limit) ?? longSilence }
  /// Three times its usual silence.
  final var longSilence: Duration { rhythm.limit }

  /// - Parameter channels: of which there were values.
  final func wasHeard(_ channels: [Channel]) {
    let offered = Set(channels.map(\.property.name))
    device.learn(offered: offered, usable: Set(device.channels.map(\.property.name)), isNewLink: false)
    device.description.timesHeard += 1
    followRhythm(at: .now)
    keepOnline()
  }

  final func followRhythm(at now: Moment) {
    rhythm.heard(at: now)
    guard offlineAfter == nil, let learned = rhythm.learned, learned != device.record.learnedLimit
    else { return }
    context.store.change(device.address) { $0.learnedLimit = learned }
  }

  /// An adapter or a receiver is off or gone, or cannot scan.
  final func interrupt() { rhythm.interrupt() }

  final func keepOnline() { feedPresence { [limit] in $0.heard(for: limit, at: .now) } }

  override func limitChanged() { feedPresence { [limit] in $0.changeLimit(to: limit) } }

  /// What is heard from now on are readings again.
  override func becameOffline() { events.forgetReadings() }

  override func becameOnline() {
    if device.owner == .unknown { device.owner = .this }
    (device.description.timesHeard, device.description.heardSince) = (1, .now)
  }

  // MARK: Events

  final func heardEvents(_ contents: [HeardEvents.Content], of source: Property.Source) {
    feed { [context, device] in
      $0.heardEvents(
        contents, of: source, hasPeers: device.hasPeers, claimsReturn: context.claimsReturn, at: .now, .now)
    }
  }

  override func claimed(_ event: HeardEvents.Event, byThis: Bool) {
    feed { $0.claimed(event, byThis: byThis, at: .now, .now) }
  }

  override func claimsAreLost() { feed { $0.claimsAreLost(at: .now) } }

  override func ownerChanged(isNewHere: Bool, told: [HeardEvents.Event]?) {
    // The values heard so far were another gateway's.
    if isNewHere { events.forgetReadings() }
    if let told { feed { $0.learn(told, at: .now, .now) } }
  }

  private func feed(_ input: (inout HeardEvents) -> [HeardEvents.Action]) {
    for action in input(&events) {
      switch action {
      case .claim(let event): device.tellObservers { $0.claim(event) }
      case .tell(let contents, let time, let isElsewhere):
        for content in contents {
          device.channels[content.property].tell(
            content.value, at: time, isElsewhere: isElsewhere, senderTime: content.senderTime)
        }
      }
    }
    timer.set(events.deadline) { [weak self] in self?.feed { $0.timer(at: .now) } }
    noteTold()
  }

  /// Whether what was told may be heard again after a restart.
  var repeatsEvents: Bool { true }

  private func noteTold() {
    guard repeatsEvents, events.told != device.record.told else { return }
    context.store.change(device.address) { [events] in $0.told = events.told }
    device.report(.handover)
  }
}
