import BlueZ
import Configuration
import EventLoop
import GATT

/// Carries out the commands for one property of a device. Runs a ``WriteMachine``.
@LoopActor final class PropertyWriter {
  private var machine: any WriteMachine
  private var timer = DeadlineTimer()
  /// Admits one write at a time, with all its exchanges on the link: the pieces of a value, a late read-back, `identify`.
  let mutex = AsyncMutex()
  /// What was written before reading on this link.
  private var writtenBeforeReading: EncodedValue?
  private unowned let channel: Channel
  private unowned let device: Device

  private var property: Property { channel.property }
  private var context: DeviceContext { device.context }

  init(for channel: Channel, of device: Device) {
    self.channel = channel
    self.device = device
    let property = channel.property
    let desired = device.description.desired(property)
    switch property.kind {
    case .state:
      machine = StateWrites(desired, mode: property.writeMode, isReadable: property.isReadable) {
        [weak device] outcome in
        guard let waiting = desired.waiting, let sender = waiting.sender else { return }
        device?.answer(CommandResult(property, requested: waiting.value.value, outcome), to: sender)
      }
    case .event:
      machine = EventWrites(mode: property.writeMode)
    }
  }

  var hasWaiting: Bool { machine.hasWaiting }

  func linkUp() { feed { [writtenBeforeReading] in $0.linkUp(writtenBeforeReading) } }
  func linkDown() {
    writtenBeforeReading = nil
    feed { $0.linkDown() }
  }
  /// Every command fails.
  func abandon(reason: String) { feed { $0.abandon(reason: reason, defers: false) } }
  /// The gateway stops: a state's command that waits without a limit is kept for the next start.
  func stop() { feed { $0.abandon(reason: "the gateway is stopping", defers: true) } }

  func execute(_ command: EncodedCommand) {
    if let reason = channel.obstacle { return report(.failed(reason: reason), of: command) }
    var command = command
    if property.kind == .event, command.timeToLive == nil, command.waitsForLink,
      device.session.linkSession?.isConnectable == true
    {
      command.timeToLive = TimeToLive(seconds: LinkRequests.waitLimit, from: .now)
    }
    tellObservers(of: command, nil)
    feed { [command] in $0.command(command) }
  }

  // MARK: Desired state

  /// The value that is applied on every link; nil: none.
  var desired: EncodedValue? { machine.desired.effective }

  /// Sets the configured value; nil: none.
  func configure(_ value: Value?) { feed { $0.change(.configured(encoded(value))) } }

  /// Sets the override by a request; nil restores the configured value.
  func override(_ value: Value?) { feed { $0.change(.requested(encoded(value))) } }

  private func encoded(_ value: Value?) -> EncodedValue? { value.flatMap { try? property.encode($0) } }

  /// Another gateway serves the device now: see ``WriteMachine/handOver(_:lastChange:mayHaveCommands:)``.
  func handOver(_ value: EncodedValue??, lastChange: Moment, mayHaveCommands: Bool) {
    feed { $0.handOver(value, lastChange: lastChange, mayHaveCommands: mayHaveCommands) }
  }

  /// Takes over the override of another gateway, or of an earlier run; nil: none.
  func copy(_ value: EncodedValue?) { feed { $0.change(.copied(value)) } }

  // MARK: The machine

  /// Gives the machine an input, and performs the actions that it returns. A new desired value is put into the record first, then
  /// the command is answered, then observers publish the new `info`, which takes longer. The database gets it last
  /// (``DeviceStore``).
  private func feed(_ input: (inout any WriteMachine) -> [WriteAction]) {
    let before = machine.desired
    let actions = input(&machine)
    let desired = machine.desired
    if desired != before { context.store.change(device.address) { $0.setDesired(desired, of: property) } }
    let isRevised = desired.newest != before.newest
    if isRevised { device.revise() }
    for action in actions { perform(action) }
    if isRevised { device.report(.handover) }
    timer.set(machine.deadline) { [weak self] in self?.feed { $0.expire(at: .now) } }
  }

