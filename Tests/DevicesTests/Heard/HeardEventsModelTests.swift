import EventLoop
import GATT
import Log
import TestSupport
import Testing

@testable import Devices

/// Gateways that hear the same button, and a broker that sends each what any of them publishes, in one order.
@Suite struct HeardEventsModelTests {
  private static let source = Property.Source(.service(BluetoothUUID(short: 0xFCD2)))

  private struct World {
    enum Step {
      case hears(Int, press: Int)
      case brokerHas(HeardEvents.Event, of: Int)
      case claimed(Int, HeardEvents.Event, of: Int)
      case timer(Int)
      case restarts(Int)
    }

    var random: SplitMix64
    let hasPacketID: Bool
    var gateways: [HeardEvents]
    /// By the time in ms, and in the order in which they were added.
    var steps: [(at: Int, step: Step)] = []
    /// The last arrival at each gateway: messages do not overtake each other.
    var arrivals: [Int]
    /// The presses in the order in which they were told, each with its gateway.
    var told: [(press: Int, by: Int)] = []
    var hands = 0

    init(seed: UInt64, gateways count: Int, hasPacketID: Bool) {
      random = SplitMix64(state: seed)
      self.hasPacketID = hasPacketID
      gateways = Array(repeating: HeardEvents(told: []), count: count)
      arrivals = Array(repeating: 0, count: count)
    }

    mutating func add(_ step: Step, at time: Int) {
      let index = steps.firstIndex { $0.at > time } ?? steps.endIndex
      steps.insert((time, step), at: index)
    }

    mutating func run(presses: Int) {
      var time = 0
      for press in 0..<presses {
        // Frames without a packet id are told apart by a silence.
        let pause = hasPacketID ? Int.random(in: 300...8000, using: &random) : 41_000
        let next = time + pause
        // Carried about: one, some or all hear it, each once or several times, up to 5 s later, as long as it is on the air.
        let owner = press / 20 % gateways.count
        for gateway in gateways.indices
        where gateway == owner || Int.random(in: 0..<3, using: &random) == 0 {
          for _ in 0..<Int.random(in: 1...3, using: &random) {
            let delay = Int.random(in: 0..<min(5000, pause - 200), using: &random)
            add(.hears(gateway, press: press), at: time + (Bool.random(using: &random) ? 0 : delay))
          }
        }
        if press % 50 == 49 {
          // The button is still on the air then.
          let gateway = Int.random(in: gateways.indices, using: &random)
          let end = hasPacketID ? next - 100 : time + 6000
          add(.restarts(gateway), at: end)
          add(.hears(gateway, press: press), at: end + 1)
        }
        time = next
      }
      while !steps.isEmpty {
        let (now, step) = steps.removeFirst()
        perform(step, at: now)
      }
    }

    private mutating func perform(_ step: Step, at now: Int) {
      let (moment, time) = (
        HeardEventsModelTests.start + .milliseconds(now), Timestamp(milliseconds: Int64(now))
      )
      switch step {
      case .hears(let gateway, let press):
        let id = UInt8(truncatingIfNeeded: press)
        let bytes = hasPacketID ? [0x40, 0, id, 0x3A, 1] : [0x40, 0x3A, 1]
        let novelty = gateways[gateway].heard(
          HeardEventsModelTests.source, bytes, packetID: hasPacketID ? id : nil, at: moment)
        guard novelty.hasEvents else { return }
        handle(
          gateways[gateway].heardEvents(
            [HeardEvents.Content(property: 0, value: .integer(press))], of: HeardEventsModelTests.source,
            hasPeers: true, at: moment, time), of: gateway, at: now)
      case .brokerHas(let event, let claimant):
        for gateway in gateways.indices {
          let arrival = max(arrivals[gateway], now + Int.random(in: 1...40, using: &random))
          arrivals[gateway] = arrival
          add(.claimed(gateway, event, of: claimant), at: arrival)
        }
      case .claimed(let gateway, let event, let claimant):
        let actions = gateways[gateway].claimed(event, byThis: gateway == claimant, at: moment, time)
        handle(actions, of: gateway, at: now)
      case .timer(let gateway): handle(gateways[gateway].timer(at: moment), of: gateway, at: now)
      case .restarts(let gateway):
        // What it has stored, and what the owner's `info` says.
        gateways[gateway] = HeardEvents(told: gateways[gateway].told)
        let other = gateways[(gateway + 1) % gateways.count].told
        handle(gateways[gateway].learn(other, at: moment, time), of: gateway, at: now)
      }
    }

    private mutating func handle(_ actions: [HeardEvents.Action], of gateway: Int, at now: Int) {
      for action in actions {
        switch action {
        case .claim(let event):
          add(.brokerHas(event, of: gateway), at: now + Int.random(in: 1...40, using: &random))
        case .tell(let contents, _, isElsewhere: false):
          guard case .integer(let press) = contents[0].value else { continue }
          if told.last.map({ $0.by != gateway }) == true { hands += 1 }
          told.append((press, gateway))
        case .tell: break
        }
      }
      if let deadline = gateways[gateway].deadline {
        let milliseconds = Int(HeardEventsModelTests.start.duration(to: deadline) / .milliseconds(1))
        add(.timer(gateway), at: milliseconds)
      }
    }
  }

  private static let start = Moment.now

  @Test(arguments: [(2, true), (3, true), (2, false), (3, false)])
  func eachOfAThousandPressesIsToldOnceAndInOrder(gateways: Int, hasPacketID: Bool) {
    let seed = UInt64.random(in: 0...UInt64.max)
    var world = World(seed: seed, gateways: gateways, hasPacketID: hasPacketID)
    world.run(presses: 1000)
    #expect(world.told.map(\.press) == Array(0..<1000), "seed \(seed)")
    // Several gateways tell them.
    #expect(world.hands > 40)
  }
}
