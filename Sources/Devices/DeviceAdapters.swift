import BlueZ
import EventLoop

/// The adapters as one device sees them: its object on each of them, and which one it uses. Runs ``AdapterChoice``.
@LoopActor final class DeviceAdapters {
  private let context: DeviceContext
  /// The objects in the running bluetoothd, by adapter; nil where there is none.
  private var objects: [PeripheralID?]
  private var choice: AdapterChoice
  /// Re-evaluates ``choice``.
  private var timer: LoopTimer?

  /// - Parameter pinned: the name of the only adapter that may be used; nil: any.
  init(_ context: DeviceContext, pinned: String?) {
    self.context = context
    objects = context.centrals.map { _ in nil }
    choice = AdapterChoice(
      isOn: context.centrals.map { $0.state.isOn }, pinned: pinned.flatMap { context.index(ofAdapter: $0) },
      bondLimit: context.bondLimit)
  }

  // MARK: Inputs

  func seen(_ seen: Peripheral, by adapter: Int) {
    objects[adapter] = seen.id
    if seen.isRemoved { return choice.removed(from: adapter) }
    choice.seen(
      by: adapter, rssi: seen.rssi, advertisement: seen.lastAdvertisement, isConnected: seen.isConnected,
      isPaired: seen.isPaired, at: .now)
  }

  func lost(by adapter: Int) {
    objects[adapter] = nil
    choice.lost(by: adapter)
  }

  func adapterChanged(_ adapter: Int, isOn: Bool) { choice.adapterChanged(adapter, isOn: isOn, at: .now) }

  func becameLive() { choice.becameLive() }

  /// Sets the only adapter that may be used; nil: any. One that the gateway does not use yet changes nothing.
  func pin(_ name: String?) {
    guard let name else { return choice.pin(nil) }
    if let index = context.index(ofAdapter: name) { choice.pin(index) }
  }

  /// Makes an adapter that has a bond the current one, if there is such an adapter. Called only without a link.
  func chooseBonded() { choice.chooseBonded(at: .now) }

  func dropBondsOfAbsentAdapters() { choice.dropBondsOfAbsentAdapters() }

  // MARK: The choice

  /// Chooses the adapter for the next link.
  ///
  /// - Parameters:
  ///   - freeLinks: of each adapter, whether the device may use a link of it.
  ///   - again: called when the decision was to wait, and the time is over.
  func choose(freeLinks: [Bool], orWait again: @escaping @LoopActor () -> Void) -> AdapterChoice.Decision {
    stopWaiting()
    let decision = choice.choose(freeLinks: freeLinks, startDeadline: context.startDeadline, at: .now)
    if case .wait(let delay) = decision { timer = loop.timer(after: delay, again) }
    return decision
  }

  var isWaiting: Bool { timer != nil }

  func stopWaiting() {
    timer?.cancel()
    timer = nil
  }

  // MARK: Queries

  /// The index of the adapter that was chosen last; nil: none yet.
  var chosen: Int? { choice.current }
  /// The adapter of the link, or of the last one.
  var current: Central { context.centrals[choice.currentOrFirst] }
  /// The object that the current adapter has.
  var peripheral: PeripheralID? { objects[choice.currentOrFirst] }
  var peripherals: [PeripheralID] { objects.compactMap { $0 } }
  var isPaired: Bool { choice.isPaired }
  var isInRange: Bool { choice.isInRange(at: .now) }
  var isReceived: Bool { choice.isReceived(at: .now) }

  /// Whether what the adapter reports of the device counts: it is the current one, or none was chosen.
  func isCurrent(_ adapter: Int) -> Bool { choice.current == nil || choice.current == adapter }
  func isEligible(_ adapter: Int) -> Bool { choice.eligible(at: .now).contains(adapter) }

  /// The adapters from which to remove the device, and its objects there; nil: the adapter has gone, with its bond.
  func objectsToRemove(isUnpairing: Bool) -> [(adapter: Central, peripheral: PeripheralID?)] {
    choice.adaptersToRemove(isUnpairing: isUnpairing).map { (context.centrals[$0], objects[$0]) }
  }
}
