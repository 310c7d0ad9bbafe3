import EventLoop
import GATT

/// The writes of a state property, and its desired value. A command is written and, in the mode `confirm`, read back; a
/// newer command replaces a waiting one. The desired value is applied on every link.
struct StateWrites: WriteMachine {
  /// What a write is for.
  private enum Purpose {
    case command(TrackedCommand)
    /// Applies the desired value, on a new link or after it has changed.
    case apply(EncodedValue)

    var value: EncodedValue {
      switch self {
      case .command(let tracked): tracked.command.value
      case .apply(let value): value
      }
    }
  }

  /// A command that waits or is in flight.
  private struct TrackedCommand {
    var command: EncodedCommand
    /// A request has set another desired value while this command was in flight.
    var isSuperseded = false
    /// Another gateway may have received the command too.
    var isShared = false
    /// The command waits since an earlier run: other gateways know only its value.
    var isRestored = false
    /// How many links have ended while it was in flight: the device may have taken its value.
    var lostLinks = 0
  }

  private enum State {
    /// No link; a command waits for the next one → reading, or writing or idle if the property cannot be read.
    case absent
    /// A link, and nothing to do → writing, absent.
    case idle
    /// A new link: the value is being read → writing, idle, absent.
    case reading
    /// A value is being written, and read back in the mode `confirm` → writing, idle, absent.
    case writing(Purpose)
  }

  /// A command fails after so many writes during which the link has ended: there are devices that restart at each write.
  private static let mostWrites = 5

  private var state = State.absent
  /// The command that waits for the link, or behind the one in flight. ``DesiredValue/waiting`` is what the next run continues: a
  /// deferred command is there alone, one with a time to live here alone.
  private var waiting: TrackedCommand?
  /// The last operation that was begun.
  private var operation: WriteOperation = 0
  /// Whether ``DesiredValue/effective`` is still to be applied on this link.
  private var mustApply = false
  private(set) var desired: DesiredValue
  /// The outcome of a write that was not read back.
  private let unconfirmed: Outcome
  private let isReadable: Bool

  /// - Parameters:
  ///   - desired: as it was when the last run ended, with the command that waited then.
  ///   - isReadable: whether the value can be read.
  ///   - reply: gets the outcome of the command of the last run.
  init(
    _ desired: DesiredValue = DesiredValue(), mode: Property.WriteMode = .confirm, isReadable: Bool = true,
    reply: @escaping @LoopActor (Outcome) -> Void = { _ in }
  ) {
    self.desired = desired
    waiting = desired.waiting.map { waiting in
      TrackedCommand(
        command: EncodedCommand(
          value: waiting.value, sender: waiting.sender, isPendingReported: true, reply: reply),
        isRestored: true)
    }
    self.isReadable = isReadable
    unconfirmed = mode.unconfirmed
  }

  var deadline: Moment? { waiting?.command.timeToLive?.deadline }
  var hasWaiting: Bool { waiting != nil }

  // MARK: Inputs

  mutating func linkUp(_ written: EncodedValue? = nil) -> [WriteAction] {
    guard case .absent = state else { return [] }
    mustApply = desired.effective != nil && desired.effective != written
    guard isReadable else { return startNext() }
    state = .reading
    operation += 1
    return [.read(operation)]
  }

  mutating func linkDown() -> [WriteAction] {
    let before = state
    state = .absent
    switch before {
    case .absent: return []
    case .idle, .reading, .writing(.apply): return waitForLink()
    case .writing(.command(let tracked)):
      if isSuperseded(tracked) { return advance(tracked.command, .superseded) + waitForLink() }
      guard tracked.command.waitsForLink else {
        return advance(tracked.command, .lostInWrite) + waitForLink()
      }
      guard tracked.lostLinks + 1 < Self.mostWrites else {
        let outcome = Outcome.failed(reason: "the link has ended at each of \(Self.mostWrites) writes")
        return advance(tracked.command, outcome)
      }
      waiting = tracked
      waiting?.lostLinks += 1
      return waitForLink()
    }
  }

  mutating func command(_ command: EncodedCommand) -> [WriteAction] {
    var actions: [WriteAction] = []
    if let waiting { actions = advance(waiting.command, .superseded) }
    waiting = TrackedCommand(command: command)
    switch state {
    case .absent: return actions + waitForLink()
    case .idle: return actions + startNext()
    case .reading, .writing: return actions
    }
  }

