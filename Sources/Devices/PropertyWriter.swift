import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// Carries out the commands for one property of a device, and keeps its desired value. Runs a ``WriteMachine``.
@LoopActor final class PropertyWriter {
  private(set) var desired: DesiredValue
  private var machine: any WriteMachine
  private var timer = DeadlineTimer()
  private var lastTurn: Waiter<Void>?
  /// What was written before reading on this link.
  private var written: EncodedValue?
  private unowned let channel: Channel
  private unowned let device: Device

  private var property: Property { channel.property }
  private var context: DeviceContext { device.context }

  init(for channel: Channel, of device: Device, desired: DesiredValue) {
    self.channel = channel
    self.device = device
    self.desired = desired
    let property = channel.property
    switch property.kind {
    case .state:
      machine = StateWrites(
        toApply: desired.effective.flatMap { try? property.encode($0) },
        waiting: Self.restored(desired.waiting, property, device), mode: property.writeMode,
        isReadable: property.isReadable)
    case .event:
      machine = EventWrites(mode: property.writeMode)
    }
  }

  /// The command of an earlier run, of which the front ends know.
  private static func restored(
    _ waiting: DesiredValue.Waiting?, _ property: Property, _ device: Device
  ) -> EncodedCommand? {
    guard let waiting, let value = try? property.encode(waiting.value) else { return nil }
    return EncodedCommand(value, sender: waiting.sender) { [weak device] outcome in
      guard let device, let sender = waiting.sender else { return }
      let result = CommandResult(property, requested: waiting.value, outcome)
      for (observer, _) in device.observers { observer.completed(result, for: sender) }
    }
  }

  func linkUp() { feed { [written] in $0.linkUp(written) } }
  func linkDown() {
    written = nil
    feed { $0.linkDown() }
  }
  /// Every command fails.
  func abandon(reason: String) { feed { $0.abandon(reason: reason, defers: false) } }
  /// The gateway stops: a state's command that waits without a limit is kept for the next start.
  func stop() { feed { $0.abandon(reason: "the gateway is stopping", defers: true) } }

  func execute(_ command: EncodedCommand) {
    if let reason = channel.obstacle { return command.reply(.failed(reason: reason)) }
    var command = command
    if property.kind == .event, command.timeToLive == nil, command.waitsForLink, device.isConnectable {
      command.timeToLive = TimeToLive(seconds: Visits.waitLimit, from: .now)
    }
    report(command.value.value, nil)
    feed { [command] in $0.command(command) }
  }

  // MARK: Desired state

  /// The desired value as bytes.
  var encodedDesired: EncodedValue? { desired.effective.flatMap { try? property.encode($0) } }

  /// Sets the configured value; nil: none.
  func configure(_ value: Value?) {
    guard value != desired.configured else { return }
    let before = desired.effective
    desired.configured = value
    if desired.effective != before { applyDesired() }
    device.handle(.desired)
  }

  /// Sets the override by a request; nil restores the configured value.
  func override(_ value: Value?) {
    desired.override = value.map { DesiredValue.Override(value: $0, source: .request) }
    desired.waiting = nil
    persistDesired()
    applyDesired(supersedesCommands: true)
  }

  private func applyDesired(supersedesCommands: Bool = false) {
    let value = encodedDesired
    feed { $0.apply(value, supersedesCommands: supersedesCommands) }
  }

  /// Another gateway serves the device now: commands here are ended, or left to it.
  ///
  /// - Parameters:
  ///   - published: the desired value there; nil: not known.
  ///   - mayHaveCommands: whether the other gateway may have received the waiting commands too.
  func handOver(_ published: PublishedDesired?, mayHaveCommands: Bool) {
    feed { $0.handOver(desired: published?.override, mayHaveCommands: mayHaveCommands) }
    desired.waiting = nil
    persistDesired()
  }

  /// Copies the override at another gateway, or in an earlier run.
  func copy(_ published: PublishedDesired) {
    let value = published.override?.value
    guard value != desired.override?.value else { return }
    desired.override = value.map { DesiredValue.Override(value: $0, source: .command) }
    applyDesired()
    persistDesired()
  }

  private func persistDesired() {
    let override = desired.override.map {
      DeviceRecord.Desired(value: property.codec.json($0.value), source: $0.source)
    }
    let waiting = desired.waiting.map {
      DeviceRecord.Waiting(value: property.codec.json($0.value), sender: $0.sender)
    }
    let (name, store) = (property.name, context.store)
    let before = store.records[device.address]?.newest(name)
    store.change(device.address) { ($0.desired[name], $0.waiting[name]) = (override, waiting) }
    if store.records[device.address]?.newest(name) != before { device.revise() }
    device.handle(.desired)
  }

  // MARK: The machine

