import EventLoop
import GATT
import Log
import TestSupport
import Testing

@testable import Devices

/// Which event of a device that is only heard is new.
@Suite struct HeardEventsTests {
  private static let source = Property.Source(.service(BluetoothUUID(short: 0xFCD2)))
  private static let start = Moment.now

  /// One gateway without others, which hears frames.
  private struct Gateway {
    var events: HeardEvents
    /// The times at which it has told one.
    private(set) var told: [Double] = []

    init(told: [HeardEvents.Event] = []) { events = HeardEvents(told: told) }

    /// - Parameter seconds: since the start.
    mutating func hear(_ hex: String, at seconds: Double) {
      guard let bytes = Hexadecimal.bytes(hex), let frame = try? BTHome.Frame(bytes) else { return }
      let now = HeardEventsTests.start + .seconds(seconds)
      let novelty = events.heard(HeardEventsTests.source, bytes, packetID: frame.packetID, at: now)
      guard novelty.hasEvents, hex.contains("3a01") else { return }
      let contents = [HeardEvents.Content(property: 0, value: .text("press"))]
      let time = Timestamp(milliseconds: Int64(seconds * 1000))
      let actions = events.heardEvents(
        contents, of: HeardEventsTests.source, hasPeers: false, at: now, time)
      if actions == [.tell(contents, at: time, isElsewhere: false)] { told.append(seconds) }
    }
  }

  @Test(
    arguments: [
      // Without a packet id: another frame between two, or 30 s of silence.
      ([("403a01", 0), ("403a01", 1.5), ("403a00", 3), ("403a01", 5)], [0, 5]),
      ([("403a01", 0), ("403a01", 10), ("403a01", 20), ("403a01", 45), ("403a01", 76)], [0, 76]),
      ([("403a01", 0), ("403a01", 40), ("403a01", 41.5), ("403a01", 80)], [0, 40, 80]),
      ([("4002ca093a01", 0), ("4002cb093a01", 5)], [0, 5]),
      // With one: it alone decides, whatever else is in the frame, and however long ago.
      ([("4000013a01", 0), ("4000013a01", 40), ("40000102ca093a01", 80), ("4000023a01", 81)], [0, 81]),
      ([("4000013a01", 0), ("4000023a01", 1), ("4000013a01", 2)], [0, 1]),
      ([("4000013a01", 0), ("4000023a01", 1), ("4000013a01", 62)], [0, 1, 62]),
    ] as [([(String, Double)], [Double])])
  func aPressIsNew(frames: [(String, Double)], told: [Double]) {
    var gateway = Gateway()
    for (frame, time) in frames { gateway.hear(frame, at: time) }
    #expect(gateway.told == told)
  }

  @Test(arguments: [
    ("4000013a01", 3600, false), ("403a01", 20, false), ("403a01", 31, true), ("4000023a01", 2, true),
    // A clock that was ahead has been set.
    ("403a01", -86_400, true),
  ])
  func afterARestart(frame: String, seconds: Double, isNew: Bool) {
    var before = Gateway()
    before.hear("4000013a01", at: -1)
    before.hear("403a01", at: 0)
    if frame.hasPrefix("4000") { before = Gateway(); before.hear("4000013a01", at: 0) }
    var after = Gateway(told: before.events.told)
    after.hear(frame, at: seconds)
    #expect(after.told == (isNew ? [seconds] : []))
  }

  @Test func anEventOfAClockThatIsAheadHidesNoLaterOne() {
    func event(_ packet: UInt8, _ seconds: Int64) -> HeardEvents.Event {
      HeardEvents.Event(key: .packet(packet), time: Timestamp(milliseconds: seconds * 1000))
    }
    let year: Int64 = 31_536_000
    var events = HeardEvents(told: [event(1, year)])
    _ = events.learn([event(2, 0), event(2, 0), event(3, year + 1)], at: Self.start, event(0, 1).time)
    #expect(events.told == [event(1, year), event(2, 0)])
  }

  @Test func readingsComeAgainAfterASilence() {
    var events = HeardEvents(told: [])
    func hasReadings(at seconds: Int) -> Bool {
      events.heard(Self.source, [0x40], packetID: nil, at: Self.start + .seconds(seconds)).hasReadings
    }
    #expect([0, 10, 20, 51, 60].map(hasReadings) == [true, false, false, true, false])
    events.forgetReadings()
    #expect(hasReadings(at: 61))
  }

