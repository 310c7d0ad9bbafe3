import DBus
import EventLoop

/// The link to a peripheral: the lock for its operations, those in progress, and its notifications.
@LoopActor final class Link {
  /// Admits one exchange at a time: bluetoothd answers `InProgress` to a second write to a characteristic.
  let mutex = AsyncMutex()
  private(set) var hasEnded = false
  /// Operations that bluetoothd has not answered, including those that timed out.
  var unanswered = 0
  /// Runs while the peripheral changes its services.
  var servicesTimer = DeadlineTimer()
  /// The exchange in progress. Weak: retained by its calls.
  private weak var exchange: Exchange?
  private let byteSignals: ByteSignals
  /// The characteristics whose signals are delivered.
  private var listening: Set<Characteristic> = []
  /// The characteristics that bluetoothd has been asked to notify, and has agreed to.
  private var subscribed: Set<Characteristic> = []
  /// Calls of StopNotify that bluetoothd has not answered.
  var unsubscribing = 0

  init(_ byteSignals: ByteSignals) { self.byteSignals = byteSignals }

  var hasUnanswered: Bool { unanswered > 0 }

  /// `exchange` is in progress; it fails if the link or the characteristic ends first.
  func begin(_ exchange: Exchange) {
    self.exchange = exchange
    unanswered += exchange.unanswered
  }

  /// Ends what depends on a removed characteristic: bluetoothd may never answer an operation on one.
  func end(where isRemoved: (Characteristic) -> Bool) {
    if let exchange, isRemoved(exchange.characteristic) {
      unanswered -= exchange.unanswered
      exchange.unanswered = 0
      exchange.end(.characteristicRemoved)
    }
    for characteristic in listening where isRemoved(characteristic) { stopListening(to: characteristic) }
  }

  /// Values of `characteristic` that arrive as signals are passed to `handler`.
  func listen(to characteristic: Characteristic, _ handler: @escaping ByteSignals.Handler) {
    guard !hasEnded else { return }
    listening.insert(characteristic)
    byteSignals.listen(to: characteristic.path, handler)
  }

  func stopListening(to characteristic: Characteristic) {
    subscribed.remove(characteristic)
    if listening.remove(characteristic) != nil { byteSignals.stopListening(to: characteristic.path) }
  }

  /// bluetoothd has answered StartNotify.
  func subscribed(to characteristic: Characteristic) { subscribed.insert(characteristic) }

  /// The characteristics to unsubscribe from. Values that are still signalled are delivered.
  func endNotifications() -> Set<Characteristic> {
    defer { subscribed.removeAll() }
    return subscribed
  }

  /// The link has ended: operations fail, and no values follow.
  func end() {
    hasEnded = true
    exchange?.end()
    for characteristic in listening { byteSignals.stopListening(to: characteristic.path) }
    listening.removeAll()
    subscribed.removeAll()
  }
}
