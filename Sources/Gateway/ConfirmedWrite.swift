/// A writable property of one device: writes what is asked for, reads it back, and says what came of it.
///
/// A pure machine. Each input returns the actions to run, in order. One operation is in flight at most; its
/// result comes back with the ``Operation`` it was started with, so that a late one, of a link that is gone, is
/// known as such and changes nothing.
///
/// Every command gets exactly one final outcome; before it, at most one `pending`.
struct ConfirmedWrite<Tag: Sendable>: Sendable {
  /// A value asked for, and what its sender needs with the answer.
  struct Command: Sendable {
    let value: Int
    let tag: Tag

    init(value: Int, tag: Tag) {
      self.value = value
      self.tag = tag
    }
  }

  /// Tells an operation from those before it.
  struct Operation: Sendable, Hashable {
    fileprivate let number: UInt64
  }

  enum Action: Sendable {
    /// Write this value, then call ``ConfirmedWrite/wrote(_:_:)``.
    case write(Int, Operation)
    /// Read the property, then call ``ConfirmedWrite/readBack(_:_:)``.
    case read(Operation)
    /// Tell the command's sender.
    case answer(Command, Outcome)
    /// This is what the device answered to a read: the property's value from now on.
    case publish(Int)
    /// The wanted value could not be applied on arrival; it stays wanted, and the next arrival tries again.
    case restoreFailed(Int, WriteFailure)
  }

  /// What a write is for.
  private enum Purpose {
    case command(Request)
    /// To make the wanted value hold again, for nobody in particular.
    case restore(Int)

    var value: Int {
      switch self {
      case .command(let request): request.command.value
      case .restore(let value): value
      }
    }
  }

  /// A command on its way.
  private struct Request {
    let command: Command
    var isToldPending = false
  }

  private enum State {
    /// No link. A waiting command stays until there is one → reading.
    case absent
    /// Nothing to do → writing, absent.
    case idle
    /// The link is new: what does the device hold? → writing, idle, absent.
    case reading
    /// A value is on its way to the device → readingBack; after a failure writing, idle; absent.
    case writing(Purpose)
    /// The device has accepted the value: does it hold it? → writing, idle, absent.
    case readingBack(Purpose)
  }

  private var state = State.absent
  private var waiting: Request?
  private var operation: UInt64 = 0
  /// Whether this link still owes the device its wanted value.
  private var owesRestore = false

  /// The value that shall hold, and is applied on every arrival: the last one that a command brought about,
  /// before that the configured one.
  private(set) var wanted: Int?
  /// What the device answered to the last read.
  private(set) var actual: Int?

  /// - Parameter wanted: the configured value; nil leaves the device as it is found.
  init(wanted: Int? = nil) {
    self.wanted = wanted
  }

  // MARK: Inputs

  /// The device is connected and the property can be used.
  mutating func linkUp() -> [Action] {
    guard case .absent = state else { return [] }
    owesRestore = wanted != nil
    state = .reading
    return [.read(begin())]
  }

  /// The connection is gone. Harmless when repeated.
  mutating func linkDown() -> [Action] {
    let before = state
    state = .absent
    switch before {
    case .absent: return []
    case .idle, .reading, .writing(.restore), .readingBack(.restore): return keepWaiting()
    case .writing(.command(let request)), .readingBack(.command(let request)):
      if waiting != nil { return [.answer(request.command, .superseded)] + keepWaiting() }
      waiting = request
      return keepWaiting()
    }
  }

  /// Somebody wants another value. It has been validated.
  mutating func command(_ command: Command) -> [Action] {
    var actions: [Action] = []
    if let overtaken = waiting { actions.append(.answer(overtaken.command, .superseded)) }
    waiting = Request(command: command)
    switch state {
    case .absent: return actions + keepWaiting()
    case .idle: return actions + proceed()
    case .reading, .writing, .readingBack: return actions
    }
  }

  /// How a ``Action/write(_:_:)`` ended.
  mutating func wrote(_ operation: Operation, _ result: Result<Void, WriteFailure>) -> [Action] {
    guard isCurrent(operation), case .writing(let purpose) = state else { return [] }
    switch result {
    case .success:
      state = .readingBack(purpose)
      return [.read(begin())]
    case .failure(let failure):
      return fail(purpose, failure, while: "the write")
    }
  }

