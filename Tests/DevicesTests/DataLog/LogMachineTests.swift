import EventLoop
import Peripherals
import TestSupport
import Testing

@testable import Devices

/// ``LogMachine`` against the service as the firmware has it, on links that end anywhere, while the log grows and is cleared.
@Suite struct LogMachineTests {
  /// A micro:bit, a gateway that keeps what it has read, and the time.
  private struct World {
    var service = DataLogService()
    var now = Moment.now
    var copy: [UInt8] = []
    var job: UInt8 = 0
    var clearings = 0
    /// The times and bytes of all requests.
    var requests: [(time: Moment, bytes: [UInt8])] = []

    init(_ log: [UInt8]) {
      service.clear()
      service.add(log)
    }

    /// One link, until the transfer ends.
    /// - Parameter disturb: is called before each reply; nil: the link is lost. It returns what arrives instead of the reply.
    mutating func link(
      hasPauses: Bool = false, _ disturb: (inout World, [UInt8]) -> [[UInt8]]? = { [$1] }
    ) -> LogFailure? {
      var machine = LogMachine(
        offset: copy.count, tail: copy.suffix(LogMachine.tailSize), job: job, hasPauses: hasPauses)
      defer { job = machine.job }
      var actions = machine.begin(at: now)
      while true {
        for action in actions {
          switch action {
          case .write(let bytes):
            requests.append((now, bytes))
            _ = service.write(bytes, at: now)
          case .cleared:
            copy = []
            clearings += 1
          case .take(let bytes): copy += bytes
          case .length: break
          case .end(let failure): return failure
          }
        }
        actions = []
        if let next = service.next, next <= machine.deadline ?? next {
          now = max(now, next)
          guard let reply = service.reply(at: now) else { continue }
          guard let arrived = disturb(&self, reply) else {
            return machine.end(.linkLost).isEmpty ? nil : .linkLost
          }
          for bytes in arrived { actions += machine.reply(bytes, at: now) }
        } else if let deadline = machine.deadline {
          now = max(now, deadline)
          actions = machine.deadlineIsOver(at: now)
        } else {
          return .silent
        }
      }
    }
  }

  private static func log(_ size: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SplitMix64(state: seed)
    return (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  @Test(arguments: [0, 1, 18, 19, 20, 31, 32, 33, 75, 76, 77, 152, 1000, 118_780])
  func logOfAnyLengthArrivesByteForByte(size: Int) {
    var world = World(Self.log(size))
    #expect(world.link() == nil)
    #expect(world.copy == world.service.log && world.clearings == 0)
    // The rule of the service: it does not check the index.
    for (_, bytes) in world.requests where bytes[1] == 2 {
      func number(_ at: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[at + $1]) << ($1 * 8) } }
      #expect(number(4) + number(8) <= number(12) && number(8) <= 76 && bytes.count == 16)
    }
    #expect(world.link() == nil, "nothing is new")
    #expect(world.copy == world.service.log && world.clearings == 0)
  }

  @Test func linkThatIsLostAfterAnyReplyIsGoneOnWith() {
    for lost in 0..<40 {
      var world = World(Self.log(300))
      var replies = 0
      let failure = world.link { _, reply in
        defer { replies += 1 }
        return replies == lost ? nil : [reply]
      }
      let before = world.copy.count
      #expect(failure == (replies > lost ? .linkLost : nil))
      #expect(world.link() == nil)
      #expect(world.copy == world.service.log, "lost at \(lost), \(before) bytes before")
      #expect(world.clearings == 0)
    }
  }

  @Test func logThatGrowsIsGoneOnWith() {
    var world = World(Self.log(100))
    #expect(world.link() == nil)
    world.service.add(Self.log(50, seed: 2))
    #expect(world.link() == nil)
    #expect(world.copy == world.service.log && world.copy.count == 150 && world.clearings == 0)
  }

  @Test(arguments: [0, 20, 100, 101, 500])
  func clearedLogIsReadFromItsBeginning(size: Int) {
    var world = World(Self.log(100))
    #expect(world.link() == nil)
    world.service.clear()
    world.service.add(Self.log(size, seed: 3))
    #expect(world.link() == nil)
    #expect(world.copy == world.service.log && world.clearings == 1)
  }

