import DBus
import EventLoop
import Log

/// What a ``BluetoothdConnection`` reports, in order.
enum BluetoothdEvent: Sendable {
  /// bluetoothd has started, with this unique name, or has ended (nil): all objects reported before are gone.
  case owner(String?)
  /// The objects of a bluetoothd that has started, and what has changed since they were listed.
  case objects([BlueZEvent])
  /// A change of the objects.
  case changed(BlueZEvent)
  /// bluetoothd has not listed its objects, or the bus does not let this user call it. Listing is retried.
  case unlisted(isDenied: Bool)
  /// bluetoothd calls an object of this process.
  case call(DBusCall)
  /// The connection to the bus has ended. No event follows.
  case disconnected
}

/// A connection to bluetoothd's bus: notices when bluetoothd starts and ends, lists its objects, and reports their
/// changes.
///
/// A connection cannot be reused after ``BluetoothdEvent/disconnected``. Events are passed to the handler synchronously.
@LoopActor final class BluetoothdConnection {
  private let log = Logger(component: "bluetooth")
  private let limits: Limits
  private let byteSignals: ByteSignals
  private let handler: @LoopActor (BluetoothdEvent) -> Void
  private var bus: DBusConnection?
  private let ended = Waiter<Void>()
  /// bluetoothd's unique name; nil: it is not running.
  private var owner: String?
  /// Whether a signal has reported the owner of `org.bluez`.
  private var hasOwnerSignal = false
  /// Changes received while the objects are being listed, to be applied to them; nil at other times.
  private var backlog: [BlueZEvent]?

  /// Connects to the bus. bluetoothd is not watched yet.
  /// - Parameter byteSignals: delivers the notified values of characteristics; `handler` receives all other changes.
  init(
    _ address: String, byteSignals: ByteSignals, limits: Limits,
    handler: @escaping @LoopActor (BluetoothdEvent) -> Void
  ) async throws {
    self.byteSignals = byteSignals
    self.limits = limits
    self.handler = handler
    bus = try await DBusConnection.open(address, byteSignals: byteSignals, signalSenders: []) {
      [weak self] in self?.receive($0)
    }
  }

  /// Acquires the lock of an adapter, which is held until the connection ends.
  func lock(_ adapter: String) async throws(DBusError) -> AdapterLock.Outcome {
    guard let bus else { throw .disconnected }
    return try await AdapterLock.acquire(adapter, on: bus)
  }

  /// Returns after ``close()``; throws why the connection has ended otherwise.
  func waitForEnd() async throws { try await ended.value() }

  /// Closes the connection; no event follows.
  func close() {
    bus?.close()
    bus = nil
    owner = nil
    backlog = nil
    byteSignals.setSender(nil)
    ended.resume(.success(()))
  }

  /// The connection for calls of bluetoothd; nil while bluetoothd is not running.
  var callable: DBusConnection? { owner == nil ? nil : bus }

  // MARK: bluetoothd

  /// Begins to watch bluetoothd and its objects.
  /// - Parameter adapterPath: only changes of this adapter and of its devices are received.
  func watch(adapterPath: String) async throws(DBusError) {
    guard let bus else { throw .disconnected }
    for interface in [BlueZName.adapter, BlueZName.device, BlueZName.characteristic] {
      try await bus.addMatch([
        "sender": BlueZName.busName, "interface": DBusName.properties, "path_namespace": adapterPath,
        "arg0": interface,
      ])
    }
    try await bus.addMatch([
      "sender": BlueZName.busName, "interface": BlueZName.device, "path_namespace": adapterPath,
    ])
    try await bus.addMatch(["sender": BlueZName.busName, "interface": DBusName.objectManager])
    // The last: the objects are listed as soon as the owner is known, and every later change of theirs must be received.
    try await bus.addMatch([
      "sender": DBusName.bus, "member": "NameOwnerChanged", "arg0": BlueZName.busName,
    ])
    let owner = try await currentOwner(on: bus)
    // A signal is at least as new as the reply.
    if !hasOwnerSignal { ownerChanged(to: owner) }
  }

  private func currentOwner(on bus: DBusConnection) async throws(DBusError) -> String? {
    do throws(DBusError) {
      return try await bus.callBus("GetNameOwner", .string(BlueZName.busName)).first?.text
    } catch {
      guard error.name == DBusName.Failure.nameHasNoOwner else { throw error }
      return nil
    }
  }

  private func receive(_ event: DBusEvent) {
    switch event {
    case .signal(let signal):
      guard let event = BlueZEvent(signal, owner: owner) else { return }
      if case .owner(let owner) = event {
        hasOwnerSignal = true
        ownerChanged(to: owner)
      } else if backlog != nil {
        backlog?.append(event)
      } else {
        handler(.changed(event))
      }
    case .call(let call) where call.sender == owner:
      handler(.call(call))
    case .call(let call):
      try? bus?.reply(to: call, .failure(.noSuchMethod))
    case .disconnected(let error):
      ended.resume(.failure(error))
      handler(.disconnected)
    }
  }

  private func ownerChanged(to owner: String?) {
    self.owner = owner
    byteSignals.setSender(owner)
    bus?.signalSenders = owner.map { [$0] } ?? []
    backlog = owner == nil ? nil : []
    handler(.owner(owner))
    if let owner { loop.task { await self.listObjects(of: owner) } }
  }

  private func listObjects(of owner: String) async {
    var hasFailed = false
    while self.owner == owner {
      do throws(DBusError) {
        guard let reply = try await bus?.call(.managedObjects, timeout: limits.objectList),
          self.owner == owner
        else { return }
        guard let objects = BlueZEvent.objects(reply) else { throw .invalid("the reply has no objects") }
        let events = objects + (backlog ?? [])
        backlog = nil
        return handler(.objects(events))
      } catch {
        guard self.owner == owner, error != .disconnected else { return }
        if !hasFailed { log.warning("cannot list bluetoothd's objects", ["error": error]) }
        hasFailed = true
        handler(.unlisted(isDenied: error.name == DBusName.Failure.accessDenied))
        // The next reply includes them.
        backlog = []
        try? await loop.sleep(for: limits.retry)
      }
    }
  }
}