  /// Only a waiting command expires. One in flight does not, as the device may have taken its value already.
  mutating func expire(at now: Moment) -> [WriteAction] {
    guard let tracked = waiting, let deadline, deadline <= now else { return [] }
    waiting = nil
    return advance(tracked.command, tracked.lostLinks > 0 ? .lostInWrite : tracked.command.expired)
  }

  mutating func change(_ change: DesiredChange) -> [WriteAction] {
    let before = desired.effective
    var actions: [WriteAction] = []
    switch change {
    case .configured(let value):
      desired.configured = value
      if desired.effective == before { return [] }
    case .requested(let value):
      desired.override = value.map { DesiredValue.Override(value: $0, source: .request) }
      desired.waiting = nil
      if let waiting { actions = [.outcome(waiting.command, .superseded)] }
      waiting = nil
      if case .writing(.command(var tracked)) = state {
        tracked.isSuperseded = true
        state = .writing(.command(tracked))
      }
    case .copied(let value):
      guard value != desired.override?.value else { return [] }
      desired.override = value.map { DesiredValue.Override(value: $0, source: .command) }
    }
    // Even if the last read returned this value: an unanswered write may have changed it since.
    mustApply = desired.effective != nil
    switch state {
    case .absent, .reading, .writing: return actions
    case .idle: return actions + startNext()
    }
  }

  /// A waiting command that the other gateway received too (`isShared`) is left to that one if its value is desired
  /// there. If it is not, a command with a time to live keeps waiting, as its value is published only when it has been
  /// applied, until another value is set there; one without fails. All other commands fail.
  mutating func handOver(
    _ value: EncodedValue??, lastChange: Moment, mayHaveCommands: Bool
  ) -> [WriteAction] {
    var actions: [WriteAction] = []
    func fail(_ command: EncodedCommand) {
      actions.append(.outcome(command, .takenOver(isDesiredThere: command.value == value)))
    }
    if case .writing(.command(let tracked)) = state { fail(tracked.command) }
    state = .absent
    if mayHaveCommands, waiting?.isRestored == false { waiting?.isShared = true }
    if let tracked = waiting {
      let command = tracked.command
      if !tracked.isShared || command.value != value && command.timeToLive == nil {
        waiting = nil
        fail(command)
      } else if command.value == value {
        waiting = nil
      } else if let value, value != desired.override?.value,
        let arrival = command.timeToLive?.arrival, arrival < lastChange
      {
        // Set there after the command came: carried out when the device is back, the command would undo that.
        waiting = nil
        actions.append(.outcome(command, .superseded))
      }
    }
    desired.waiting = nil
    return actions
  }

  func awaits(_ operation: WriteOperation) -> Bool {
    if case .writing = state { operation == self.operation } else { false }
  }

  mutating func wrote(_ operation: WriteOperation, _ result: WriteResult) -> [WriteAction] {
    guard operation == self.operation, case .writing(let purpose) = state else { return [] }
    switch result {
    case .thenRead(.success(let value)):
      deviceHolds(value)
      let isApplied = value == purpose.value && !value.value.isRounded(from: purpose.value.value)
      let outcome: Outcome = isApplied ? .applied(actual: value.value) : .adjusted(actual: value.value)
      return succeed(purpose, outcome) + [.readBack(value)] + startNext()
    case .notConfirmed:
      return succeed(purpose, unconfirmed) + startNext()
    case .notWritten(let failure):
      return fail(purpose, failure, while: "the write")
    case .thenRead(.failure(let failure)):
      // The command fails, but the device may hold its value: the desired value is written again.
      if case .command = purpose { mustApply = desired.effective != nil }
      return fail(purpose, failure, while: "the read-back")
    }
  }

  mutating func read(_ operation: WriteOperation, _ result: ReadResult) -> [WriteAction] {
    guard operation == self.operation, case .reading = state else { return [] }
    switch result {
    case .success(let value):
      deviceHolds(value)
      if let tracked = waiting, tracked.lostLinks > 0, value == tracked.command.value {
        waiting = nil
        return succeed(.command(tracked), .applied(actual: value.value)) + [.readBack(value)] + startNext()
      }
      return [.readBack(value)] + startNext()
    case .failure(.linkLost):
      return linkDown()
    case .failure(.timeout):
      return abandonLink()
    case .failure:
      // The value is unknown: the desired value is written in any case.
      return startNext()
    }
  }

