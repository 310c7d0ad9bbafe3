import BlueZ
import EventLoop
import Log

/// The data log of one micro:bit V2: a copy of it on request, and its new rows as they come.
@LoopActor final class DataLog {
  /// The time between two looks for new rows on a lasting link.
  private static let interval = Duration.seconds(10)
  /// The time after a look that has failed.
  private static let patience = Duration.seconds(60)
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
  private let mutex = AsyncMutex()
  private var transfer: LogTransfer?
  /// Whether the characteristic is subscribed to on this link.
  private var isSubscribed = false
  /// The job number of the last request.
  private var job: UInt8 = 0
  /// Counts the links.
  private var link = 0
  /// Passes on new rows, until it is cancelled at the end of the link; nil: none are to be.
  private var collecting: Task<Void, Never>?
  private unowned let device: Device

  init(of device: Device) { self.device = device }

  private var characteristic: Characteristic? { device.session.linkSession?.services.resolution?.log }

  func linkDown() {
    link += 1
    isSubscribed = false
    transfer?.end(.linkLost)
    collecting?.cancel()
    collecting = nil
  }

  // MARK: On request

  func beginCopying() {
    isCopying = true
    forgetting?.cancel()
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
    guard device.settings.log, characteristic != nil, collecting == nil else { return }
    let body: @LoopActor (Central) async -> Void = { [self, device] central in
      var clock = LogClock()
      var last: LogFailure?
      while !Task.isCancelled, device.isLive, device.settings.log, device.owner == .this {
        let failure = await collectOnce(on: central, &clock)
        // What is read next may have been written long before.
        if failure != nil { clock = LogClock() }
        if failure == .overtaken { continue }
        if failure == .linkLost { break }
        if let failure, failure != last {
          device.context.log.info("cannot read the data log: \(failure)", device.fields)
        }
        if device.settings.isOnDemand { break }
        last = failure
        try? await loop.sleep(for: failure == nil ? Self.interval : Self.patience)
      }
      // After a cancellation `collecting` may be the next one.
      if !Task.isCancelled { collecting = nil }
    }
    collecting = device.settings.isOnDemand ? device.task(body) : device.backgroundTask(body)
  }

  /// - Returns: why not all was read; nil: it was.
  private func collectOnce(on central: Central, _ clock: inout LogClock) async -> LogFailure? {
    var position = device.record.log
    var table = LogTable(position ?? LogPosition())
    var (times, isFirst, reported) = (clock, true, Moment.now)
    let start = table.position
    let failure = await read(from: start.offset, tail: start.tail, on: central) { [device] action in
      // Another gateway has the device, or has read further.
      guard device.owner == .this, device.record.log == position else {
        return self.transfer?.end(.overtaken) ?? ()
      }
      switch action {
      case .length:
        times.answered(at: .now, .now, isWhole: isFirst)
        isFirst = false
      case .cleared: table.clear()
      case .take(let bytes):
        for row in table.take(bytes) {
          let measured = times.measured(row)
          device.tellObservers { $0.logged(row, measured: measured) }
        }
      case .write, .end: return
      }
      position = table.position
      device.context.store.change(device.address) { $0.log = position }
      // Another gateway goes on from here, also if this one ends suddenly.
      if reported + Self.interval <= .now {
        reported = .now
        device.report(.handover)
      }
    }
    clock = times
    if device.record.log != start { device.report(.handover) }
    return failure
  }

  // MARK: Transfers

  private func read(
    from offset: Int, tail: [UInt8], on central: Central,
    _ handle: @escaping @LoopActor (LogMachine.Action) -> Void
  ) async -> LogFailure? {
    await mutex.lock()
    defer { mutex.unlock() }
    guard let characteristic, device.isLive, !Task.isCancelled else { return .linkLost }
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
    feed { $0.begin(at: .now) }
    do {
      return try await ended.value()
    } catch {
      return .linkLost
    }
  }

  func received(_ bytes: [UInt8]) { feed { $0.reply(bytes, at: .now) } }
  func end(_ failure: LogFailure) { feed { $0.end(failure) } }

  private func feed(_ input: (inout LogMachine) -> [LogMachine.Action]) {
    let actions = input(&machine)
    timer.set(machine.deadline) { [weak self] in self?.feed { $0.deadlineIsOver(at: .now) } }
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
        try await central.write(bytes, to: characteristic, withResponse: isAcknowledged)
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
