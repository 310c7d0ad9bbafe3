import EventLoop
import GATT

/// The writes of a state: each command is written and, in the mode `confirm`, read back; the newest wins. The desired value
/// is applied on every link.
///
/// Only where another gateway takes the device over, a command that waits is left to that one.
struct StateWrites<Tag: Sendable>: WriteMachine {
  typealias Command = WriteCommand<Tag>
  typealias Action = WriteAction<Tag>

  /// What a write is for.
  private enum Purpose {
    case command(Request)
    /// To apply the desired value on a new link.
    case restore(EncodedValue)

    var value: EncodedValue {
      switch self {
      case .command(let request): request.command.value
      case .restore(let value): value
      }
    }
  }

  /// A command on its way.
  private struct Request {
    let command: Command
    var isPendingReported = false
    /// A later request names another desired value.
    var isSuperseded = false
  }

  private enum State {
    /// No link. A waiting command stays until there is one → reading.
    case absent
    /// Nothing to do → writing, absent.
    case idle
    /// The link is new: the device is asked what it holds → writing, idle, absent.
    case reading
    /// A value is being written, and read back → writing, idle, absent.
    case writing(Purpose)
  }

  private var state = State.absent
  private var waiting: Request?
  private var operation = WriteOperation()
  /// Whether the desired value is still to be applied on this link.
  private var isRestorePending = false

  /// The value that is applied on every link: the last one that a command set or a request named, before that the
  /// configured one.
  private(set) var desired: EncodedValue?
  /// A command that is written without being read back has this outcome; nil: its outcome is what was read back.
  private let unconfirmed: Outcome?
  private let isReadable: Bool

  /// - Parameters:
  ///   - desired: the configured value; nil leaves the device as it is found.
  ///   - isReadable: whether the device can be asked what it holds.
  init(desired: EncodedValue? = nil, mode: Property.WriteMode = .confirm, isReadable: Bool = true) {
    self.desired = desired
    self.isReadable = isReadable
    unconfirmed =
      switch mode {
      case .confirm: nil
      case .request: .accepted
      case .command: .sent
      }
  }

  var deadline: Moment? { waiting?.command.timeToLive?.deadline }

  // MARK: Inputs

  mutating func linkUp() -> [Action] {
    guard case .absent = state else { return [] }
    isRestorePending = desired != nil
    guard isReadable else { return proceed() }
    state = .reading
    return [.read(operation.next())]
  }

  mutating func linkDown() -> [Action] {
    let before = state
    state = .absent
    switch before {
    case .absent: return []
    case .idle, .reading, .writing(.restore): return keepWaiting()
    case .writing(.command(let request)):
      if isSuperseded(request) { return [.answer(request.command, .superseded)] + keepWaiting() }
      waiting = request
      return keepWaiting()
    }
  }

  mutating func command(_ command: Command) -> [Action] {
    var actions: [Action] = []
    if let superseded = waiting { actions.append(.answer(superseded.command, .superseded)) }
    waiting = Request(command: command)
    switch state {
    case .absent: return actions + keepWaiting()
    case .idle: return actions + proceed()
    case .reading, .writing: return actions
    }
  }

  /// A command that is being carried out does not end: the device may hold its value already.
  mutating func expire(at now: Moment) -> [Action] {
    guard let command = waiting?.command, let deadline, deadline <= now else { return [] }
    waiting = nil
    return [.answer(command, command.expired)]
  }

  mutating func setDesired(_ value: EncodedValue?, by origin: DesiredOrigin) -> [Action] {
    var actions: [Action] = []
    switch origin {
    case .configuration: break
    case .request:
      if let superseded = waiting { actions.append(.answer(superseded.command, .superseded)) }
      waiting = nil
      supersedeCommandInFlight()
    }
    desired = value
    // Even where the last read returned the same value: a write that was not answered may have changed it since.
    isRestorePending = value != nil
    switch state {
    case .absent, .reading, .writing: return actions
    case .idle: return actions + proceed()
    }
  }

  /// The command that waits goes with the device: the other gateway answers it.
  mutating func handOver(desired value: EncodedValue?) -> [Action] {
    let before = state
    state = .absent
    waiting = nil
    if let value { desired = value }
    switch before {
    case .absent, .idle, .reading, .writing(.restore): return []
    case .writing(.command(let request)):
      // The other gateway does not know of it.
      return [.answer(request.command, .failed(reason: "another gateway has taken the device over"))]
    }
  }