  mutating func abandon(reason: String, defers: Bool) -> [WriteAction] {
    func outcome(_ tracked: TrackedCommand, isInFlight: Bool) -> Outcome {
      if defers, tracked.command.outlivesRun { return .deferred }
      return isInFlight || tracked.lostLinks > 0 ? .abandonedInWrite(reason) : .failed(reason: reason)
    }
    var actions: [WriteAction] = []
    if case .writing(.command(let tracked)) = state {
      let end = isSuperseded(tracked) ? .superseded : outcome(tracked, isInFlight: true)
      actions = advance(tracked.command, end)
    }
    if let waiting { actions += advance(waiting.command, outcome(waiting, isInFlight: false)) }
    waiting = nil
    state = .absent
    return actions
  }

  // MARK: Steps

  /// Starts the next write, if any. Called when no operation is in flight.
  private mutating func startNext() -> [WriteAction] {
    let purpose: Purpose
    if let tracked = waiting {
      waiting = nil
      purpose = .command(tracked)
    } else if mustApply, let value = desired.effective {
      // The value is applied once per link, as a device that rounds it would be written to for ever.
      mustApply = false
      purpose = .apply(value)
    } else {
      state = .idle
      return []
    }
    state = .writing(purpose)
    operation += 1
    return [.write(purpose.value, operation)]
  }

  /// The command is pending, or has ended, and the desired value follows from that.
  /// - Parameter isDesired: whether its value is the desired one now.
  private mutating func advance(
    _ command: EncodedCommand, _ outcome: Outcome, isDesired: Bool = false
  ) -> [WriteAction] {
    switch outcome {
    case .pending, .deferred: desired.waiting = Self.stored(command)
    case .failed, .timeout, .superseded: desired.waiting = nil
    case .applied, .adjusted, .accepted, .sent, .read, .rejected:
      if isDesired {
        desired.override = DesiredValue.Override(value: command.value, source: .command)
        desired.waiting = nil
      }
    }
    return [.outcome(command, outcome)]
  }

  /// What is stored of a command that waits.
  private static func stored(_ command: EncodedCommand) -> DesiredValue.Waiting? {
    command.outlivesRun ? DesiredValue.Waiting(value: command.value, sender: command.sender) : nil
  }

  /// The value was written: answers its command, whose value becomes the desired one, also if the device holds an adjusted one.
  private mutating func succeed(_ purpose: Purpose, _ outcome: Outcome) -> [WriteAction] {
    guard case .command(let tracked) = purpose else { return [] }
    // A value that the device has adjusted is not written again, as it would be adjusted again.
    if !tracked.isSuperseded { mustApply = false }
    return advance(tracked.command, outcome, isDesired: !tracked.isSuperseded)
  }

  /// The device holds `value`: if that is the desired value, it need not be written.
  private mutating func deviceHolds(_ value: EncodedValue) {
    if value == desired.effective { mustApply = false }
  }

  /// Whether a newer command or request replaces the value of the command in flight.
  private func isSuperseded(_ tracked: TrackedCommand) -> Bool { waiting != nil || tracked.isSuperseded }

  private mutating func fail(
    _ purpose: Purpose, _ failure: WriteFailure, while step: String
  ) -> [WriteAction] {
    let outcome: Outcome
    switch failure {
    case .linkLost: return linkDown()
    case .timeout: outcome = .timeout(reason: "\(step) was not answered in time")
    case .failed(let reason): outcome = .failed(reason: "\(step) failed: \(reason)")
    }
    var actions: [WriteAction] = []
    switch purpose {
    // The failure is not reported if the value is no longer the desired one.
    case .apply(let value): if value == desired.effective { actions = [.applyFailed(value, failure)] }
    case .command(let tracked): actions = advance(tracked.command, outcome)
    }
    return actions + (failure == .timeout ? abandonLink() : startNext())
  }

  private mutating func abandonLink() -> [WriteAction] {
    state = .absent
    return [.unresponsive] + waitForLink()
  }

  /// Reports once that the waiting command is pending.
  private mutating func waitForLink() -> [WriteAction] {
    if let command = waiting?.command, !command.waitsForLink {
      waiting = nil
      return advance(command, .failed(reason: "the link was lost"))
    }
    guard let tracked = waiting else { return [] }
    guard !tracked.command.isPendingReported else {
      // The end of a later command, which came while this one was in flight, may have removed its value.
      desired.waiting = Self.stored(tracked.command)
      return []
    }
    waiting?.command.isPendingReported = true
    return advance(tracked.command, .pending)
  }
}
