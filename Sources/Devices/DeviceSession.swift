import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// How the values of a device arrive, and whether it is online: over links, or otherwise. The base of
/// the others; what it answers by default is what one without links does.
@LoopActor class DeviceSession {
  final unowned let device: Device
  final let adapters: DeviceAdapters
  /// The requests to unpair that await their answer.
  final var unpairing: [UnpairingReply] = []
  /// The state last reported to the device.
  final private(set) var reportedState = SessionState.absent
  /// Whether the device, which has no links, is disabled or removed, or the gateway stops: ``LinkMachine`` says so of others.
  final var isStopped = false
  private(set) final lazy var presence = Presence(interval: visitInterval)
  /// The timer for the deadline of ``presence``.
  private final var presenceTimer = DeadlineTimer()

  final var context: DeviceContext { device.context }

  /// - Parameter adapters: also those of the device's last session.
  required init(of device: Device, _ adapters: DeviceAdapters) {
    self.device = device
    self.adapters = adapters
  }

  // MARK: Questions

  /// Whether the device sends values again and again, so that a long silence while it is online is a fault.
  var sendsRegularly: Bool { true }
  /// Whether there is room for a device that nobody has configured.
  class func hasRoom(in manager: DeviceManager) -> Bool { true }
  /// Whether there is room for a device that is known by an advertisement alone, and was not connected yet.
  class func hasRoomForNew(in manager: DeviceManager) -> Bool { true }
  /// Whether the device is known by its advertisements alone: each has to be reported, also one that is as the one before, and
  /// anybody can send a thousand.
  class var isOnlyAdvertised: Bool { false }
  /// The time between two visits; nil: it is not visited.
  var visitInterval: Duration? { nil }
  /// Reads what it advertises in BTHome, as it was read last.
  var objectReader: ObjectReader { ObjectReader(counter: nil) }
  /// What makes the device's links; nil: it has none.
  var linkSession: LinkSession? { nil }
  /// What sends values to the device by radio; nil: it is not a sender by radio.
  var radioSession: RadioSession? { nil }
  var state: SessionState { isStopped ? .stopped : .listening }
  /// Why there is no link, or nothing that can be used.
  var lastError: Trouble? { nil }
  /// What the profile misses in what the device, which is in range, advertises; nil: nothing.
  var lack: String? { nil }
  /// Why commands can never be carried out; nil if they can.
  var obstacle: String? { Self.onlyHeard }
  /// Whether the device has to be found by Bluetooth before it can be used.
  var needsScan: Bool { state != .live && state != .idle }
  /// The adapter of the link, or of the last one.
  final var central: Central { adapters.current }
  /// Whether the device may be connected by the adapter now: a session with a link uses that one alone.
  final func mayUse(_ adapter: Int) -> Bool {
    context.scheduler.hasLink(device) ? adapters.isCurrent(adapter) : adapters.isEligible(adapter)
  }

  private static let onlyHeard = "the device is only heard: it has no link"

  final func requireLinkSession() throws(RequestError) -> LinkSession {
    guard let linkSession else { throw RequestError(Self.onlyHeard) }
    return linkSession
  }

  /// Calls `body` when there is a link: at once, or when the device was connected on demand; else with the reason why
  /// there is none.
  func withLink(within seconds: Int = LinkRequests.waitLimit, _ body: @escaping LinkRequests.Body) {
    body(device.obstacle)
  }

  // MARK: Life

  /// The device, which is enabled, has its observers.
  func begin() {}
  /// Ends the session. What is in progress has no effect any more.
  func stop() {
    isStopped = true
    reportState()
  }
  /// The session after this one, which has ended: the device is enabled, or has other settings.
  func renewed(wasDisabled: Bool) -> DeviceSession { Self(of: device, adapters) }

  // MARK: What the adapters report

  func seen(_ seen: Peripheral, by adapter: Int) {
    adapters.seen(seen, by: adapter)
    rangeChanged()
  }

  /// Notes what is new in what the device sends, before it is ``seen(_:by:)``.
  /// - Returns: whether it is to be made again with more properties.
  func learn(from seen: Peripheral) -> Bool { false }

  /// bluetoothd has removed the peripheral from an adapter.
  final func lost(by adapter: Int) {
    adapters.lost(by: adapter)
    rangeChanged()
  }

  /// Meanwhile nothing tells how often the device sends.
  func adapterCannotScan() {}

  func adapterChanged(_ adapter: Int, isOn: Bool) {
    adapters.adapterChanged(adapter, isOn: isOn)
    rangeChanged()
  }

  /// What the adapters know of the device has changed, or for how long.
  func rangeChanged() { reportState() }

  // MARK: Presence

  /// Gives ``presence`` an input.
  final func feedPresence(_ input: (inout Presence) -> [Presence.Action]) {
    let actions = input(&presence)
    presenceTimer.set(presence.deadline) { [weak self] in self?.feedPresence { $0.timer(at: .now) } }
    for action in actions {
      switch action {
      case .visit: visitIsDue()
      case .online: device.becameOnline()
      case .offline:
        becameOffline()
        device.becameOffline()
      }
    }
  }

  /// The device, which is connected on demand, is to be connected.
  func visitIsDue() {}
  /// The entry has another `offline_after`.
  func limitChanged() {}
  /// The device is no longer online, which it is told next.
  func becameOffline() {}

  // MARK: What the device reports

  /// Called for every reading, of the property with this index.
  func readingReceived(of property: Int) {}
  /// Called by ``Device/becameOnline()``, which reports it then. A device with links: sets its owner, its adapter and what the link
  /// offers; one that is heard: its owner, if there is none, and since when it is heard.
  func becameOnline() {}
  /// - Parameters:
  ///   - isNewHere: whether this gateway owns the device now, and did not before.
  ///   - told: the events that another gateway has told; nil: it says nothing.
  func ownerChanged(isNewHere: Bool, told: [HeardEvents.Event]?) {}
  /// A claim has come from the broker: of this gateway, or of another one.
  func claimed(_ event: HeardEvents.Event, byThis: Bool) {}
  /// Claims do not come back any more.
  func claimsAreLost() {}

  // MARK: Reports

  final func reportState() {
    guard state != reportedState else { return }
    reportedState = state
    device.sessionChanged()
  }

  final func log(_ trouble: Trouble) {
    let profile = device.description.profile
    let remedy = trouble.remedy(device.id.description, profile, device.settings.pairing)
    let line = trouble.text(profile) + (remedy.map { " (\($0))" } ?? "")
    var level = LogLevel.warning
    if case .connectFailed = trouble { level = .info }
    context.log.write(device.isAnonymous ? .debug : level, line, device.fields)
  }
}

extension Profile {
  /// The kind of session that the profile's devices have.
  var session: DeviceSession.Type {
    if hasLinks { return LinkSession.self }
    return properties.first?.source?.data == .radio ? RadioSession.self : HeardSession.self
  }
}
