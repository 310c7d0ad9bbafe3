import EventLoop
import GATT

/// A writable property of one device: writes what is asked for, reads it back, and says what came of it.
///
/// A pure machine. Each input returns the actions to run, in order. One operation is in flight at most; its
/// result comes back with the ``Operation`` it was started with, so that a late one, of a link that is gone, is
/// known as such and changes nothing.
///
/// Every command gets exactly one final outcome; before it, at most one `pending`. Only where another gateway
/// takes the device over, a command that waits is left to that one.
struct ConfirmedWrite<Tag: Sendable>: Sendable {
  /// A value asked for, and what its sender needs with the answer.
  struct Command: Sendable {
    let value: EncodedValue
    let tag: Tag
    /// Nil: it waits as long as it takes.
    let timeToLive: TimeToLive?

    init(value: EncodedValue, tag: Tag, timeToLive: TimeToLive? = nil) {
      self.value = value
      self.tag = tag
      self.timeToLive = timeToLive
    }
  }

  /// Tells an operation from those before it.
  struct Operation: Sendable, Hashable {
    fileprivate let number: UInt64
  }

  enum Action: Sendable {
    /// Write this value and read it back, then call ``ConfirmedWrite/wrote(_:_:)``.
    case write(EncodedValue, Operation)
    /// Read the property, then call ``ConfirmedWrite/read(_:_:)``.
    case read(Operation)
    /// Tell the command's sender.
    case answer(Command, Outcome)
    /// This is what the device answered to a read: the property's value from now on.
    case publish(EncodedValue)
    /// A command made this the desired value: to be kept for the next run.
    case desired(EncodedValue)
    /// The desired value could not be applied on arrival; it stays desired, and the next arrival tries again.
    case restoreFailed(EncodedValue, WriteFailure)
    /// The device does not answer: end the link. ``ConfirmedWrite/linkUp()`` follows when there is another.
    case unresponsive
  }

  /// What a write is for.
  private enum Purpose {
    case command(Request)
    /// To make the desired value hold again, not for a command.
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
    /// A request of later on says what shall hold.
    var isSuperseded = false
  }

  private enum State {
    /// No link. A waiting command stays until there is one → reading.
    case absent
    /// Nothing to do → writing, absent.
    case idle
    /// The link is new: what does the device hold? → writing, idle, absent.
    case reading
    /// A value is on its way to the device, and read back from it → writing, idle, absent.
    case writing(Purpose)
  }

  private var state = State.absent
  private var waiting: Request?
  private var operation: UInt64 = 0
  /// Whether this link still owes the device its desired value.
  private var owesRestore = false

  /// The value that shall hold, and is applied on every link: the last one that a command set or a
  /// request named, before that the configured one.
  private(set) var desired: EncodedValue?

  /// - Parameter desired: the configured value; nil leaves the device as it is found.
  init(desired: EncodedValue? = nil) {
    self.desired = desired
  }

  /// When ``expire(at:)`` is to be called: when the waiting command ends. May change with every input.
  var deadline: Moment? { waiting?.command.timeToLive?.deadline }

  // MARK: Inputs

  /// The device is connected and the property can be used.
  mutating func linkUp() -> [Action] {
    guard case .absent = state else { return [] }
    owesRestore = desired != nil
    state = .reading
    return [.read(begin())]
  }

  /// The connection is gone. Harmless when repeated.
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

  /// A command for another value, which has been validated.
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

  /// The ``deadline`` is over. Harmless when it is not, or not any more.
  ///
  /// A command that is being carried out does not end: the device may hold its value already.
  mutating func expire(at now: Moment) -> [Action] {
    guard let command = waiting?.command, let timeToLive = command.timeToLive, timeToLive.deadline <= now
    else { return [] }
    waiting = nil
    return [.answer(command, .timeout(reason: "not applied within its ttl of \(timeToLive.seconds) s"))]
  }

  /// Another value shall hold from now on; nil: whatever the device has. On a link it is brought about now.
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
    owesRestore = value != nil
    switch state {
    case .absent, .reading, .writing: return actions
    case .idle: return actions + proceed()
    }
  }

  /// Another gateway has the device now, and with it the command that waits: it is that one's to answer.
  ///
  /// - Parameter value: what the other gateway says is desired; nil: it says nothing.
  mutating func standBy(desired value: EncodedValue?) -> [Action] {
    let before = state
    state = .absent
    waiting = nil
    if let value { desired = value }
    switch before {
    case .absent, .idle, .reading, .writing(.restore): return []
    case .writing(.command(let request)):
      // The other one never had it: it was this gateway's to carry out.
      return [.answer(request.command, .failed(reason: "another gateway has taken the device over"))]
    }
  }

  /// How a ``Action/write(_:_:)`` ended.
  mutating func wrote(_ operation: Operation, _ result: Written) -> [Action] {
    guard isCurrent(operation), case .writing(let purpose) = state else { return [] }
    switch result {
    case .holds(let value):
      learn(value)
      return conclude(purpose, value) + [.publish(value)] + proceed()
    case .notWritten(let failure):
      return fail(purpose, failure, while: "the write")
    case .notReadBack(let failure):
      // It may hold what a command asked for and is answered as failed.
      if case .command = purpose { owesRestore = desired != nil }
      return fail(purpose, failure, while: "the read-back")
    }
  }

  /// How a ``Action/read(_:)`` ended.
  mutating func read(_ operation: Operation, _ result: Result<EncodedValue, WriteFailure>) -> [Action] {
    guard isCurrent(operation), case .reading = state else { return [] }
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

  /// Nothing will be done any more: whoever waits for an answer gets it.
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
    } else if owesRestore, let desired {
      // Once per link: a device that rounds the value would be written to for ever.
      owesRestore = false
      purpose = .restore(desired)
    } else {
      state = .idle
      return []
    }
    state = .writing(purpose)
    return [.write(purpose.value, begin())]
  }

  /// The device answered to the read-back.
  private mutating func conclude(_ purpose: Purpose, _ value: EncodedValue) -> [Action] {
    switch purpose {
    case .restore: return []
    case .command(let request):
      let asked = request.command.value
      let answer = Action.answer(
        request.command, value == asked ? .applied(actual: value.value) : .adjusted(actual: value.value))
      if request.isSuperseded { return [answer] }
      // An adjusted value is still the request that shall hold: the device would adjust it again.
      desired = asked
      owesRestore = false
      return [answer, .desired(asked)]
    }
  }

  /// The device answered what it holds: it may be what is desired already.
  private mutating func learn(_ value: EncodedValue) {
    if value == desired { owesRestore = false }
  }

  /// Whether something else shall hold when the command in flight is done.
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

  /// What waits, waits for the next link.
  private mutating func abandonLink() -> [Action] {
    state = .absent
    return [.unresponsive] + keepWaiting()
  }

  /// Tells the waiting command, once, that it waits for the device.
  private mutating func keepWaiting() -> [Action] {
    guard let request = waiting, !request.isPendingReported else { return [] }
    waiting?.isPendingReported = true
    return [.answer(request.command, .pending)]
  }

  private mutating func begin() -> Operation {
    operation += 1
    return Operation(number: operation)
  }

  private func isCurrent(_ operation: Operation) -> Bool { operation.number == self.operation }
}

extension ConfirmedWrite.Command: Equatable where Tag: Equatable {}
extension ConfirmedWrite.Action: Equatable where Tag: Equatable {}
