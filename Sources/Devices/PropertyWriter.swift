import BlueZ
import Configuration
import EventLoop
import GATT
import Log

/// Carries out the commands for one property of a device, and keeps its desired value. Runs a ``WriteMachine``.
final class PropertyWriter: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private(set) var desired: DesiredValue
  private var machine: any WriteMachine
  private var timer = DeadlineTimer()
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
        desired: desired.effective.flatMap { try? property.encode($0) }, mode: property.writeMode,
        isReadable: property.isReadable)
    case .event:
      machine = EventWrites(mode: property.writeMode)
    }
  }

  func linkUp() { feed { $0.linkUp() } }
  func linkDown() { feed { $0.linkDown() } }
  func abandon(reason: String) { feed { $0.abandon(reason: reason) } }

  func execute(_ command: Command) {
    if let reason = channel.obstacle { return command.reply(.failed(reason: reason)) }
    var command = command
    if property.kind == .event, command.timeToLive == nil, command.waitsForLink, device.isConnectable {
      command.timeToLive = TimeToLive(seconds: Visits.waitLimit, from: .now)
    }
    feed { [command] in $0.command(command) }
  }

  // MARK: Desired state

  /// Sets the configured value; nil: none.
  func configure(_ value: Value?) {
    guard value != desired.configured else { return }
    let before = desired.effective
    desired.configured = value
    if desired.effective != before { applyDesired() }
  }

  /// Sets the override by a request; nil restores the configured value.
  func override(_ value: Value?) {
    desired.override = value.map { DesiredValue.Override(value: $0, source: .request) }
    desired.waiting = nil
    persistDesired()
    applyDesired(supersedesCommands: true)
  }

  private func applyDesired(supersedesCommands: Bool = false) {
    let value = desired.effective.flatMap { try? property.encode($0) }
    feed { $0.setDesired(value, supersedesCommands: supersedesCommands) }
    device.handle(.desired)
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

  /// A command has set the desired value.
  private func setOverride(_ value: Value) {
    desired.override = DesiredValue.Override(value: value, source: .command)
    desired.waiting = nil
    persistDesired()
  }

  private func persistDesired() {
    let stored = desired.persistent.map { value in
      DeviceRecord.Desired(value: property.codec.json(value.value), source: value.source)
    }
    if stored != context.store.records[device.address]?.desired[property.name] {
      context.store.change(device.address) { $0.desired[property.name] = stored }
      device.revise()
    }
    device.handle(.desired)
  }

  // MARK: The machine

  /// Gives the machine an input, and performs the actions that it returns.
  private func feed(_ input: (inout any WriteMachine) -> [WriteAction]) {
    for action in input(&machine) { perform(action) }
    timer.set(machine.deadline, on: context.loop) { [weak self] in self?.feed { $0.expire(at: .now) } }
  }

  private func perform(_ action: WriteAction) {
    switch action {
    case .write(let value, let operation):
      device.task { [self] central in
        let result = await write(value, on: central)
        feed { $0.wrote(operation, result) }
      }
    case .read(let operation):
      device.task { [self] central in
        let result = await read(on: central)
        feed { $0.read(operation, result) }
      }
    case .valueRead(let value):
      channel.wasReadBack(value.value)
    case .answer(let command, let outcome):
      context.log.info("\(property.name) \(command.value.value): \(outcome.word)", device.fields)
      command.reply(outcome)
      if property.kind == .state { updateWaiting(command, outcome) }
      if outcome == .pending { device.handle(.commandWaits(until: command.timeToLive?.deadline)) }
    case .storeDesired(let value):
      setOverride(value.value)
    case .applyFailed(let value, let failure):
      context.log.warning("\(property.name) \(value.value) could not be applied: \(failure)", device.fields)
    case .unresponsive:
      device.handle(.unresponsive)
    }
  }

  /// Updates the value of a waiting command, which is kept over a restart if it has no time to live.
  private func updateWaiting(_ command: Command, _ outcome: Outcome) {
    switch outcome {
    case .pending: desired.waiting = command.timeToLive == nil ? command.value.value : nil
    // Unfinished when the gateway stops: applied after the next start.
    case .failed where context.isStopping && command.waitsForLink && command.timeToLive == nil:
      desired.waiting = command.value.value
    case .failed, .timeout: desired.waiting = nil
    case .applied, .adjusted, .accepted, .sent, .read, .rejected, .superseded: return
    }
    persistDesired()
  }

  // MARK: The characteristic

  /// Between two pieces of a value: a micro:bit buffers 60 bytes, and loses what its program does not read in time.
  private static let pieceInterval = Duration.milliseconds(30)

  private func write(_ value: EncodedValue, on central: isolated Central) async -> Written {
    guard let characteristic = channel.characteristic else { return .notWritten(.linkLost) }
    do throws(CentralError) {
      switch property.writeMode {
      case .confirm:
        let readBack: Result<EncodedValue, WriteFailure>
        if let settle = property.settle {
          try await central.send(value.bytes, to: characteristic, withResponse: true)
          try? await context.loop.sleep(for: settle)
          readBack = await read(on: central)
        } else {
          readBack = decode(try await central.write(value.bytes, to: characteristic))
        }
        switch readBack {
        case .success(let held): return .holds(held)
        case .failure(let failure): return .notReadBack(failure)
        }
      case .request, .command:
        for piece in property.pieces(of: value.bytes) {
          if piece.startIndex > 0 { try? await context.loop.sleep(for: Self.pieceInterval) }
          try await central.send(
            Array(piece), to: characteristic, withResponse: property.writeMode == .request)
        }
        return .notConfirmed
      }
    } catch {
      return .notWritten(WriteFailure(error))
    }
  }

  private func read(on central: isolated Central) async -> Result<EncodedValue, WriteFailure> {
    guard let characteristic = channel.characteristic else { return .failure(.linkLost) }
    do throws(CentralError) {
      return decode(.success(try await central.read(characteristic)))
    } catch {
      return .failure(WriteFailure(error))
    }
  }

  private func decode(_ bytes: Result<[UInt8], CentralError>) -> Result<EncodedValue, WriteFailure> {
    switch bytes {
    case .failure(let error): return .failure(WriteFailure(error))
    case .success(let bytes):
      do throws(CodecError) {
        return .success(EncodedValue(try property.codec.decode(bytes), bytes))
      } catch {
        return .failure(.failed(reason: "\(error)"))
      }
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
  fileprivate init(_ error: CentralError) {
    switch error {
    case .disconnected, .gone, .unavailable: self = .linkLost
    case .timedOut: self = .timeout
    case .transient, .busy, .unlikely, .refused, .notifyAcquired, .keyMissing:
      self = .failed(reason: "\(error)")
    }
  }
}
