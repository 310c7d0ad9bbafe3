import EventLoop
import GATT
import TestSupport

@testable import Devices

/// The writes of a state whose commands are identified by a word, and whose operations are answered in order.
@LoopActor struct Bench {
  var machine: StateWrites
  enum Started {
    case write(WriteOperation)
    case read(WriteOperation)
  }
  private(set) var started: [Started] = []
  private var override: DesiredValue.Override?
  /// The words of the commands that were answered.
  private let answered: Record<String>

  /// - Parameter waiting: the value of the command `w` of an earlier run.
  init(
    desired: Int? = nil, waiting: Int? = nil, mode: Property.WriteMode = .confirm, isReadable: Bool = true
  ) {
    let answered = Record<String>()
    self.answered = answered
    machine = StateWrites(
      DesiredValue(
        override: desired.map { DesiredValue.Override(value: EncodedValue($0), source: .request) },
        waiting: waiting.map { DesiredValue.Waiting(value: EncodedValue($0), sender: nil) }),
      mode: mode, isReadable: isReadable
    ) { _ in answered.append("w") }
  }

  /// The actions in short: `read`, `write 5`, `desired 5` if a command has set that, `a: applied 5`, `publish 5`.
  mutating func run(_ actions: [WriteAction]) -> [String] {
    var texts: [String] = []
    if let new = machine.desired.override, new != override, new.source == .command {
      texts = ["desired \(new.value.value)"]
    }
    override = machine.desired.override
    texts += actions.flatMap { action -> [String] in
      switch action {
      case .write(let value, let operation):
        started.append(.write(operation))
        return ["write \(value.value)"]
      case .read(let operation):
        started.append(.read(operation))
        return ["read"]
      case .outcome(let command, let outcome):
        let detail = outcome.actual.map { " \($0)" } ?? outcome.reason.map { " \($0)" } ?? ""
        command.reply(outcome)
        return ["\(answered.elements.last!): \(outcome.word)\(detail)"]
      case .readBack(let value): return ["publish \(value.value)"]
      case .applyFailed(let value, let failure): return ["not restored \(value.value) \(failure)"]
      case .unresponsive: return ["unresponsive"]
      }
    }
    return texts
  }

  mutating func linkUp() -> [String] { run(machine.linkUp()) }
  mutating func linkDown() -> [String] { run(machine.linkDown()) }
  mutating func command(_ tag: String, _ value: Int) -> [String] {
    command(tag, value, nil)
  }
  mutating func command(_ tag: String, _ value: Int, ttl: Int, at now: Moment) -> [String] {
    command(tag, value, TimeToLive(seconds: ttl, from: now))
  }
  mutating func commandForThisLink(_ tag: String, _ value: Int) -> [String] {
    command(tag, value, nil, waitsForLink: false)
  }
  private mutating func command(
    _ tag: String, _ value: Int, _ timeToLive: TimeToLive?, waitsForLink: Bool = true
  ) -> [String] {
    let reply: @Sendable (Outcome) -> Void = { [answered] _ in answered.append(tag) }
    return run(
      machine.command(
        EncodedCommand(
          value: EncodedValue(value), timeToLive: timeToLive, waitsForLink: waitsForLink, reply: reply)))
  }
  mutating func expire(at now: Moment) -> [String] { run(machine.expire(at: now)) }
  /// A request sets the value, or another gateway has set it, whose value does not supersede commands.
  mutating func apply(_ value: Int?, supersedesCommands: Bool = true) -> [String] {
    let value = value.map { EncodedValue($0) }
    let change: DesiredChange =
      supersedesCommands ? .requested(value) : .copied(value)
    return run(machine.change(change)).filter { !$0.hasPrefix("desired") }
  }
  mutating func abandon(reason: String) -> [String] {
    run(machine.abandon(reason: reason, defers: false))
  }
  /// Another gateway takes the device over.
  /// - Parameters:
  ///   - desired: the desired value that it publishes, or that there is none; nil: it does not know the property.
  ///   - lastChange: nil: before all commands.
  mutating func handOver(
    desired: Int?? = nil, lastChange: Moment? = nil, mayHaveCommands: Bool = true
  ) -> [String] {
    let value = desired.map { $0.map { EncodedValue($0) } }
    let lastChange = lastChange ?? .now + .seconds(-3600)
    let log = run(machine.handOver(value, lastChange: lastChange, mayHaveCommands: mayHaveCommands))
    return log + (desired.map { apply($0, supersedesCommands: false) } ?? [])
  }
  /// The device answers the read, or accepts the write, and holds this value.
  mutating func holds(_ value: Int) -> [String] { answer(started.last!, value) }
  mutating func answer(_ operation: Started, _ value: Int) -> [String] {
    switch operation {
    case .write(let operation): run(machine.wrote(operation, .thenRead(.success(EncodedValue(value)))))
    case .read(let operation): run(machine.read(operation, .success(EncodedValue(value))))
    }
  }
  mutating func notWritten(_ failure: WriteFailure) -> [String] { notWritten(started.last!, failure) }
  mutating func notWritten(_ operation: Started, _ failure: WriteFailure) -> [String] {
    guard case .write(let operation) = operation else { return ["nothing was to be written"] }
    return run(machine.wrote(operation, .notWritten(failure)))
  }
  /// The device accepts the write, which is not read back.
  mutating func accepted() -> [String] {
    guard case .write(let operation) = started.last! else { return ["nothing was to be written"] }
    return run(machine.wrote(operation, .notConfirmed))
  }
  /// Neither the read nor the read-back is answered.
  mutating func readFailed(_ failure: WriteFailure) -> [String] {
    switch started.last! {
    case .write(let operation): run(machine.wrote(operation, .thenRead(.failure(failure))))
    case .read(let operation): run(machine.read(operation, .failure(failure)))
    }
  }

  /// A bench whose link is up and whose device holds `actual`.
  static func idle(actual: Int = 1000, desired: Int? = nil) -> Bench {
    var bench = Bench(desired: desired)
    _ = bench.linkUp()
    _ = bench.holds(actual)
    return bench
  }
}
