import EventLoop
import GATT
import Radio
import Testing

@testable import Devices

/// What is known of a sender by radio: its clock, and which packets are new.
@Suite struct RadioMachineTests {
  private static let start = Moment.now

  private static func at(_ milliseconds: Int) -> Moment { start + .milliseconds(milliseconds) }

  @Test func reset() {
    var clock = RadioClock()
    let resets = [5000, 6000, 5990, 100, 200].map { clock.received($0, at: Self.at(0)) }
    #expect(resets == [false, false, false, true, false])
    // Two that send with the same serial number are not reset again and again.
    let later = [(90_000, 1), (100, 2), (90_000, 3), (100, 70_000)].map {
      clock.received(UInt32($0.0), at: Self.at($0.1))
    }
    #expect(later == [false, false, false, true])
  }

  @Test func news() throws {
    var history = RadioHistory()
    let timed = try #require(RadioPacket(Array(#"{"t":5,"s":7,"n":"a","v":1}"#.utf8)))
    let plain = try #require(RadioPacket(Array("vopez,a,1".utf8)))
    func isNew(_ packet: RadioPacket, _ port: String, _ time: Int) -> Bool {
      history.addIfNew(packet, from: port, at: Self.at(time))
    }
    #expect(isNew(timed, "one", 0))
    #expect(!isNew(timed, "two", 4))
    #expect(!isNew(timed, "one", 1000))
    // After a reset the time comes again.
    #expect(isNew(timed, "one", 5000))
    #expect(isNew(plain, "one", 0))
    #expect(!isNew(plain, "two", 10))
    #expect(isNew(plain, "one", 20))
    for number in 0..<5000 {
      let packet = try #require(RadioPacket(Array(#"{"t":\#(number),"s":8,"v":1}"#.utf8)))
      let isFirst = isNew(packet, "one", 10)
      #expect(isFirst)
    }
  }
}
