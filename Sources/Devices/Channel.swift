import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// A property of one device: its characteristic while there is a link, its value, and its writes.
final class Channel: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  /// How commands are carried out.
  private enum Writes {
    /// It can only be read.
    case none
    case confirmed(ConfirmedWrite<Command>)
    case events(EventWrites)
  }

  private struct Expiry {
    let deadline: Moment
    let timer: LoopTimer
  }

  let index: Int
  let property: Property
  /// While there is a link that offers it.
  private(set) var characteristic: Characteristic?
  private(set) var desired: DesiredValue
  /// The last one that was received in this run; nil of an event.
  private(set) var value: Value?
  private var writes: Writes
  private var expiry: Expiry?
  /// The last value could not be decoded: logged once, until one can.
  private var isMalformed = false
  /// It is read because bluetoothd does not notify it: logged once, until it does.
  private var isPolled = false
  private unowned let device: Device

  private var context: DeviceContext { device.context }

  init(index: Int, of device: Device, desired: DesiredValue) {
    self.index = index
    property = device.description.profile.properties[index]
    self.device = device
    self.desired = desired
    writes = .none
    if property.isWritable {
      switch property.kind {
      case .state: writes = .confirmed(ConfirmedWrite(desired: desired.effective.flatMap(encoded)))
      case .event: writes = .events(EventWrites(mode: property.writeMode))
      }
    }
  }

  /// Nil for what the codec cannot encode.
  private func encoded(_ value: Value) -> EncodedValue? {
    (try? property.codec.encode(value)).map { EncodedValue(value: value, bytes: $0) }
  }

  // MARK: The link

  /// The characteristics of a new link.
  func resolve(_ characteristics: [Characteristic]) {
    let all = characteristics.filter {
      $0.service == property.service && $0.uuid == property.characteristic && $0.flags.allow(property)
    }
    characteristic = property.instance < all.count ? all[property.instance] : nil
    isMalformed = false
  }

  /// The link has ended: what belonged to it goes.
  func linkEnded() {
    characteristic = nil
    perform(confirmed: { $0.linkDown() }, events: { $0.linkDown() })
  }

  /// The link is live. What can never be carried out fails.
  func linkIsLive() {
    if characteristic == nil {
      abandonWrites(reason: "the device does not offer \(property.name)")
    } else {
      perform(confirmed: { $0.linkUp() }, events: { $0.linkUp() })
    }
  }

  /// Does something on the link. The device may be removed meanwhile: it stays until that is done.
  private func task(_ body: @escaping @Sendable (isolated Central) async -> Void) {
    context.loop.task(of: context.central) { [device] central in
      await body(central)
      withExtendedLifetime(device) {}
    }
  }

  // MARK: Values

  /// Reads and subscribes, as far as the property is meant to be. The value is read first: no reading is missed in
  /// between, and none comes twice, since the signal of a read comes before its answer.
  func subscribe(on central: isolated Central) async throws(CentralError) {
    guard let characteristic else { return }
    let isRead =
      property.kind == .state && property.isReadable && (property.isNotifying || !property.isWritable)
    if isRead { received(try await central.read(characteristic)) }
    guard property.isNotifying, property.notify != .poll else {
      if let interval = property.poll ?? (property.notify == .poll ? .seconds(1) : nil) {
        poll(characteristic, every: interval)
      }
      return
    }
    let method: NotificationMethod? =
      switch property.notify {
      case .signal: .signal
      case .socket: .socket
      case .poll, nil: nil
      }
    do throws(CentralError) {
      // Held until the link ends, and the device with it.
      try await central.subscribe(to: characteristic, by: method) { [self, device] bytes in
        withExtendedLifetime(device) { received(bytes) }
      }
      isPolled = false
    } catch .notifyAcquired where property.isReadable && property.kind == .state {
      pollInstead(characteristic)
    }
  }

  /// It cannot be used on this link, which goes on without it.
  func leaveOut(because error: CentralError) {
    context.log.warning("\(property.name) cannot be used: \(error)", device.fields)
    characteristic = nil
  }

  /// bluetoothd does not notify it: it is read once a period, and at most once a second.
  private func pollInstead(_ characteristic: Characteristic) {
    if !isPolled {
      context.log.warning(
        """
        another program takes the notifications of \(property.name): reading it instead. If there is no such \
        program, bluetoothd is stuck (a fault before its version 5.84): sudo systemctl restart bluetooth
        """, device.fields)
    }
    isPolled = true
    task { [self] central in
      let isNotified = await central.poll(characteristic, every: { self.device.pollInterval }) {
        self.polled($0)
      }
      guard isNotified else { return }
      isPolled = false
      context.log.notice("\(property.name) is notified again", device.fields)
    }
  }

  private func poll(_ characteristic: Characteristic, every interval: Duration) {
    task { [self] central in
      await central.poll(characteristic, every: interval) { self.polled($0) }
    }
  }

  private func polled(_ result: Result<[UInt8], CentralError>) {
    switch result {
    case .success(let bytes): received(bytes)
    case .failure(.timedOut): device.isUnresponsive()
    case .failure(let error): context.log.debug("cannot read \(property.name): \(error)", device.fields)
    }
  }

  /// A value came: on the path of every notification.
  private func received(_ bytes: [UInt8]) {
    // A link that is being left lasts a little longer.
    guard device.isReceiving else { return }
    let value: Value
    do throws(CodecError) {
      value = try property.codec.decode(bytes)
    } catch {
      context.counters.malformed += 1
      if !isMalformed {
        isMalformed = true
        context.log.warning("ignoring a malformed value of \(property.name): \(error)", device.fields)
      }
      return
    }
    isMalformed = false
    publish(value)
  }

  private func publish(_ value: Value) {
    if property.kind == .state { self.value = value }
    device.publish(value, of: self)
  }

  // MARK: Commands

  func execute(_ command: Command) {
    let value: EncodedValue
    do throws(CodecError) {
      value = EncodedValue(value: command.value, bytes: try property.codec.encode(command.value))
    } catch {
      return command.reply(.rejected(reason: "\(error)"))
    }
    if let problem = property.problem(with: command.value) {
      return command.reply(.rejected(reason: problem))
    }
    if let reason = obstacle { return command.reply(.failed(reason: reason)) }
    perform(
      confirmed: { $0.command(.init(value: value, tag: command, timeToLive: command.timeToLive)) },
      events: { $0.command(.init(value: value, command: command)) })
  }

  /// Reads the value now.
  func get(_ reply: @escaping @Sendable (Outcome) -> Void) {
    guard let characteristic, device.isLive else {
      return reply(.failed(reason: obstacle ?? "the device is offline"))
    }
    task { [self] central in
      do throws(CentralError) {
        let bytes = try await central.read(characteristic)
        let value = try? property.codec.decode(bytes)
        guard let value else { return reply(.failed(reason: "the device returned a malformed value")) }
        if !property.isNotifying { publish(value) }
        reply(.read(actual: value))
      } catch {
        if case .timedOut = error { device.isUnresponsive() }
        reply(.failed(reason: "\(error)"))
      }
    }
  }

  /// Why a command can never be carried out, not even later.
  private var obstacle: String? {
    device.obstacle
      ?? (device.isLive && characteristic == nil ? "the device does not offer \(property.name)" : nil)
  }

  func abandonWrites(reason: String) {
    perform(confirmed: { $0.abandon(reason: reason) }, events: { $0.abandon(reason: reason) })
  }

  // MARK: Desired state

  /// The configuration names another value, or none.
  func configure(_ value: Value?) {
    guard value != desired.configured else { return }
    let before = desired.effective
    desired.configured = value
    if desired.effective != before { applyDesired(by: .configuration) }
  }

  /// A request names a value; nil: back to the configured one.
  func override(_ value: Value?) {
    desired.override = value.map { DesiredValue.Override(value: $0, source: .request) }
    desired.waiting = nil
    applyDesired(by: .request)
    persistDesired()
  }

  private func applyDesired(by origin: DesiredOrigin) {
    let value = desired.effective.flatMap(encoded)
    perform(confirmed: { $0.setDesired(value, by: origin) }, events: { _ in [] })
    device.desiredChanged()
  }

  /// Another gateway has the device now, and says what is desired; nil: it does not say.
  func handOver(desired value: Value?, wasOwned: Bool) {
    // While no gateway owned the device, every gateway that knows it has the command that waits here.
    if wasOwned { abandonWrites(reason: "another gateway has taken the device over") }
    let encodedValue = value.flatMap(encoded)
    perform(
      confirmed: { $0.standBy(desired: encodedValue) },
      events: { $0.abandon(reason: "another gateway has taken the device over") })
    if let value, encodedValue != nil {
      desired.override = DesiredValue.Override(value: value, source: .command)
      desired.waiting = nil
      persistDesired()
    }
  }

  private func persistDesired() {
    let stored = desired.persistent.map { value in
      DeviceRecord.Desired(value: property.codec.json(value.value), source: value.source)
    }
    context.store.change(device.address) { $0.desired[property.name] = stored }
    device.desiredChanged()
  }

  // MARK: The machines

  /// Gives the machine that the property has an input, and carries out what it asks for.
  private func perform(
    confirmed: (inout ConfirmedWrite<Command>) -> [ConfirmedWrite<Command>.Action],
    events: (inout EventWrites) -> [EventWrites.Action]
  ) {
    switch writes {
    case .none: return
    case .confirmed(var machine):
      let actions = confirmed(&machine)
      writes = .confirmed(machine)
      for action in actions { perform(action) }
    case .events(var machine):
      let actions = events(&machine)
      writes = .events(machine)
      for action in actions { perform(action) }
    }
    watchDeadline()
  }

  /// A command that waits and has a time to live ends in time.
  private func watchDeadline() {
    let deadline: Moment? =
      switch writes {
      case .none: nil
      case .confirmed(let machine): machine.deadline
      case .events(let machine): machine.deadline
      }
    guard deadline != expiry?.deadline else { return }
    expiry?.timer.cancel()
    expiry = deadline.map { deadline in
      let timer = context.loop.timer(after: Moment.now.duration(to: deadline)) { [weak self] in
        guard let self else { return }
        expiry = nil
        perform(confirmed: { $0.expire(at: .now) }, events: { $0.expire(at: .now) })
      }
      return Expiry(deadline: deadline, timer: timer)
    }
  }

  private func perform(_ action: ConfirmedWrite<Command>.Action) {
    switch action {
    case .write(let value, let operation):
      task { [self] central in
        let result = await write(value, on: central)
        perform(confirmed: { $0.wrote(operation, result) }, events: { _ in [] })
      }
    case .read(let operation):
      task { [self] central in
        let result = await read(on: central)
        perform(confirmed: { $0.read(operation, result) }, events: { _ in [] })
      }
    case .publish(let value):
      self.value = value.value
      device.wasReadBack(value.value, of: self)
    case .answer(let command, let outcome):
      report(outcome, to: command.tag)
      keep(command, outcome)
    case .desired(let value):
      desired.override = DesiredValue.Override(value: value.value, source: .command)
      desired.waiting = nil
      persistDesired()
    case .restoreFailed(let value, let failure):
      context.log.warning("\(property.name) \(value.value) could not be applied: \(failure)", device.fields)
    case .unresponsive:
      device.isUnresponsive()
    }
  }

  private func perform(_ action: EventWrites.Action) {
    switch action {
    case .write(let value, let number):
      task { [self] central in
        let failure = await send(value, on: central)
        perform(confirmed: { _ in [] }, events: { $0.wrote(number, failure) })
      }
    case .answer(let request, let outcome):
      report(outcome, to: request.command)
    case .unresponsive:
      device.isUnresponsive()
    }
  }

  private func report(_ outcome: Outcome, to command: Command) {
    context.log.info("\(property.name) \(command.value): \(outcome.word)", device.fields)
    command.reply(outcome)
  }

  /// A command without time to live that waits, waits through a restart as well; one that failed does not.
  private func keep(_ command: ConfirmedWrite<Command>.Command, _ outcome: Outcome) {
    switch outcome {
    case .pending: desired.waiting = command.timeToLive == nil ? command.value.value : nil
    // What is unfinished is applied after the next start.
    case .failed where context.isStopping && command.timeToLive == nil: desired.waiting = command.value.value
    case .failed, .timeout: desired.waiting = nil
    case .applied, .adjusted, .accepted, .sent, .read, .rejected, .superseded: return
    }
    persistDesired()
  }

  private func write(_ value: EncodedValue, on central: isolated Central) async -> Written {
    guard let characteristic else { return .notWritten(.linkLost) }
    do throws(CentralError) {
      let held = try await central.write(value.bytes, to: characteristic)
      return Self.decoded(held, property.codec).fold(Written.holds, Written.notReadBack)
    } catch {
      return .notWritten(WriteFailure(error))
    }
  }

  private func read(on central: isolated Central) async -> Result<EncodedValue, WriteFailure> {
    guard let characteristic else { return .failure(.linkLost) }
    do throws(CentralError) {
      return Self.decoded(.success(try await central.read(characteristic)), property.codec)
    } catch {
      return .failure(WriteFailure(error))
    }
  }

  private func send(_ value: EncodedValue, on central: isolated Central) async -> WriteFailure? {
    guard let characteristic else { return .linkLost }
    do throws(CentralError) {
      try await central.send(
        value.bytes, to: characteristic, withResponse: property.writeMode != .command)
      return nil
    } catch {
      return WriteFailure(error)
    }
  }

  private static func decoded(
    _ bytes: Result<[UInt8], CentralError>, _ codec: Codec
  ) -> Result<EncodedValue, WriteFailure> {
    switch bytes {
    case .failure(let error): return .failure(WriteFailure(error))
    case .success(let bytes):
      do throws(CodecError) {
        return .success(EncodedValue(value: try codec.decode(bytes), bytes: bytes))
      } catch {
        return .failure(.failed(reason: "\(error)"))
      }
    }
  }
}

extension Result {
  fileprivate func fold<R>(_ success: (Success) -> R, _ failure: (Failure) -> R) -> R {
    switch self {
    case .success(let value): success(value)
    case .failure(let error): failure(error)
    }
  }
}

extension WriteFailure {
  fileprivate init(_ error: CentralError) {
    switch error {
    case .disconnected, .gone, .unavailable: self = .linkLost
    case .timedOut: self = .timeout
    case .transient, .busy, .unlikely, .refused, .notifyAcquired: self = .failed(reason: "\(error)")
    }
  }
}

extension Characteristic.Flags {
  /// Whether the characteristic can do what the property needs of it.
  fileprivate func allow(_ property: Property) -> Bool {
    (!property.isReadable || contains(.read))
      && (!property.isWritable || contains(property.writeMode == .command ? .writeWithoutResponse : .write))
      && (!property.isNotifying || contains(.notify) || contains(.indicate))
  }
}