  /// Gives the machine an input, and performs the actions that it returns.
  private func feed(_ input: (inout any WriteMachine) -> [WriteAction]) {
    for action in input(&machine) { perform(action) }
    timer.set(machine.deadline) { [weak self] in self?.feed { $0.expire(at: .now) } }
  }

  private func perform(_ action: WriteAction) {
    switch action {
    case .write(let value, let operation):
      device.task { [self] central in
        let turn = await takeTurn()
        // The link that it was for may have ended meanwhile.
        if machine.awaits(operation) {
          let result = await write(value, on: central)
          feed { $0.wrote(operation, result) }
        }
        turn.resume(.success(()))
      }
    case .read(let operation):
      device.task { [self] central in
        let result = await channel.readEncoded(on: central)
        feed { $0.read(operation, result) }
      }
    case .readBack(let value):
      channel.readBack(value.value)
    case .completed(let command, let outcome, let isDesired):
      context.log.info("\(property.name) \(command.value.value): \(outcome.word)", device.fields)
      if property.kind == .state { updateDesired(command, outcome, isDesired) }
      command.reply(outcome)
      report(command.value.value, outcome)
      if outcome == .pending { device.handle(.commandWaits(until: command.timeToLive?.deadline)) }
    case .applyFailed(let value, let failure):
      context.log.warning("\(property.name) \(value.value) could not be applied: \(failure)", device.fields)
    case .unresponsive:
      device.handle(.unresponsive)
    }
  }

  private func report(_ value: Value, _ outcome: Outcome?) {
    for (observer, _) in device.observers { observer.wrote(value, to: channel.index, outcome) }
  }

  private func updateDesired(_ command: EncodedCommand, _ outcome: Outcome, _ isDesired: Bool) {
    let value = command.value.value
    switch outcome {
    case .pending, .deferred:
      desired.waiting =
        command.outlivesRun ? DesiredValue.Waiting(value: value, sender: command.sender) : nil
    case .failed, .timeout, .superseded: desired.waiting = nil
    case .applied, .adjusted, .accepted, .sent:
      guard isDesired else { return }
      desired.override = DesiredValue.Override(value: value, source: .command)
      desired.waiting = nil
    case .read, .rejected: return
    }
    persistDesired()
  }

  // MARK: Turns

  /// Waits until nothing else is written to the characteristic.
  /// - Returns: to be resumed when the next one may write.
  func takeTurn() async -> Waiter<Void> {
    let (before, turn) = (lastTurn, Waiter<Void>())
    lastTurn = turn
    _ = try? await before?.value()
    return turn
  }

  // MARK: The characteristic

  /// The time between two pieces of a value: a micro:bit buffers 60 bytes, and loses what its program does not read in time.
  private static let pieceInterval = Duration.milliseconds(30)

  /// Writes the desired value before the properties are read.
  func writeBeforeReading(on central: Central) async throws(CentralError) {
    guard property.isBeforeReading, let characteristic = channel.characteristic, let value = encodedDesired
    else { return }
    try await central.send(value.bytes, to: characteristic, withResponse: property.writeMode != .command)
    written = value
  }

  private func write(_ value: EncodedValue, on central: Central) async -> Written {
    guard let characteristic = channel.characteristic else { return .notWritten(.linkLost) }
    do throws(CentralError) {
      switch property.writeMode {
      case .confirm:
        let readBack: Result<EncodedValue, WriteFailure>
        if let settle = property.settle {
          try await central.send(value.bytes, to: characteristic, withResponse: true)
          try? await loop.sleep(for: settle)
          readBack = await channel.readEncoded(on: central)
        } else {
          readBack = channel.decoded(try await central.write(value.bytes, to: characteristic))
        }
        switch readBack {
        case .success(let held): return .holds(held)
        case .failure(let failure): return .notReadBack(failure)
        }
      case .request, .command:
        for piece in property.pieces(of: value.bytes) {
          if piece.startIndex > 0 { try? await loop.sleep(for: Self.pieceInterval) }
          try await central.send(
            Array(piece), to: characteristic, withResponse: property.writeMode == .request)
        }
        return .notConfirmed
      }
    } catch {
      return .notWritten(WriteFailure(error))
    }
  }
}

extension Property {
  /// The parts in which `bytes` are written: at most ``chunk`` bytes each.
  fileprivate func pieces(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    guard let chunk else { return [bytes[...]] }
    return stride(from: 0, to: bytes.count, by: chunk).map { bytes[$0..<min($0 + chunk, bytes.count)] }
  }
}

extension WriteFailure {
  init(_ error: CentralError) {
    switch error {
    case .disconnected, .gone, .unavailable: self = .linkLost
    case .timedOut: self = .timeout
    case .transient, .busy, .unlikely, .refused, .notifyAcquired, .keyMissing:
      self = .failed(reason: "\(error)")
    }
  }
}