  /// The connection stalls for some seconds, as in a WLAN: another gateway tells the event meanwhile.
  @Test(arguments: [(false, true), (true, false)])
  func aClaimThatComesBackLateIsNotToldTwice(claimsReturn: Bool, isToldBefore: Bool) {
    var events = HeardEvents(told: [])
    _ = events.heard(Self.source, [1], packetID: 1, at: Self.start)
    let content = HeardEvents.Content(property: 0, value: .text("press"))
    let claims = events.heardEvents(
      [content], of: Self.source, hasPeers: true, claimsReturn: claimsReturn, at: Self.start, .now)
    guard case .claim(let claim)? = claims.first else {
      Issue.record("\(claims)")
      return
    }
    let told = events.timer(at: Self.start + .seconds(26))
    #expect(told == (isToldBefore ? [.tell([content], at: claim.time, isElsewhere: false)] : []))
    let other = HeardEvents.Event(key: .packet(1), time: .now)
    let ended = events.claimed(other, byThis: false, at: Self.start + .seconds(26), .now)
    #expect(ended == (isToldBefore ? [] : [.tell([content], at: claim.time, isElsewhere: true)]))
    #expect(events.claimed(claim, byThis: true, at: Self.start + .seconds(26), .now) == [])
  }

  /// The other gateway hears each frame first: its claims come before them.
  @Test func pressesWithoutPacketIDsAreToldOnceByTwoGateways() {
    var events = HeardEvents(told: [])
    for (number, byte) in [1, 2, 1, 2, 1].enumerated() as EnumeratedSequence<[UInt8]> {
      let claim = Self.claim(of: byte, at: number * 300)
      #expect(Self.claimed(claim, by: &events, at: number * 300) == [])
      let told = Self.hear(byte, &events, at: number * 300 + 100)
      guard case .tell(_, _, isElsewhere: true)? = told.first else {
        Issue.record("\(number): \(told)")
        return
      }
    }
  }

  /// Both claim the press at the same time, and it is over when the other's claim arrives.
  @Test func lateClaimOfAPressThatWasToldIsNoNewPress() throws {
    var events = HeardEvents(told: [])
    let other = Self.claim(of: 1, at: 50)
    guard case .claim(let own)? = Self.hear(1, &events, at: 0).first else { throw Failure("no claim") }
    #expect(Self.claimed(own, byThis: true, by: &events, at: 60).count == 1)
    _ = Self.hear(2, &events, at: 300)
    #expect(Self.claimed(other, by: &events, at: 400) == [])
    guard case .claim? = Self.hear(1, &events, at: 700).first else { throw Failure("the next press is lost") }
  }

  private static func moment(_ ms: Int) -> Moment { start + .milliseconds(ms) }
  private static func time(_ ms: Int) -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000 + Int64(ms)) }

  private static func hear(_ byte: UInt8, _ events: inout HeardEvents, at ms: Int) -> [HeardEvents.Action] {
    _ = events.heard(source, [byte], packetID: nil, at: moment(ms))
    return events.heardEvents([], of: source, hasPeers: true, at: moment(ms), time(ms))
  }

  private static func claimed(
    _ claim: HeardEvents.Event, byThis: Bool = false, by events: inout HeardEvents, at ms: Int
  ) -> [HeardEvents.Action] {
    events.claimed(claim, byThis: byThis, at: moment(ms), time(ms))
  }

  /// What another gateway sends when it hears the frame.
  private static func claim(of byte: UInt8, at ms: Int) -> HeardEvents.Event {
    var other = HeardEvents(told: [])
    guard case .claim(let claim)? = hear(byte, &other, at: ms).first else { preconditionFailure("no claim") }
    return claim
  }

  /// The memory for events and for claims is bounded, and a claim that does not come back delays its event by 3 s.
  @Test func claimsThatDoNotComeBack() {
    var events = HeardEvents(told: [])
    var told = 0
    func count(_ actions: [HeardEvents.Action]) {
      for case .tell(_, _, isElsewhere: false) in actions { told += 1 }
    }
    for number in 0..<100 {
      let now = Self.start + .milliseconds(number)
      _ = events.heard(Self.source, [UInt8(number)], packetID: UInt8(number), at: now)
      count(events.heardEvents([], of: Self.source, hasPeers: true, at: now, .now))
    }
    #expect(told == 84 && events.told.count == HeardEvents.mostTold)
    count(events.timer(at: Self.start + .milliseconds(3083)))
    #expect(told == 84)
    count(events.timer(at: Self.start + .milliseconds(3090)))
    #expect(told == 91)
    count(events.claimsAreLost(at: Self.start + .seconds(4)))
    #expect(told == 100 && events.deadline == nil)
  }
}
