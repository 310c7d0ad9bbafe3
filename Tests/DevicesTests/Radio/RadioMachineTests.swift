import EventLoop
import GATT
import Radio
import Testing

@testable import Devices

/// What is known of a sender by radio: its clock, its rhythm, and which packets are new.
@Suite struct RadioMachineTests {
  private static let start = Moment.now

  private static func at(_ milliseconds: Int) -> Moment { start + .milliseconds(milliseconds) }

  @Test func ordersByTheSendersClocks() {
    var (early, late) = (RadioClock(), RadioClock())
    #expect(early.sent(5) == nil)
    // One took 3 ms to arrive, the other 10 ms.
    _ = (early.received(1000, at: Self.at(1003)), late.received(500, at: Self.at(1010)))
    _ = (early.received(2000, at: Self.at(2009)), late.received(1500, at: Self.at(2003)))
    // Pressed at 3010 and 3005, received at once.
    _ = (early.received(3010, at: Self.at(3020)), late.received(2505, at: Self.at(3020)))
    #expect(late.sent(2505).map { $0 < early.sent(3010) ?? $0 } == true)
    #expect(early.sent(nil) == nil)
  }

  @Test func reset() {
    var clock = RadioClock()
    #expect(
      [5000, 6000, 5990, 100, 200].map { clock.received($0, at: Self.at(7000)) } == [
        false, false, false, true, false,
      ])
    #expect(clock.sent(200) == Self.at(7000))
  }

  /// The clocks run apart: the difference is followed.
  @Test func drift() throws {
    var clock = RadioClock()
    for second in 0...1000 {
      _ = clock.received(UInt32(second * 1000), at: Self.at(second * 1000 + second / 5))
    }
    let sent = try #require(clock.sent(1_000_000))
    #expect(sent.duration(to: Self.at(1_000_200)) < .milliseconds(5))
  }

  @Test func rhythm() {
    var rhythm = RadioRhythm()
    #expect(rhythm.limit == RadioRhythm.initial)
    rhythm.heard(at: Self.at(0))
    rhythm.heard(at: Self.at(20))
    #expect(rhythm.limit == RadioRhythm.initial)
    rhythm.heard(at: Self.at(2020))
    #expect(rhythm.limit == .seconds(60))
    rhythm.heard(at: Self.at(902_020))
    #expect(rhythm.limit == .seconds(2700))
    for index in 1...8 { rhythm.heard(at: Self.at(902_020 + index * 30_000)) }
    #expect(rhythm.limit == .seconds(90))
  }

  @Test func news() throws {
    var history = RadioHistory()
    let timed = try #require(RadioPacket(Array(#"{"t":5,"s":7,"n":"a","v":1}"#.utf8)))
    let plain = try #require(RadioPacket(Array("vopez,a,1".utf8)))
    func isNew(_ packet: RadioPacket, _ port: String, _ time: Int) -> Bool {
      history.isNew(packet, from: port, at: Self.at(time))
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