  @Test func logThatIsClearedWhileItIsReadIsReadAgain() {
    var world = World(Self.log(500))
    var replies = 0
    #expect(
      world.link { world, reply in
        replies += 1
        if replies == 9 {
          world.service.clear()
          world.service.add(Self.log(30, seed: 4))
        }
        return [reply]
      } == nil)
    #expect(world.copy == world.service.log && world.clearings == 1)
  }

  /// A peripheral may pretend for ever that its log was cleared.
  @Test func logThatIsClearedAgainAndAgainIsGivenUp() {
    var world = World(Self.log(2 * LogMachine.batch))
    let failure = world.link { world, reply in
      let request = world.requests.last?.bytes ?? []
      guard request.count > 8 else { return [reply] }
      if request[4] == LogMachine.batch { return [[reply[0] | 0x0F, 0x17, 0xFC, 0xFF, 0xFF]] }
      let isCheck = request[8] == LogMachine.tailSize
      return [isCheck ? [reply[0]] + reply.dropFirst().map { ~$0 } : reply]
    }
    #expect(failure == .changing)
    #expect(world.clearings == 3)
  }

  /// A reply that is lost, repeated, late, too long, of another request, or an error, at any place.
  @Test(arguments: 0..<6)
  func replyThatIsNotExpectedCostsTimeOnly(kind: Int) {
    for place in 0..<20 {
      var world = World(Self.log(300))
      var replies = 0
      let failure = world.link { _, reply in
        defer { replies += 1 }
        guard replies == place else { return [reply] }
        return switch kind {
        case 0: []
        case 1: [reply, reply]
        case 2: [reply + [1, 2, 3]]
        case 3: [[reply[0] &+ 0x10] + reply.dropFirst(), reply]
        case 4: [[reply[0] | 0x0F, 0x12, 0xFC, 0xFF, 0xFF]]
        case _: [[reply[0]], []]
        }
      }
      #expect(failure == nil, "\(kind) at \(place)")
      #expect(world.copy == world.service.log && world.clearings == 0, "\(kind) at \(place)")
    }
  }

  @Test func serviceThatDoesNotAnswerIsGivenUp() {
    var world = World(Self.log(100))
    let begin = world.now
    #expect(world.link { _, _ in [] } == .silent)
    #expect(begin.duration(to: world.now) == .seconds(15))
    #expect(world.requests.count == 3)
  }

  @Test func impossibleLengthIsNotBelieved() {
    var world = World(Self.log(100))
    #expect(world.link { _, reply in [[reply[0], 0xFF, 0xFF, 0xFF, 0x7F]] } == .impossible)
  }

  @Test func requestsLeaveTimeForOtherNotifications() {
    var (fast, slow) = (World(Self.log(1000)), World(Self.log(1000)))
    #expect(fast.link() == nil && slow.link(hasPauses: true) == nil)
    func time(_ world: World) -> Duration { world.requests[0].time.duration(to: world.now) }
    #expect(time(slow) >= time(fast) * 1.8, "as long as the batches")
    #expect(fast.service.ignored == 0 && slow.service.ignored == 0)
  }

  /// 200 worlds: the log is what it is at the end, whatever happened.
  @Test(.serialized, arguments: 0..<200)
  func anyCourseEndsWithTheLog(seed: Int) async {
    let (failure, isWhole, clearings) = await offPool {
      var random = SplitMix64(state: UInt64(seed))
      var world = World(Self.log(Int.random(in: 0...2000, using: &random), seed: UInt64(seed)))
      for _ in 0..<30 {
        _ = world.link { world, reply in
          switch Int.random(in: 0..<200, using: &random) {
          case 0: return nil
          case 1: return []
          case 2: return [reply, reply]
          case 3, 4:
            world.service.add(Self.log(Int.random(in: 0...100, using: &random), seed: random.next()))
            return [reply]
          case _: return [reply]
          }
        }
      }
      let failure = world.link()
      return (failure, world.copy == world.service.log, world.clearings)
    }
    #expect(failure == nil)
    #expect(isWhole && clearings == 0)
  }
}
