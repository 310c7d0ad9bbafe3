import EventLoop
import Peripherals
import Testing

@testable import BlueZSimulator

/// Names and addresses.
@Suite struct FleetTests {
  @Test func theFirstOnesAreThoseOfTheRecordings() {
    #expect((0..<3).map(Identity.friendlyName) == ["zugev", "puvet", "gagog"])
    #expect(
      (0..<3).map(Identity.address(ofMicroBit:)) == [
        "D0:5A:00:00:C0:DE", "D1:5A:00:01:C0:DE", "D2:5A:00:02:C0:DE",
      ])
  }

  @Test func addressesAreAllDifferentAndRandomStatic() {
    let all =
      (0..<5000).map(Identity.address(ofMicroBit:)) + (0..<1000).map(Identity.address(ofDecoy:))
    #expect(Set(all).count == all.count)
    // A random static address has its two highest bits set (Core specification, Vol 6, Part B, 1.3.2.1).
    #expect(all.allSatisfy { "CDEF".contains($0.prefix(1)) && $0.utf8.count == 17 })
  }

  @Test func namesOfAHundredAreAllDifferent() {
    #expect(Set((0..<100).map(Identity.friendlyName)).count == 100)
  }

  @Test func optionsNameThem() {
    var options = SimulatorOptions()
    options.devices = 2
    options.decoys = 1
    options.names = [1: "a/b+#\u{1F600}"]
    options.addresses = [0: "C0:00:00:00:00:01"]
    var random = SplitMix(seed: 1)
    let fleet = options.peripherals(at: .now, random: &random)
    #expect(fleet.map(\.name) == ["BBC micro:bit [zugev]", "a/b+#\u{1F600}", "Polar H7 1"])
    #expect(fleet.map(\.address) == ["C0:00:00:00:00:01", "D1:5A:00:01:C0:DE", "E5:7A:00:00:00:01"])
    #expect(fleet.map { $0.values.microBit == nil } == [false, false, true])
  }
}

/// The order of events.
@Suite struct ScheduleTests {
  @Test func eventsComeByTimeAndThenByTheirMaking() {
    var random = SplitMix(seed: 3)
    var schedule = Schedule<Int>()
    let start = Moment.now
    var expected: [(Int, Int)] = []
    for number in 0..<1000 {
      let delay = Int.random(in: 0..<50, using: &random)
      expected.append((delay, number))
      schedule.add(number, at: start + .milliseconds(delay))
    }
    expected.sort { $0 < $1 }
    var actual: [Int] = []
    while let next = schedule.pop(by: start + .seconds(1)) { actual.append(next) }
    #expect(actual == expected.map { $0.1 })
    #expect(schedule.next == nil)
  }

  @Test func nothingComesBeforeItsTime() {
    var schedule = Schedule<Int>()
    let start = Moment.now
    schedule.add(1, at: start + .seconds(1))
    let early = schedule.pop(by: start)
    #expect(early == nil)
    #expect(schedule.next == start + .seconds(1))
  }
}
