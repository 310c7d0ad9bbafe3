import BlueZ
import EventLoop
import Log

/// The data log of one micro:bit V2: a copy of it on request, and its new rows as they come.
@LoopActor final class DataLog {
  /// The time between two looks for new rows on a lasting link.
  private static let interval = Duration.seconds(10)
  /// How long the copy is kept after a request.
  private static let keeping = Duration.seconds(600)

  /// The bytes that requests have read; empty if there was no request lately.
  private(set) var copy: [UInt8] = []
  /// The length of the log as last answered.
  private(set) var length = 0
  /// Whether a request is reading the log.
  private(set) var isCopying = false
  private var forgetting: LoopTimer?
  /// Admits one transfer at a time: the service has no queue.
  private let turn = AsyncMutex()
  private var transfer: LogTransfer?
  /// Whether the characteristic is subscribed to on this link.
  private var isSubscribed = false
  /// That of the last request.
  private var job: UInt8 = 0
  /// Counts the links.
  private var link = 0
  private var isCollecting = false
  /// Ends the time between two looks for new rows.
  private var pausing: Waiter<Void>?
  private unowned let device: Device

  init(of device: Device) { self.device = device }

  private var characteristic: Characteristic? { device.session.log }

  func linkDown() {
    link += 1
    isSubscribed = false
    transfer?.end(.linkLost)
    pausing?.resume(.success(()))
  }

  // MARK: On request

  /// - Returns: false if a request is reading the log already.
  func beginCopying() -> Bool {
    guard !isCopying else { return false }
    isCopying = true
    forgetting?.cancel()
    return true
  }

  func endCopying() {
    isCopying = false
    forgetting = loop.timer(after: Self.keeping) { [weak self] in self?.copy = [] }
  }

  /// Reads what the copy lacks. To be called while there is a link.
  /// - Returns: why the copy is not complete; nil: it is.
  func completeCopy(on central: Central) async -> LogFailure? {
    await read(from: copy.count, tail: copy.suffix(LogMachine.tailSize), on: central) { action in
      switch action {
      case .length(let length): self.length = length
      case .cleared: self.copy = []
      case .take(let bytes): self.copy += bytes
      case .write, .end: break
      }
    }
  }

  // MARK: New rows

  /// Passes on the rows that no run of the gateway has passed on, if the device's settings say so: once on a link that is
  /// ended soon, otherwise from time to time.
  func collect() {
    guard device.settings.log, characteristic != nil, !isCollecting else { return }
    isCollecting = true
    let link = link
    let body: @LoopActor (Central) async -> Void = { [self, device] central in
      var clock = LogClock()
      var isWhole = false
      while await collectOnce(on: central, &clock, isWhole, while: link) {
        isWhole = true
        if device.settings.isOnDemand { break }
        await pause()
      }
      isCollecting = false
      // There is another link already.
      if self.link != link, device.isLive { collect() }
    }
    if device.settings.isOnDemand { device.task(body) } else { device.linkTask(body) }
  }

  /// Waits for the next look, or for the end of the link.
  private func pause() async {
    let end = Waiter<Void>()
    pausing = end
    let timer = loop.timer(after: Self.interval) { end.resume(.success(())) }
    try? await end.value()
    timer.cancel()
  }

  /// - Returns: whether all was read, and more may follow on this link.
  private func collectOnce(
    on central: Central, _ clock: inout LogClock, _ isWhole: Bool, while link: Int
  ) async -> Bool {
    guard self.link == link, device.isLive, device.settings.log, device.owner == .this else { return false }
    let position = device.record.log ?? LogPosition()
    var table = LogTable(position)
    var times = clock
    let failure = await read(from: position.offset, tail: position.tail, on: central) { [device] action in
      switch action {
      case .length: times.answered(at: .now, isWhole: isWhole)
      case .cleared: table.clear()
      case .take(let bytes):
        guard device.owner == .this else {
          return self.transfer?.end(.unusable("another gateway has the device")) ?? ()
        }
        for row in table.take(bytes) { device.pass(row, measured: times.measured(row)) }
      case .write, .end: return
      }
      device.context.store.change(device.address) { $0.log = table.position }
    }
    clock = times
    // Another gateway goes on from here.
    if device.record.log != position { device.report(.handover) }
    if let failure, failure != .linkLost {
      device.context.log.info("cannot read the data log: \(failure)", device.fields)
    }
    return failure == nil
  }

  // MARK: Transfers

  private func read(
    from offset: Int, tail: [UInt8], on central: Central,
    _ handle: @escaping @LoopActor (LogMachine.Action) -> Void
  ) async -> LogFailure? {
    await turn.lock()
    defer { turn.unlock() }
    guard let characteristic, device.isLive else { return .linkLost }
    if !isSubscribed {
      let link = link
      do throws(CentralError) {
        try await central.subscribe(to: characteristic) { [weak self] bytes in self?.transfer?.received(bytes)
        }
      } catch {
        return self.link == link ? .unusable("\(error)") : .linkLost
      }
      guard self.link == link else { return .linkLost }
      isSubscribed = true
    }
    // Other notifications of a micro:bit are lost while the replies fill its queue.
    let hasOthers = device.channels.contains { $0.characteristic != nil && $0.property.isNotifying }
    let transfer = LogTransfer(
      LogMachine(offset: offset, tail: tail, job: job, hasPauses: hasOthers), to: characteristic, on: central,
      handle)
    self.transfer = transfer
    defer {
      job = transfer.machine.job
      self.transfer = nil
    }
    return await transfer.run()
  }
}

/// Runs a ``LogMachine`` on a link.
@LoopActor private final class LogTransfer {
  private(set) var machine: LogMachine
  private var timer = DeadlineTimer()
  private let characteristic: Characteristic
  private let central: Central
  private let handle: @LoopActor (LogMachine.Action) -> Void
  private let ended = Waiter<LogFailure?>()

  init(
    _ machine: LogMachine, to characteristic: Characteristic, on central: Central,
    _ handle: @escaping @LoopActor (LogMachine.Action) -> Void
  ) {
    (self.machine, self.characteristic, self.central, self.handle) = (
      machine, characteristic, central, handle
    )
  }

  func run() async -> LogFailure? {
    perform(machine.begin(at: .now))
    do {
      return try await ended.value()
    } catch {
      return .linkLost
    }
  }

  func received(_ bytes: [UInt8]) { perform(machine.reply(bytes, at: .now)) }
  func end(_ failure: LogFailure) { perform(machine.end(failure)) }

  private func perform(_ actions: [LogMachine.Action]) {
    timer.set(machine.deadline) { [weak self] in
      guard let self else { return }
      perform(machine.deadlineIsOver(at: .now))
    }
    for action in actions {
      handle(action)
      switch action {
      case .write(let bytes): write(bytes)
      case .end(let failure): ended.resume(.success(failure))
      case .length, .cleared, .take: break
      }
    }
  }

  private func write(_ bytes: [UInt8]) {
    let isAcknowledged = !characteristic.flags.contains(.writeWithoutResponse)
    loop.task { [self] in
      do throws(CentralError) {
        try await central.send(bytes, to: characteristic, withResponse: isAcknowledged)
      } catch .disconnected {
        end(.linkLost)
      } catch .timedOut {
        // The machine repeats it.
      } catch {
        end(.unusable("\(error)"))
      }
    }
  }
}
