import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite struct TimerTests {
  private static let delays = [30, 5, 20, 0, 12]

  @Test func fireInTheOrderOfTheirDeadlines() async throws {
    let fired = Record<Int>()
    await loop.perform {
      // The same for all: between two looks at the clock a busy machine may be away for longer than they are apart.
      let start = Moment.now
      for delay in Self.delays {
        loop.insert(LoopTimer(deadline: start + .milliseconds(delay)) { fired.append(delay) })
      }
    }
    #expect(try await fired.first(5) == [0, 5, 12, 20, 30])
  }

  @Test func doNotFireBeforeTheirDeadlines() async throws {
    let fired = Record<Bool>()
    await loop.perform {
      for delay in Self.delays {
        let deadline = ContinuousClock.now + .milliseconds(delay)
        loop.timer(after: .milliseconds(delay)) { fired.append(ContinuousClock.now < deadline) }
      }
    }
    #expect(try await fired.first(5).allSatisfy { !$0 })
  }

  @Test func aCancelledTimerNeverFiresAndLetsGoAtOnce() async throws {
    let fired = Record<String>()
    final class Held: Sendable {}
    let released = await loop.perform { () -> Bool in
      weak var held: Held?
      let timer: LoopTimer
      do {
        let object = Held()
        held = object
        timer = loop.timer(after: .milliseconds(2)) {
          withExtendedLifetime(object) { fired.append("cancelled") }
        }
      }
      timer.cancel()
      timer.cancel()
      loop.timer(after: .milliseconds(10)) { fired.append("later") }
      return held == nil
    }
    #expect(released)
    #expect(try await fired.first(1) == ["later"])
  }

  @Test func aHandlerMayCancelATimerThatIsDueInTheSameIteration() async throws {
    let fired = Record<String>()
    await loop.perform {
      @LoopActor final class Box { var timer: LoopTimer? }
      let box = Box()
      loop.timer(after: .milliseconds(1)) {
        fired.append("first")
        box.timer?.cancel()
      }
      box.timer = loop.timer(after: .milliseconds(1)) { fired.append("second") }
      loop.timer(after: .milliseconds(2)) { fired.append("third") }
      // All three are due when the loop comes to them.
      usleep(4000)
    }
    #expect(try await fired.first(2) == ["first", "third"])
  }

  @Test func whatArrivesDuringALongJobComesBeforeTimersThatAreDueThen() async throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    let (here, there) = (ends[0], ends[1])
    let order = Record<String>()
    let watch = await loop.perform {
      let watch = loop.watch(here, for: .readable) { _ in
        var byte: UInt8 = 0
        _ = read(here, &byte, 1)
        order.append("watch")
      }
      loop.timer(after: .milliseconds(1)) { order.append("timer") }
      _ = write(there, [1], 1)
      usleep(4000)
      return watch
    }
    #expect(try await order.first(2) == ["watch", "timer"])
    await watch.cancel()
  }

  @Test func aHandlerMaySetTimersWithoutStarvingOthers() async throws {
    let fired = Record<Int>()
    @LoopActor final class Chain {
      let fired: Record<Int>
      var isEnded = false
      init(_ fired: Record<Int>) { self.fired = fired }
      func link(_ number: Int) {
        fired.append(number)
        if !isEnded { loop.timer(after: .zero) { self.link(number + 1) } }
      }
    }
    let chain = await Chain(fired)
    await chain.link(0)
    // Jobs and other timers run meanwhile.
    let other = Record<Void>()
    for _ in 0..<10 {
      await loop.perform { _ = loop.timer(after: .milliseconds(1)) { other.append(()) } }
    }
    _ = try await other.first(10)
    let numbers = try await fired.first(100)
    await loop.perform { chain.isEnded = true }
    #expect(numbers == Array(0..<numbers.count))
  }

  @Test func tenThousandKeepTheirOrder() async throws {
    let fired = Record<Int>()
    var generator = SystemRandomNumberGenerator()
    let moments = (0..<10_000).map { _ in
      Moment.now + .microseconds(Int.random(in: 0..<50_000, using: &generator))
    }
    await loop.perform {
      for (number, moment) in moments.enumerated() {
        loop.insert(LoopTimer(deadline: moment) { fired.append(number) })
      }
    }
    let numbers = try await fired.first(10_000)
    let isInOrder = zip(numbers, numbers.dropFirst()).allSatisfy { first, second in
      moments[first] < moments[second] || (moments[first] == moments[second] && first < second)
    }
    #expect(isInOrder)
  }
}

@LoopActor @Suite struct TimerQueueTests {
  private let start = Moment.now
  private let second = Moment.now + .seconds(1)

  @Test func equalDeadlinesFireInTheOrderOfTheirInsertion() {
    var queue = TimerQueue()
    let fired = Record<Int>()
    let moments = (0..<3).map { Moment.now + .seconds($0) }
    for number in 0..<100 {
      queue.insert(LoopTimer(deadline: moments[number % 3]) { fired.append(number) })
    }
    while let timer = queue.popDue(at: moments[2]) { timer.fire() }
    let expected = (0..<3).flatMap { third in (0..<100).filter { $0 % 3 == third } }
    #expect(fired.elements == expected)
    #expect(queue.next == nil)
  }

  @Test func nothingIsDueBeforeItsTime() {
    var queue = TimerQueue()
    queue.insert(LoopTimer(deadline: second) {})
    #expect(queue.popDue(at: start) == nil)
    #expect(queue.popDue(at: second) != nil)
    #expect(queue.popDue(at: second) == nil)
  }

  @Test func aTimerFiresOnce() {
    let fired = Record<Void>()
    let timer = LoopTimer(deadline: start) { fired.append(()) }
    timer.fire()
    timer.fire()
    #expect(fired.elements.count == 1)
  }

  @Test func cancelledTimersDoNotPileUp() {
    var queue = TimerQueue()
    queue.insert(LoopTimer(deadline: start) {})
    // Later than the first, so that they are never the next.
    for number in 1...100_000 {
      let timer = LoopTimer(deadline: Moment.now + .seconds(number)) {}
      queue.insert(timer)
      timer.cancel()
    }
    #expect(queue.timers.count <= 2048)
    #expect(queue.next == start)
  }

  @Test func cancelledTimersDoNotWakeTheLoop() {
    var queue = TimerQueue()
    for moment in [start, second, Moment.now + .seconds(3600)] {
      let timer = LoopTimer(deadline: moment) {}
      queue.insert(timer)
      if moment <= second { timer.cancel() }
    }
    queue.dropCancelled()
    #expect(queue.timers.count == 1)
    #expect(queue.next! > second)
  }
}

@Suite struct MomentTests {
  @Test func waitsAreRoundedUpToWholeMilliseconds() {
    let now = Moment.now
    #expect(now.milliseconds(until: now) == 0)
    #expect((Moment.now + .seconds(1)).milliseconds(until: now) == 0)
    #expect(now.milliseconds(until: now + .microseconds(500)) == 1)
  }

  @Test func noDelayIsTooLongOrTooShort() {
    for delay in [Duration.seconds(Int64.max), .seconds(Int64.min), .nanoseconds(-1), .zero] {
      let moment = Moment.now + delay
      #expect(delay > .zero ? moment > Moment.now + .seconds(86400 * 365) : moment <= .now)
    }
  }
}

extension LoopTimer: Equatable {
  /// By identity, to distinguish timers of the same deadline.
  public nonisolated static func == (a: LoopTimer, b: LoopTimer) -> Bool { a === b }
}