  mutating func wrote(_ operation: WriteOperation, _ result: Written) -> [Action] {
    guard operation == self.operation, case .writing(let purpose) = state else { return [] }
    switch result {
    case .holds(let value):
      learn(value)
      let outcome: Outcome =
        value == purpose.value ? .applied(actual: value.value) : .adjusted(actual: value.value)
      return conclude(purpose, outcome) + [.publish(value)] + proceed()
    case .notConfirmed:
      return conclude(purpose, unconfirmed ?? .accepted) + proceed()
    case .notWritten(let failure):
      return fail(purpose, failure, while: "the write")
    case .notReadBack(let failure):
      // It may hold what a command asked for and is answered as failed.
      if case .command = purpose { isRestorePending = desired != nil }
      return fail(purpose, failure, while: "the read-back")
    }
  }

  mutating func read(_ operation: WriteOperation, _ result: Result<EncodedValue, WriteFailure>) -> [Action] {
    guard operation == self.operation, case .reading = state else { return [] }
    switch result {
    case .success(let value):
      learn(value)
      return [.publish(value)] + proceed()
    case .failure(.linkLost):
      return linkDown()
    case .failure(.timeout):
      return abandonLink()
    case .failure:
      // Unknown is treated as different: the write and its read-back will show.
      return proceed()
    }
  }

  mutating func abandon(reason: String) -> [Action] {
    var actions: [Action] = []
    if case .writing(.command(let request)) = state {
      actions = [.answer(request.command, isSuperseded(request) ? .superseded : .failed(reason: reason))]
    }
    if let waiting { actions.append(.answer(waiting.command, .failed(reason: reason))) }
    waiting = nil
    state = .absent
    return actions
  }

  // MARK: Steps

  /// Starts what is to be done next on a link that is free.
  private mutating func proceed() -> [Action] {
    let purpose: Purpose
    if let request = waiting {
      waiting = nil
      purpose = .command(request)
    } else if isRestorePending, let desired {
      // Once per link: a device that rounds the value would be written to for ever.
      isRestorePending = false
      purpose = .restore(desired)
    } else {
      state = .idle
      return []
    }
    state = .writing(purpose)
    return [.write(purpose.value, operation.next())]
  }

  /// The value was written.
  private mutating func conclude(_ purpose: Purpose, _ outcome: Outcome) -> [Action] {
    switch purpose {
    case .restore: return []
    case .command(let request):
      let answer = Action.answer(request.command, outcome)
      if request.isSuperseded { return [answer] }
      // Also where the device adjusted it: it would adjust it again.
      let asked = request.command.value
      desired = asked
      isRestorePending = false
      return [answer, .desired(asked)]
    }
  }

  /// The device answered what it holds: it may be what is desired already.
  private mutating func learn(_ value: EncodedValue) {
    if value == desired { isRestorePending = false }
  }

  /// Whether another value is desired when the command in flight is done.
  private func isSuperseded(_ request: Request) -> Bool { waiting != nil || request.isSuperseded }

  private mutating func supersedeCommandInFlight() {
    switch state {
    case .absent, .idle, .reading, .writing(.restore): break
    case .writing(.command(var request)):
      request.isSuperseded = true
      state = .writing(.command(request))
    }
  }

  private mutating func fail(
    _ purpose: Purpose, _ failure: WriteFailure, while step: String
  ) -> [Action] {
    let outcome: Outcome
    switch failure {
    case .linkLost: return linkDown()
    case .timeout: outcome = .timeout(reason: "\(step) was not answered in time")
    case .failed(let reason): outcome = .failed(reason: "\(step) failed: \(reason)")
    }
    var actions: [Action] = []
    switch purpose {
    // A value that is no longer desired needs no report.
    case .restore(let value): if value == desired { actions = [.restoreFailed(value, failure)] }
    case .command(let request): actions = [.answer(request.command, outcome)]
    }
    return actions + (failure == .timeout ? abandonLink() : proceed())
  }

  private mutating func abandonLink() -> [Action] {
    state = .absent
    return [.unresponsive] + keepWaiting()
  }

  /// Reports once that the waiting command is pending.
  private mutating func keepWaiting() -> [Action] {
    guard let request = waiting, !request.isPendingReported else { return [] }
    waiting?.isPendingReported = true
    return [.answer(request.command, .pending)]
  }
}
