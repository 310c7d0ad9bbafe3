import Configuration
import GATT
import Testing

@testable import Bridge
@testable import Devices

@Suite struct HeldReadingsTests {
  private var held = HeldReadings()

  private static func reading(_ sequence: UInt64, of key: ValueKey? = nil) -> Reading {
    Reading(property: 0, key: key, value: .integer(21), time: .now, sequence: sequence)
  }

  @Test func readingsOfANewLinkWaitInTheirOrder() throws {
    var held = held
    let key = try #require(ValueKey("temp"))
    let passed = [
      held.passOrHold(Self.reading(1), isOwnedByOther: true, .subscribing),
      held.passOrHold(Self.reading(2, of: key), isOwnedByOther: true, .subscribing),
      // This gateway owns it now, and the ones before are not published yet.
      held.passOrHold(Self.reading(3), isOwnedByOther: false, .subscribing),
    ]
    #expect(passed == [false, false, false])
    let taken = held.take()
    #expect(taken.map(\.sequence) == [1, 2, 3])
    #expect(taken.map(\.key) == [nil, key, nil])
    let passesLater = held.passOrHold(Self.reading(4), isOwnedByOther: false, .live)
    #expect(passesLater)
  }

  @Test func readingsOfTheOldLinkAreDropped() {
    var held = held
    let passes = held.passOrHold(Self.reading(1), isOwnedByOther: true, .live)
    let taken = held.take()
    #expect(!passes && taken.isEmpty)
  }

  @Test func aLinkThatEndsTakesItsReadingsAlong() {
    var held = held
    _ = held.passOrHold(Self.reading(1), isOwnedByOther: true, .subscribing)
    held.sessionChanged(.connecting)
    let taken = held.take()
    #expect(taken.isEmpty)
  }

  @Test func theOldestAreDropped() {
    var held = held
    for sequence in 1...1001 {
      _ = held.passOrHold(Self.reading(UInt64(sequence)), isOwnedByOther: true, .subscribing)
    }
    let sequences = held.take().map(\.sequence)
    #expect(sequences.count == 1000 && sequences.first == 2)
  }
}
