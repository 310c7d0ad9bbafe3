import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

/// Invariants, checked with random inputs; a failure names the seed that repeats it.
@LoopActor @Suite struct StateWritesRandomTests {
  @Test(.serialized, arguments: 0..<200)
  func randomInputsViolateNoInvariant(seed: UInt64) {
    var simulation = Simulation(seed: seed)
    for _ in 0..<400 {
      simulation.step()
      if !simulation.violations.isEmpty { break }
    }
    simulation.finishEverything()
    #expect(simulation.violations == [], "seed \(seed)")
  }
}

/// A state machine, the device it writes to, and a link that is made and lost.
@LoopActor private struct Simulation {
  enum InFlight {
    case write(EncodedValue, WriteOperation)
    case read(WriteOperation)
  }

  struct IssuedCommand {
    let value: EncodedValue
    /// In seconds since the start.
    let deadline: Int?
    var pending = 0
    var final: Outcome?
    /// Handed over to another gateway.
    var isDropped = false
  }

  var machine: StateWrites
  var random: SplitMix64
  var isUp = false
  /// What the device holds; lost on reset.
  var held: EncodedValue = 1000
  var inFlight: InFlight?
  /// Results that arrive after the end of their link.
  var late: [InFlight] = []
  var commands: [Int: IssuedCommand] = [:]
  var nextTag = 0
  /// The commands that were answered, in order.
  let answered = Record<Int>()
  let start = Moment.now
  /// Seconds since the start.
  var now = 0
  /// The expected desired value, by the outcomes and the requests so far.
  var desired: EncodedValue?
  /// A request has superseded the commands with lower tags than this.
  var supersededBelow = 0
  /// The gateway that takes the device over has a value that was set later than all commands.
  var isSetElsewhere = false
  var lastRead: EncodedValue?
  var published: EncodedValue?
  /// On this link; it is not retried on the same link.
  var hasRestoreFailed = false
  var violations: [String] = []

  init(seed: UInt64) {
    random = SplitMix64(state: seed)
    desired = Bool.random(using: &random) ? EncodedValue(Int.random(in: 1...9, using: &random)) : nil
    machine = StateWrites(
      DesiredValue(override: desired.map { DesiredValue.Override(value: $0, source: .request) }))
  }

  mutating func step() {
    switch Int.random(in: 0..<16, using: &random) {
    case 0: linkUp()
    case 1: linkDown()
    case 2, 3: command()
    case 4: lateResult()
    case 5: apply()
    case 6: if Int.random(in: 0..<4, using: &random) == 0 { handOver() }
    case 7, 8: pass()
    default: finish(fault: Int.random(in: 0..<8, using: &random))
    }
    if machine.desired.effective != desired {
      violations.append("the desired value is not the requested one")
    }
    let waits = commands.values.contains { $0.final == nil && !$0.isDropped && $0.deadline != nil }
    if machine.deadline != nil, !waits { violations.append("a deadline without a waiting command") }
    if isUp, inFlight == nil, !hasRestoreFailed { checkHeld() }
  }

  /// No operation fails any more: every command must get its final answer.
  mutating func finishEverything() {
    // Waiting commands are answered on the new link; the current one may have been lost without a `linkDown`.
    linkDown()
    linkUp()
    for _ in 0..<20 { finish(fault: 7) }
    if inFlight != nil { violations.append("an operation is still in flight") }
    for (tag, command) in commands where command.final == nil && !command.isDropped {
      violations.append("command \(tag) has no final answer")
    }
    checkHeld()
    if published != held { violations.append("the last published value is not what the device holds") }
  }

  private mutating func checkHeld() {
    if let desired = machine.desired.effective, held != Self.rounded(desired) {
      violations.append("\(desired.value) is desired, the device holds \(held.value)")
    }
  }

  private mutating func linkUp() {
    if !isUp { hasRestoreFailed = false }
    if !isUp, Bool.random(using: &random) { held = 1000 }
    isUp = true
    run(machine.linkUp())
  }

  private mutating func linkDown() {
    if let inFlight { late.append(inFlight) }
    inFlight = nil
    isUp = false
    run(machine.linkDown())
  }

  private mutating func command() {
    let value = EncodedValue(Int.random(in: 1...9, using: &random))
    let ttl = Bool.random(using: &random) ? Int.random(in: 1...5, using: &random) : nil
    commands[nextTag] = IssuedCommand(value: value, deadline: ttl.map { now + $0 })
    let arrival = start + .seconds(now)
    let command = EncodedCommand(
      value: value, timeToLive: ttl.map { TimeToLive(seconds: $0, from: arrival) },
      reply: { [answered, nextTag] _ in answered.append(nextTag) })
    nextTag += 1
    run(machine.command(command))
  }

  /// A second passes; the owner of the machine may check the deadline later.
  private mutating func pass() {
    now += 1
    guard Bool.random(using: &random) else { return }
    let instant = start + .seconds(now)
    let isDue = machine.deadline.map { $0 <= instant } ?? false
    let actions = machine.expire(at: instant)
    if isDue != !actions.isEmpty { violations.append("expired at the wrong time") }
    if let deadline = machine.deadline, deadline <= instant { violations.append("not expired in time") }
    run(actions)
  }

  private mutating func apply() {
    let value = Bool.random(using: &random) ? EncodedValue(Int.random(in: 1...9, using: &random)) : nil
    let supersedesCommands = Bool.random(using: &random)
    desired = value
    if supersedesCommands { supersededBelow = nextTag }
    run(machine.change(supersedesCommands ? .requested(value) : .copied(value)))
  }