  private func perform(_ action: WriteAction) {
    switch action {
    case .write(let value, let operation):
      device.task { [self] central in
        await mutex.lock()
        defer { mutex.unlock() }
        // The link that it was for may have ended meanwhile.
        guard machine.awaits(operation) else { return }
        let result = await write(value, on: central)
        feed { $0.wrote(operation, result) }
      }
    case .read(let operation):
      device.task { [self] central in
        let result = await channel.readEncoded(on: central)
        if case .failure(.failed(let reason)) = result { channel.couldNotBeRead(because: reason) }
        feed { $0.read(operation, result) }
      }
    case .readBack(let value):
      channel.readBack(value.value)
    case .outcome(let command, let outcome):
      report(outcome, of: command)
      if outcome == .pending {
        device.session.linkSession?.commandWaits(until: command.timeToLive?.deadline)
      } else {
        device.session.linkSession?.chooseAgain()
      }
    case .applyFailed(let value, let failure):
      context.log.warning("\(property.name) \(value.value) could not be applied: \(failure)", device.fields)
    case .unresponsive:
      device.session.linkSession?.feed(.unresponsive)
    }
  }

  private func report(_ outcome: Outcome, of command: EncodedCommand) {
    command.reply(outcome)
    context.log.info("\(property.name) \(command.value.value): \(outcome.word)", device.fields)
    tellObservers(of: command, outcome)
  }

  private func tellObservers(of command: EncodedCommand, _ outcome: Outcome?) {
    if command.isNamedValue { return }
    device.tellObservers { $0.commandChanged(command.value.value, for: property.name, outcome) }
  }

  // MARK: The characteristic

  /// The time between two pieces of a value: a micro:bit buffers 60 bytes, and loses what its program does not read in time.
  private static let pieceInterval = Duration.milliseconds(30)

  /// Writes the desired value before the properties are read.
  func writeBeforeReading(on central: Central) async throws(CentralError) {
    guard property.isBeforeReading, let characteristic = channel.characteristic, let value = desired
    else { return }
    try await send(value, to: characteristic, on: central)
    writtenBeforeReading = value
  }

  private func send(
    _ value: EncodedValue, to characteristic: Characteristic, on central: Central
  ) async throws(CentralError) {
    for piece in property.pieces(of: value.bytes) {
      if piece.startIndex > 0 { try? await loop.sleep(for: Self.pieceInterval) }
      try await central.write(Array(piece), to: characteristic, withResponse: property.writeMode != .command)
    }
  }

  private func write(_ value: EncodedValue, on central: Central) async -> WriteResult {
    guard let characteristic = channel.characteristic else { return .notWritten(.linkLost) }
    do throws(CentralError) {
      switch property.writeMode {
      case .confirm:
        guard let settle = property.settle else {
          // In one piece: `chunk` excludes `confirm` (ProfileChecks).
          let result = try await central.writeAndReadBack(value.bytes, to: characteristic)
          return .thenRead(channel.readResult(of: result))
        }
        try await send(value, to: characteristic, on: central)
        try? await loop.sleep(for: settle)
        return .thenRead(await channel.readEncoded(on: central))
      case .request, .command:
        try await send(value, to: characteristic, on: central)
        return .notConfirmed
      }
    } catch {
      return .notWritten(WriteFailure(error))
    }
  }
}

extension Property {
  /// The parts in which `bytes` are written: at most ``chunk`` bytes each; none of a list without elements.
  func pieces(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    guard let chunk else { return [bytes[...]] }
    return stride(from: 0, to: bytes.count, by: chunk).map { bytes[$0..<min($0 + chunk, bytes.count)] }
  }
}

extension WriteFailure {
  init(_ error: CentralError) {
    switch error {
    case .disconnected, .gone, .unavailable: self = .linkLost
    // The peripheral changes its services: what comes back is used again.
    case .characteristicRemoved: self = .linkLost
    case .timedOut: self = .timeout
    case .transient, .busy, .unlikely, .refused, .notifyAcquired, .keyMissing, .cutShort:
      self = .failed(reason: "\(error)")
    }
  }
}
