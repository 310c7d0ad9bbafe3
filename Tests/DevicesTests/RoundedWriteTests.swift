import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

@LoopActor @Suite struct RoundedWriteTests {
  /// Whatever the outcome, the bytes are those that were asked for: nothing is written on the next link.
  @Test(arguments: [
    (505.0, 510.0, "adjusted"), (510.0, 510.0, "applied"), (21.5, 21.500000000000004, "applied"),
    (0.1, 0.10000000149011612, "applied"),
  ])
  func numberThatIsRoundedToBeEncodedIsAdjusted(requested: Double, held: Double, word: String) throws {
    var machine = StateWrites()
    let actual = EncodedValue(.number(held), [51])
    func operation(_ actions: [WriteAction]) throws -> WriteOperation {
      switch try #require(actions.first) {
      case .read(let operation), .write(_, let operation): return operation
      case let other: throw Failure("\(other)")
      }
    }
    _ = machine.read(try operation(machine.linkUp()), .success(EncodedValue(.number(0), [0])))
    let command = EncodedCommand(value: EncodedValue(.number(requested), [51])) { _ in }
    let ended = machine.wrote(try operation(machine.command(command)), .thenRead(.success(actual)))
    let outcomes = ended.compactMap { action -> Outcome? in
      if case .outcome(_, let outcome) = action { outcome } else { nil }
    }
    #expect(outcomes.map(\.word) == [word])
    #expect(outcomes.first?.actual == .number(held))
    #expect(machine.desired.effective?.value == .number(requested))
    _ = machine.linkDown()
    let next = machine.read(try operation(machine.linkUp()), .success(actual))
    #expect(!next.contains { if case .write = $0 { true } else { false } })
  }
}