  /// How a ``Action/read(_:)`` ended.
  mutating func readBack(_ operation: Operation, _ result: Result<Int, WriteFailure>) -> [Action] {
    guard isCurrent(operation) else { return [] }
    switch (state, result) {
    case (.absent, _), (.idle, _), (.writing, _):
      return []
    case (.reading, .success(let value)):
      actual = value
      if value == wanted { owesRestore = false }
      return [.publish(value)] + proceed()
    case (.reading, .failure(.linkLost)):
      return linkDown()
    case (.reading, .failure):
      // Unknown is treated as different: the write and its read-back tell.
      return proceed()
    case (.readingBack(let purpose), .success(let value)):
      actual = value
      return conclude(purpose, value) + [.publish(value)] + proceed()
    case (.readingBack(let purpose), .failure(let failure)):
      return fail(purpose, failure, while: "the read-back")
    }
  }

  /// Nothing will be done any more: whoever waits for an answer gets it.
  mutating func abandon(reason: String) -> [Action] {
    var open: [Command] = []
    switch state {
    case .writing(.command(let request)), .readingBack(.command(let request)): open.append(request.command)
    case .absent, .idle, .reading, .writing(.restore), .readingBack(.restore): break
    }
    if let waiting { open.append(waiting.command) }
    waiting = nil
    state = .absent
    return open.map { .answer($0, .failed(reason: reason)) }
  }

  // MARK: Steps

  /// Starts what is to be done next on a link that is free.
  private mutating func proceed() -> [Action] {
    let purpose: Purpose
    if let request = waiting {
      waiting = nil
      purpose = .command(request)
    } else if owesRestore, let wanted {
      // Once per link: a device that rounds the value would be written to for ever.
      owesRestore = false
      purpose = .restore(wanted)
    } else {
      state = .idle
      return []
    }
    state = .writing(purpose)
    return [.write(purpose.value, begin())]
  }

  /// The device answered to the read-back.
  private mutating func conclude(_ purpose: Purpose, _ value: Int) -> [Action] {
    switch purpose {
    case .restore: return []
    case .command(let request):
      // An adjusted value is still the request that shall hold: the device would adjust it again.
      wanted = request.command.value
      owesRestore = false
      let outcome: Outcome =
        value == request.command.value ? .applied(actual: value) : .adjusted(actual: value)
      return [.answer(request.command, outcome)]
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
    switch purpose {
    case .restore(let value): return [.restoreFailed(value, failure)] + proceed()
    case .command(let request): return [.answer(request.command, outcome)] + proceed()
    }
  }

  /// Tells the waiting command, once, that it waits for the device.
  private mutating func keepWaiting() -> [Action] {
    guard let request = waiting, !request.isToldPending else { return [] }
    waiting?.isToldPending = true
    return [.answer(request.command, .pending)]
  }

  private mutating func begin() -> Operation {
    operation += 1
    return Operation(number: operation)
  }

  private func isCurrent(_ operation: Operation) -> Bool { operation.number == self.operation }
}

/// What came of a command.
enum Outcome: Sendable, Equatable {
  /// The read-back equals the request.
  case applied(actual: Int)
  /// The device accepted the write and holds another value.
  case adjusted(actual: Int)
  /// Refused before any write.
  case rejected(reason: String)
  /// The device is absent: the command is kept until it comes, and answered once more then.
  case pending
  /// A newer command took its place before it was carried out.
  case superseded
  /// The write or the read-back failed.
  case failed(reason: String)
  /// The write or the read-back was not answered.
  case timeout(reason: String)
}

/// Why a write or a read brought nothing.
enum WriteFailure: Error, Sendable, Equatable {
  /// No answer within the time given.
  case timeout
  /// The link went away underneath: not the command's fault, which is tried again on the next link.
  /// BlueZ fails what is in flight before it says that the device is gone.
  case linkLost
  /// Refused by BlueZ or the device.
  case failed(reason: String)
}

extension ConfirmedWrite.Command: Equatable where Tag: Equatable {}
extension ConfirmedWrite.Action: Equatable where Tag: Equatable {}
