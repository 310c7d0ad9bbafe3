import EventLoop
import GATT

/// The writes of an event property: in order, each once, never repeated or superseded.
struct EventWrites: WriteMachine {
  /// The maximum of waiting writes; further ones are rejected.
  static let capacity = 64

  private var isLinked = false
  private var waiting: [EncodedCommand] = []
  private var inFlight: EncodedCommand?
  /// The last operation that was begun.
  private var operation: WriteOperation = 0
  /// The outcome of a write: none is read back.
  private let unconfirmed: Outcome

  init(mode: Property.WriteMode) {
    unconfirmed = mode.unconfirmed
  }

  var deadline: Moment? { waiting.compactMap { $0.timeToLive?.deadline }.min() }
  var hasWaiting: Bool { !waiting.isEmpty }

  mutating func linkUp(_ written: EncodedValue? = nil) -> [WriteAction] {
    isLinked = true
    return startNext()
  }

  mutating func linkDown() -> [WriteAction] {
    guard isLinked else { return [] }
    isLinked = false
    var actions: [WriteAction] = []
    if let inFlight { actions.append(.outcome(inFlight, .lostInWrite)) }
    inFlight = nil
    for index in waiting.indices {
      let command = waiting[index]
      if command.timeToLive == nil {
        actions.append(.outcome(command, .failed(reason: "the device went offline")))
      } else if !command.isPendingReported {
        waiting[index].isPendingReported = true
        actions.append(.outcome(command, .pending))
      }
    }
    waiting.removeAll { $0.timeToLive == nil }
    return actions
  }

  mutating func command(_ command: EncodedCommand) -> [WriteAction] {
    guard waiting.count < Self.capacity else {
      return [.outcome(command, .rejected(reason: "\(Self.capacity) writes are waiting already"))]
    }
    if !isLinked, command.timeToLive == nil {
      let reason = "the device is offline; with a time limit (ttl, in seconds) the command would wait"
      return [.outcome(command, .failed(reason: reason))]
    }
    var command = command
    command.isPendingReported = !isLinked
    waiting.append(command)
    return isLinked ? startNext() : [.outcome(command, .pending)]
  }

  /// An event has no desired value.
  var desired: DesiredValue { DesiredValue() }

  mutating func change(_ change: DesiredChange) -> [WriteAction] { [] }

  mutating func handOver(
    _ value: EncodedValue??, lastChange: Moment, mayHaveCommands: Bool
  ) -> [WriteAction] {
    abandon(reason: Outcome.takenOverReason, defers: false)
  }

  mutating func expire(at now: Moment) -> [WriteAction] {
    var actions: [WriteAction] = []
    waiting.removeAll { command in
      guard let timeToLive = command.timeToLive, timeToLive.deadline <= now else { return false }
      actions.append(.outcome(command, command.expired))
      return true
    }
    return actions
  }

  func awaits(_ operation: WriteOperation) -> Bool { operation == self.operation && inFlight != nil }

  mutating func wrote(_ operation: WriteOperation, _ result: WriteResult) -> [WriteAction] {
    guard awaits(operation), let command = inFlight else { return [] }
    switch result {
    case .thenRead, .notConfirmed:
      inFlight = nil
      return [.outcome(command, unconfirmed)] + startNext()
    case .notWritten(.linkLost):
      return linkDown()
    case .notWritten(.timeout):
      inFlight = nil
      return [.outcome(command, .timeout(reason: "the write was not answered in time")), .unresponsive]
        + linkDown()
    case .notWritten(.failed(let reason)):
      inFlight = nil
      return [.outcome(command, .failed(reason: "the write failed: \(reason)"))] + startNext()
    }
  }

  /// An event is never read.
  mutating func read(_ operation: WriteOperation, _ result: ReadResult) -> [WriteAction] { [] }

  /// None is deferred: an event is not carried out later.
  mutating func abandon(reason: String, defers: Bool) -> [WriteAction] {
    let actions =
      (inFlight.map { [.outcome($0, .abandonedInWrite(reason))] } ?? [])
      + waiting.map { WriteAction.outcome($0, .failed(reason: reason)) }
    inFlight = nil
    waiting = []
    isLinked = false
    return actions
  }

  private mutating func startNext() -> [WriteAction] {
    guard isLinked, inFlight == nil, !waiting.isEmpty else { return [] }
    let command = waiting.removeFirst()
    inFlight = command
    operation += 1
    return [.write(command.value, operation)]
  }
}