  private mutating func handOver() {
    let value = Bool.random(using: &random) ? EncodedValue(Int.random(in: 1...9, using: &random)) : nil
    if let value { desired = value }
    if let inFlight { late.append(inFlight) }
    inFlight = nil
    isUp = false
    let mayHaveCommands = Bool.random(using: &random)
    let isLater = Bool.random(using: &random)
    isSetElsewhere = value != nil && isLater
    run(
      machine.handOver(
        value.map(Optional.some), lastChange: start + .seconds(isLater ? now + 1 : -1),
        mayHaveCommands: mayHaveCommands))
    isSetElsewhere = false
    if let value { run(machine.change(.copied(value))) }
    // A command with a ttl keeps waiting.
    let open = commands.filter {
      $0.value.final == nil && !$0.value.isDropped && ($0.value.deadline == nil || $0.value.value == value)
    }
    if open.count > 1 { violations.append("more than one command is dropped") }
    if open.values.contains(where: { $0.deadline == nil && $0.value != value }) {
      violations.append("a command is dropped that the other gateway does not have")
    }
    for tag in open.keys { commands[tag]?.isDropped = true }
  }

  private mutating func lateResult() {
    guard let index = late.indices.randomElement(using: &random) else { return }
    let before = published
    switch late.remove(at: index) {
    case .write(_, let operation): run(machine.wrote(operation, .thenRead(.success(-1))), mayAct: false)
    case .read(let operation): run(machine.read(operation, .success(-1)), mayAct: false)
    }
    if published != before { violations.append("a late read was published") }
  }

  private mutating func finish(fault: Int) {
    guard let operation = inFlight else { return }
    inFlight = nil
    let failure: WriteFailure? =
      switch fault {
      case 0: .timeout
      case 1: .failed(reason: "x")
      case 2: .linkLost
      default: nil
      }
    if failure == .linkLost { isUp = false }
    switch operation {
    case .write(let value, let operation):
      // An unanswered write may have been carried out, a refused one was not.
      let isWritten = Bool.random(using: &random)
      let isRefused = failure == .failed(reason: "x") && !isWritten
      if failure == nil || isWritten || !isRefused && Bool.random(using: &random) {
        held = Self.rounded(value)
      }
      if failure == nil { lastRead = held }
      run(
        machine.wrote(
          operation,
          failure.map { isWritten ? .thenRead(.failure($0)) : .notWritten($0) } ?? .thenRead(.success(held))))
    case .read(let operation):
      if failure == nil { lastRead = held }
      run(machine.read(operation, failure.map(Result.failure) ?? .success(held)))
    }
  }

  /// The device rounds up, as the micro:bit's accelerometer period does.
  private static func rounded(_ value: EncodedValue) -> EncodedValue {
    if case .integer(let number) = value.value, number <= 5 { value } else { 10 }
  }

  private mutating func run(_ actions: [WriteAction], mayAct: Bool = true) {
    if !mayAct, !actions.isEmpty { violations.append("a late result led to actions") }
    for action in actions {
      switch action {
      case .write(let value, let operation): begin(.write(value, operation))
      case .read(let operation): begin(.read(operation))
      case .readBack(let value):
        published = value
        if value != lastRead { violations.append("published \(value.value), which was not read") }
      case .applyFailed(let value, _):
        hasRestoreFailed = true
        if value != machine.desired.effective { violations.append("restored a value that is not desired") }
      case .unresponsive: linkDown()
      case .outcome(let command, let outcome): answer(command, outcome)
      }
    }
  }

  private mutating func begin(_ operation: InFlight) {
    if inFlight != nil { violations.append("two operations in flight") }
    if !isUp { violations.append("an operation without a link") }
    inFlight = operation
  }

  private mutating func answer(_ command: EncodedCommand, _ outcome: Outcome) {
    command.reply(outcome)
    guard let tag = answered.elements.last, let state = commands[tag], state.value == command.value else {
      return violations.append("an answer without a command")
    }
    if state.isDropped { violations.append("command \(tag) is answered after its handover") }
    if state.final != nil { violations.append("command \(tag) is answered after its end") }
    if outcome.actual != nil, tag >= supersededBelow {
      desired = command.value
      if machine.desired.override?.value != desired { violations.append("its value is not desired") }
    }
    switch outcome {
    case .pending:
      if tag < supersededBelow { violations.append("command \(tag) is pending, and superseded") }
      commands[tag]?.pending += 1
      if state.pending > 0 { violations.append("command \(tag) is pending twice") }
      if isUp { violations.append("pending with a link") }
    case .applied(let actual):
      if actual != command.value.value || actual != held.value {
        violations.append("applied, yet \(held.value) is held")
      }
      commands[tag]?.final = outcome
    case .adjusted(let actual):
      if actual == command.value.value || actual != held.value {
        violations.append("adjusted, yet \(held.value) is held")
      }
      commands[tag]?.final = outcome
    case .superseded:
      if !commands.keys.contains(where: { $0 > tag }), supersededBelow <= tag, !isSetElsewhere {
        violations.append("superseded without a newer value")
      }
      commands[tag]?.final = outcome
    case .timeout(let reason) where reason.contains("ttl"):
      if state.deadline.map({ $0 > now }) ?? true { violations.append("expired too early") }
      commands[tag]?.final = outcome
    case .failed, .timeout:
      commands[tag]?.final = outcome
    case .accepted, .sent, .read, .rejected, .deferred:
      violations.append("an outcome that no confirmed write has")
    }
  }
}
